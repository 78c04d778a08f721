//! Pseudo terminals.

use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libc::c_int;

/// A new terminal of a size: our end, which never blocks, and the end for programs. Neither is
/// inherited, and neither becomes our own terminal.
pub(crate) fn open(columns: u16, rows: u16) -> io::Result<(File, OwnedFd)> {
    let (master, slave) = pair()?;
    set_size(&master, columns, rows)?;
    plain_output(&slave)?;
    Ok((File::from(master), slave))
}

#[cfg(target_os = "linux")]
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    const SLAVE: c_int = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: these calls take numbers, and one pointer to a local number that they read.
    let (master, slave) = unsafe {
        let master = owned(libc::posix_openpt(SLAVE | libc::O_NONBLOCK))?;
        let unlocked: c_int = 0;
        checked(libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked))?;
        let slave = libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, SLAVE);
        (master, slave)
    };
    if let Ok(slave) = owned(slave) {
        return Ok((master, slave));
    }
    // Before Linux 4.13 the other end has to be found by its name.
    let mut name = [0; 64];
    // SAFETY: the name is written into the array, with a zero byte at its end, and read from there.
    let slave = unsafe {
        match libc::ptsname_r(master.as_raw_fd(), name.as_mut_ptr(), name.len()) {
            0 => owned(libc::open(name.as_ptr(), SLAVE))?,
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    };
    Ok((master, slave))
}

/// Elsewhere there is no way to open both ends that are not inherited from the first moment on.
#[cfg(not(target_os = "linux"))]
fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    use std::ptr::null_mut;
    let (mut master, mut slave) = (-1, -1);
    // SAFETY: the system writes two numbers, to places that are numbers; the name and the settings
    // are not asked for.
    checked(unsafe { libc::openpty(&mut master, &mut slave, null_mut(), null_mut(), null_mut()) })?;
    let (master, slave) = (owned(master)?, owned(slave)?);
    // SAFETY: takes plain numbers.
    unsafe {
        checked(libc::fcntl(master.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC))?;
        checked(libc::fcntl(slave.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC))?;
        checked(libc::fcntl(master.as_raw_fd(), libc::F_SETFL, libc::O_RDWR | libc::O_NONBLOCK))?;
    }
    Ok((master, slave))
}

/// Sets the size of a terminal and notifies the programs on it.
pub(crate) fn set_size(master: &impl AsRawFd, columns: u16, rows: u16) -> io::Result<()> {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: reads one `winsize`, from a place that is one.
    checked(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) })
}

/// Keeps line feeds unchanged, and makes erase remove all bytes of a character.
fn plain_output(slave: &OwnedFd) -> io::Result<()> {
    // SAFETY: the settings are plain data, filled in by the first call and read by the second.
    unsafe {
        let mut settings: libc::termios = mem::zeroed();
        checked(libc::tcgetattr(slave.as_raw_fd(), &mut settings))?;
        settings.c_oflag &= !libc::ONLCR;
        #[cfg(any(target_os = "linux", target_vendor = "apple"))]
        {
            settings.c_iflag |= libc::IUTF8;
        }
        checked(libc::tcsetattr(slave.as_raw_fd(), libc::TCSANOW, &settings))
    }
}

/// Makes the terminal at `stdin` the controlling one of this session, which has none yet. Runs
/// after a fork.
pub(super) fn take_as_own(stdin: BorrowedFd<'_>) {
    // SAFETY: takes plain numbers. A session that cannot have it goes without.
    unsafe { libc::ioctl(stdin.as_raw_fd(), libc::TIOCSCTTY as _, 0) };
}

fn checked(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn owned(fd: c_int) -> io::Result<OwnedFd> {
    checked(fd)?;
    // SAFETY: the system has just given us this descriptor, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
