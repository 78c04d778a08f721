//! Questions of a seccomp filter to a supervisor, and descriptors that go from one process to
//! another. See seccomp_unotify(2).

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use libc::{c_int, c_long, c_ulong};

use super::checked;

/// A system call that waits for a verdict.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    id: u64,
    /// The thread that made the call.
    pub(crate) thread: u32,
    pub(crate) call: c_long,
    pub(crate) arguments: [u64; 6],
}

#[repr(C)]
struct Notification {
    id: u64,
    pid: u32,
    flags: u32,
    number: c_int,
    architecture: u32,
    instruction: u64,
    arguments: [u64; 6],
}

#[repr(C)]
struct Answer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

const RECEIVE: c_ulong = 0xc050_2100;
const SEND: c_ulong = 0xc018_2101;
const IS_VALID: c_ulong = 0x4008_2102;

/// Takes the next question. It fails if the caller was killed meanwhile.
pub(crate) fn receive(listener: BorrowedFd<'_>) -> io::Result<Question> {
    // SAFETY: the kernel demands a zeroed structure and fills it in.
    let notification = unsafe {
        let mut notification: Notification = mem::zeroed();
        checked(libc::ioctl(listener.as_raw_fd(), RECEIVE as _, &raw mut notification))?;
        notification
    };
    Ok(Question {
        id: notification.id,
        thread: notification.pid,
        call: c_long::from(notification.number),
        arguments: notification.arguments,
    })
}

/// Whether the caller still waits, so that what was read of its memory and descriptors was its own.
pub(crate) fn still_waits(listener: BorrowedFd<'_>, question: &Question) -> bool {
    // SAFETY: the kernel reads one number.
    unsafe { libc::ioctl(listener.as_raw_fd(), IS_VALID as _, &raw const question.id) == 0 }
}

/// Lets a call return zero, or an error. A caller that is gone needs none.
pub(crate) fn answer(listener: BorrowedFd<'_>, question: &Question, result: Result<(), c_int>) {
    let error = result.err().map_or(0, |error| -error);
    let answer = Answer { id: question.id, value: 0, error, flags: 0 };
    // SAFETY: the kernel reads one structure.
    unsafe { libc::ioctl(listener.as_raw_fd(), SEND as _, &raw const answer) };
}

/// Opens a path as the caller of a system call would: relative to `base`, but through no magic
/// link. It is good for a place only.
pub(crate) fn open_for(base: BorrowedFd<'_>, path: &std::ffi::CStr, follow: bool) -> io::Result<OwnedFd> {
    let flags = if follow { 0 } else { libc::O_NOFOLLOW };
    super::mount::open_path(base, path, flags, libc::RESOLVE_NO_MAGICLINKS)
}

/// Sets the times of last access and modification, in seconds and nanoseconds.
pub(crate) fn set_times(path: &Path, times: [(i64, i64); 2]) -> io::Result<()> {
    let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes())?;
    let times = times
        .map(|(seconds, nanoseconds)| libc::timespec { tv_sec: seconds as _, tv_nsec: nanoseconds as _ });
    // SAFETY: the path ends with a zero byte; two times are read.
    checked(unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), times.as_ptr(), 0) })
}

/// Room for one descriptor in a message, aligned as its header demands.
#[repr(C)]
union Room {
    header: libc::cmsghdr,
    bytes: [u8; 64],
}

fn message<'a>(part: &'a mut libc::iovec, room: &'a mut Room) -> libc::msghdr {
    // SAFETY: the header is plain data.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = std::ptr::from_mut(room).cast();
    // SAFETY: a computation.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<c_int>() as u32) } as _;
    message
}

/// Sends a descriptor over a connected Unix socket.
pub(crate) fn send_descriptor(socket: BorrowedFd<'_>, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let mut byte = [0_u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut room = Room { bytes: [0; 64] };
    let message = message(&mut part, &mut room);
    // SAFETY: the message has room for one header with one descriptor, which is written before it
    // is sent.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
        libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(descriptor.as_raw_fd());
        match libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_NOSIGNAL) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// Receives what [`send_descriptor`] sent; `None` if the other side was closed.
pub(crate) fn receive_descriptor(socket: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0_u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut room = Room { bytes: [0; 64] };
    let mut message = message(&mut part, &mut room);
    // SAFETY: the kernel writes within the lengths that the message states; a header is read only
    // if there is one.
    unsafe {
        let count = loop {
            let count = libc::recvmsg(socket.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC);
            if count >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break count;
            }
        };
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        let header = libc::CMSG_FIRSTHDR(&message);
        if header.is_null() || (*header).cmsg_type != libc::SCM_RIGHTS {
            return Ok(None);
        }
        let fd = libc::CMSG_DATA(header).cast::<c_int>().read_unaligned();
        Ok(Some(OwnedFd::from_raw_fd(fd)))
    }
}
