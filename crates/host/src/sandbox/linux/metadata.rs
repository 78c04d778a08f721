//! Owners, permissions and time stamps, where Landlock is the only guard of files.
//!
//! Landlock does not cover them, and a seccomp filter cannot see which file a call is about. So the
//! filter asks this process, which finds the file, looks where it really is, and makes the change
//! itself if it is in a writable place. It acts on what it has opened, so a caller that changes its
//! memory or renames a directory meanwhile gains nothing.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use libc::c_int;

use crate::sys::notify::{self, Question};

/// `fchmodat2`, which the C library does not name everywhere.
const FCHMODAT2: i64 = 452;

const PATH_MAX: usize = 4096;
const PAGE: u64 = 4096;

/// A change that a call asks for.
enum Change {
    Owner { user: Option<u32>, group: Option<u32> },
    Permissions(u32),
    Times([(i64, i64); 2]),
}

/// How a call names its file.
enum Target {
    Descriptor(c_int),
    Path { base: c_int, address: u64, follow: bool },
}

/// Answers one question. `roots` are the real paths of the writable places.
pub(super) fn answer(listener: BorrowedFd<'_>, roots: &[PathBuf]) {
    let Ok(question) = notify::receive(listener) else { return };
    let result =
        decide(listener, &question, roots).map_err(|error| error.raw_os_error().unwrap_or(libc::EPERM));
    notify::answer(listener, &question, result);
}

fn decide(listener: BorrowedFd<'_>, question: &Question, roots: &[PathBuf]) -> io::Result<()> {
    let process = Process(PathBuf::from(format!("/proc/{}", question.thread)));
    let (target, change) = read(&process, question)?;
    let file = match target {
        Target::Descriptor(fd) => process.descriptor(fd)?,
        Target::Path { base, address, follow } => {
            let path = process.text(address)?;
            match own_descriptor(&path) {
                Some(fd) => process.descriptor(fd)?,
                None => notify::open_for(process.base(base, &path)?.as_fd(), &path, follow)?,
            }
        }
    };
    // The number of a thread may belong to another one by now, if the caller was killed.
    if !notify::still_waits(listener, question) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    let place = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let real = fs::read_link(&place)?;
    if !roots.iter().any(|root| real.starts_with(root)) {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    match change {
        Change::Owner { user, group } => std::os::unix::fs::chown(&place, user, group),
        Change::Permissions(mode) => fs::set_permissions(&place, fs::Permissions::from_mode(mode)),
        Change::Times(times) => notify::set_times(&place, times),
    }
}

/// Takes a call apart.
fn read(process: &Process, question: &Question) -> io::Result<(Target, Change)> {
    let arguments = question.arguments;
    let number = |index: usize| arguments[index] as c_int;
    let mode = |index: usize| Change::Permissions(arguments[index] as u32 & 0o7777);
    let owner = |index: usize| {
        // The largest number stands for no change.
        let id = |index: usize| Some(arguments[index] as u32).filter(|id| *id != u32::MAX);
        Change::Owner { user: id(index), group: id(index + 1) }
    };
    let path = |base: c_int, address: u64, flags: c_int| {
        if address == 0 || (flags & libc::AT_EMPTY_PATH != 0 && process.text(address)?.is_empty()) {
            return Ok(Target::Descriptor(base));
        }
        io::Result::Ok(Target::Path { base, address, follow: flags & libc::AT_SYMLINK_NOFOLLOW == 0 })
    };
    let here = libc::AT_FDCWD;
    match question.call {
        libc::SYS_fchown => Ok((Target::Descriptor(number(0)), owner(1))),
        libc::SYS_fchownat => Ok((path(number(0), arguments[1], number(4))?, owner(2))),
        libc::SYS_fchmod => Ok((Target::Descriptor(number(0)), mode(1))),
        libc::SYS_fchmodat => Ok((path(number(0), arguments[1], 0)?, mode(2))),
        FCHMODAT2 => Ok((path(number(0), arguments[1], number(3))?, mode(2))),
        libc::SYS_utimensat => {
            let times = process.times(arguments[2], 1)?;
            Ok((path(number(0), arguments[1], number(3))?, Change::Times(times)))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown => Ok((path(here, arguments[0], 0)?, owner(1))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => Ok((path(here, arguments[0], libc::AT_SYMLINK_NOFOLLOW)?, owner(1))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => Ok((path(here, arguments[0], 0)?, mode(1))),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => {
            let times = match arguments[1] {
                0 => NOW,
                address => {
                    let [access, change] = process.numbers(address)?;
                    [(access, 0), (change, 0)]
                }
            };
            Ok((path(here, arguments[0], 0)?, Change::Times(times)))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes => {
            Ok((path(here, arguments[0], 0)?, Change::Times(process.times(arguments[1], 1000)?)))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => {
            let times = process.times(arguments[2], 1000)?;
            Ok((path(number(0), arguments[1], 0)?, Change::Times(times)))
        }
        _ => {
            let _ = here;
            Err(io::Error::from_raw_os_error(libc::EPERM))
        }
    }
}

const NOW: [(i64, i64); 2] = [(0, libc::UTIME_NOW); 2];

/// The descriptor that a path such as `/proc/self/fd/3` names. Here it would be one of ours.
fn own_descriptor(path: &CStr) -> Option<c_int> {
    let text = path.to_str().ok()?;
    text.strip_prefix("/proc/self/fd/").or_else(|| text.strip_prefix("/dev/fd/"))?.parse().ok()
}

/// The caller, by its directory in `/proc`.
struct Process(PathBuf);

impl Process {
    /// Opens a file of the caller; it is good for a place only.
    fn open_path(&self, name: &Path) -> io::Result<OwnedFd> {
        let flags = libc::O_PATH | libc::O_CLOEXEC;
        Ok(File::options().read(true).custom_flags(flags).open(self.0.join(name))?.into())
    }

    fn descriptor(&self, fd: c_int) -> io::Result<OwnedFd> {
        match fd {
            libc::AT_FDCWD => self.open_path(Path::new("cwd")),
            fd => {
                let found = self.open_path(Path::new(&format!("fd/{fd}")));
                found.map_err(|_| io::Error::from_raw_os_error(libc::EBADF))
            }
        }
    }

    /// The directory that a path starts from.
    fn base(&self, fd: c_int, path: &CStr) -> io::Result<OwnedFd> {
        if path.to_bytes().starts_with(b"/") {
            self.open_path(Path::new("root"))
        } else {
            self.descriptor(fd)
        }
    }

    /// Reads memory up to the end of a page, so that the page behind it need not exist.
    fn memory(&self, address: u64, most: usize) -> io::Result<Vec<u8>> {
        let memory = File::open(self.0.join("mem"))?;
        let mut bytes = vec![0; most.min((PAGE - address % PAGE) as usize)];
        let count = memory.read_at(&mut bytes, address)?;
        bytes.truncate(count);
        Ok(bytes)
    }

    /// A text that ends with a zero byte.
    fn text(&self, mut address: u64) -> io::Result<CString> {
        let mut text = Vec::new();
        while text.len() < PATH_MAX {
            let bytes = self.memory(address, PATH_MAX - text.len())?;
            if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
                text.extend(&bytes[..end]);
                return Ok(CString::new(text)?);
            }
            if bytes.is_empty() {
                return Err(io::Error::from_raw_os_error(libc::EFAULT));
            }
            address += bytes.len() as u64;
            text.extend(bytes);
        }
        Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG))
    }

    fn numbers<const N: usize>(&self, address: u64) -> io::Result<[i64; N]> {
        let mut bytes = Vec::new();
        while bytes.len() < 8 * N {
            let more = self.memory(address + bytes.len() as u64, 8 * N - bytes.len())?;
            if more.is_empty() {
                return Err(io::Error::from_raw_os_error(libc::EFAULT));
            }
            bytes.extend(more);
        }
        let mut numbers = [0; N];
        for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            *number = i64::from_ne_bytes(bytes.try_into().map_err(io::Error::other)?);
        }
        Ok(numbers)
    }

    /// Two times of seconds and a fraction; none is now.
    fn times(&self, address: u64, nanoseconds: i64) -> io::Result<[(i64, i64); 2]> {
        if address == 0 {
            return Ok(NOW);
        }
        let [access, access_fraction, change, change_fraction] = self.numbers(address)?;
        let fraction = |fraction: i64| fraction.saturating_mul(nanoseconds);
        Ok([(access, fraction(access_fraction)), (change, fraction(change_fraction))])
    }
}
