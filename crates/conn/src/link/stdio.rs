//! The standard streams of this process.
//!
//! On Linux a pipe is opened a second time through `/proc/self/fd`, non-blocking: that gives a file
//! description of our own, so the flag never reaches the processes that share the first one (a
//! terminal's shell would be surprised). A socket, which node hands to its children, cannot be
//! opened again and is used with per-call flags instead. Everything else (files, terminals, other
//! systems) is read and written by threads.

use tokio::io::{AsyncRead, AsyncWrite};

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

#[cfg(not(unix))]
pub(super) use other::Stdio;
#[cfg(unix)]
pub(super) use unix::Stdio;

/// Whether this is the first call.
fn first_taker() -> bool {
    use std::sync::atomic::{AtomicBool, Ordering};
    static TAKEN: AtomicBool = AtomicBool::new(false);
    !TAKEN.swap(true, Ordering::SeqCst)
}

fn empty_streams() -> (Reader, Writer) {
    (Box::new(tokio::io::empty()), Box::new(tokio::io::sink()))
}

#[cfg(unix)]
mod unix {
    use super::{Reader, Writer, empty_streams, first_taker};
    use crate::link::threads;
    use crate::sys::stdio::redirect;
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::FileTypeExt;

    /// The standard streams, inaccessible to the rest of the process.
    pub(in crate::link) struct Stdio(Option<(OwnedFd, OwnedFd)>);

    impl Stdio {
        pub(in crate::link) fn take() -> Stdio {
            Stdio(if first_taker() { take_over().ok() } else { None })
        }

        /// Must be called within a runtime.
        pub(in crate::link) fn open(self) -> (Reader, Writer) {
            match self.0 {
                Some((input, output)) => (open_reader(input), open_writer(output)),
                None => empty_streams(),
            }
        }
    }

    // STDIO-08: private descriptors for the streams; the public numbers lead elsewhere.
    fn take_over() -> io::Result<(OwnedFd, OwnedFd)> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        // The streams are ours already. If the numbers cannot be led elsewhere the link works all
        // the same, only less protected.
        if let Ok(null) = File::open("/dev/null") {
            let _ = redirect(0, null.as_fd());
        }
        let _ = redirect(1, io::stderr().as_fd());
        Ok((input, output))
    }

    fn open_reader(input: OwnedFd) -> Reader {
        let input = File::from(input);
        match kind(&input) {
            #[cfg(target_os = "linux")]
            Kind::Pipe => {
                if let Ok(pipe) = super::linux::reopen_reader(&input) {
                    return Box::new(pipe);
                }
            }
            #[cfg(target_os = "linux")]
            Kind::Socket => {
                if let Ok(socket) = super::linux::Socket::reader(&input) {
                    return Box::new(socket);
                }
            }
            _ => {}
        }
        Box::new(threads::reader(input))
    }

    fn open_writer(output: OwnedFd) -> Writer {
        let output = File::from(output);
        match kind(&output) {
            #[cfg(target_os = "linux")]
            Kind::Pipe => {
                if let Ok(pipe) = super::linux::reopen_writer(&output) {
                    return Box::new(pipe);
                }
            }
            #[cfg(target_os = "linux")]
            Kind::Socket => {
                if let Ok(socket) = super::linux::Socket::writer(&output) {
                    return Box::new(socket);
                }
            }
            _ => {}
        }
        Box::new(threads::writer(output))
    }

    #[derive(Clone, Copy)]
    enum Kind {
        Pipe,
        Socket,
        Other,
    }

    fn kind(file: &File) -> Kind {
        match file.metadata().map(|metadata| metadata.file_type()) {
            Ok(kind) if kind.is_fifo() => Kind::Pipe,
            Ok(kind) if kind.is_socket() => Kind::Socket,
            _ => Kind::Other,
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use crate::sys::stdio::{grow_pipe, receive, send};
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd, AsRawFd, OwnedFd};
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};
    use tokio::io::unix::AsyncFd;
    use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
    use tokio::net::unix::pipe;

    /// A read of nearly all that a pipe of the usual size holds.
    const FULL_READ: usize = 60 << 10;
    /// After this many full reads in a row the pipe gets larger.
    const FULL_READS: u8 = 4;
    /// The size of the pipe then: what the system allows everybody.
    const LARGE_PIPE: usize = 1 << 20;

    pub(super) fn reopen_reader(file: &File) -> io::Result<PipeReader> {
        let inner = pipe::OpenOptions::new().open_receiver(path(file))?;
        Ok(PipeReader { inner, full_reads: 0 })
    }

    pub(super) fn reopen_writer(file: &File) -> io::Result<pipe::Sender> {
        pipe::OpenOptions::new().open_sender(path(file))
    }

    fn path(file: &File) -> String {
        format!("/proc/self/fd/{}", file.as_raw_fd())
    }

    /// A pipe that gets larger when large messages arrive: each full pipe costs the sender and the
    /// receiver a wake-up.
    ///
    /// Pipes for small messages keep their size, because all pipes of a user share a limit.
    pub(super) struct PipeReader {
        inner: pipe::Receiver,
        /// The number of full reads in a row; `FULL_READS` once the pipe was made larger.
        full_reads: u8,
    }

    impl AsyncRead for PipeReader {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
            if self.full_reads < FULL_READS {
                let is_full = buffer.filled().len() - before >= FULL_READ;
                self.full_reads = if is_full { self.full_reads + 1 } else { 0 };
                if self.full_reads == FULL_READS {
                    grow_pipe(self.inner.as_fd(), LARGE_PIPE);
                }
            }
            Poll::Ready(Ok(()))
        }
    }

    /// A socket whose file description is shared with others and stays in the mode they gave it.
    pub(super) struct Socket(AsyncFd<OwnedFd>);

    impl Socket {
        pub(super) fn reader(file: &File) -> io::Result<Socket> {
            Socket::watch(file, Interest::READABLE)
        }

        pub(super) fn writer(file: &File) -> io::Result<Socket> {
            Socket::watch(file, Interest::WRITABLE)
        }

        #[allow(
            deprecated,
            reason = "an owned descriptor keeps the promise that the newer, unsafe name asks for"
        )]
        fn watch(file: &File, interest: Interest) -> io::Result<Socket> {
            let fd = file.as_fd().try_clone_to_owned()?;
            AsyncFd::with_interest(fd, interest).map(Socket)
        }
    }

    impl AsyncRead for Socket {
        fn poll_read(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            loop {
                let mut ready = ready!(self.0.poll_read_ready(cx))?;
                let asked = buffer.remaining();
                match receive(self.0.get_ref().as_fd(), buffer) {
                    Ok(count) => {
                        // Less than asked for means that the socket is empty now; asking again
                        // would only say so.
                        if 0 < count && count < asked {
                            ready.clear_ready();
                        }
                        return Poll::Ready(Ok(()));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        }
    }

    impl AsyncWrite for Socket {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            loop {
                let mut ready = ready!(self.0.poll_write_ready(cx))?;
                match send(self.0.get_ref().as_fd(), bytes) {
                    Ok(count) => {
                        if 0 < count && count < bytes.len() {
                            ready.clear_ready();
                        }
                        return Poll::Ready(Ok(count));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            // The end of the process closes it for the peer; until then others may share it.
            Poll::Ready(Ok(()))
        }
    }

    #[cfg(test)]
    #[allow(clippy::unwrap_used)]
    mod tests {
        use super::{FULL_READS, LARGE_PIPE, reopen_reader};
        use crate::sys::stdio::pipe_size;
        use std::fs::File;
        use std::io::Write;
        use std::os::fd::{AsFd, OwnedFd};
        use tokio::io::AsyncReadExt;

        /// Sends `bytes` in pieces through a pipe. Returns what arrived and the size of the pipe.
        async fn send(bytes: &[u8], piece: usize) -> (Vec<u8>, usize) {
            let (reader, mut writer) = std::io::pipe().unwrap();
            let mut pipe = reopen_reader(&File::from(OwnedFd::from(reader))).unwrap();
            let mut received = vec![0; bytes.len()];
            for (sent, into) in bytes.chunks(piece).zip(received.chunks_mut(piece)) {
                writer.write_all(sent).unwrap();
                pipe.read_exact(into).await.unwrap();
            }
            (received, pipe_size(pipe.inner.as_fd()).unwrap())
        }

        #[tokio::test]
        async fn a_pipe_grows_for_large_messages_only() {
            let bytes: Vec<u8> = (0..8 << 16).map(|at: u32| at as u8).collect();
            let (received, small) = send(&bytes, 1000).await;
            assert_eq!(received, bytes);
            let (received, large) = send(&bytes, small).await;
            assert_eq!(received, bytes);
            let allowed = std::fs::read_to_string("/proc/sys/fs/pipe-max-size").unwrap();
            let allowed: usize = allowed.trim().parse().unwrap();
            assert!(bytes.len() / small >= usize::from(FULL_READS));
            assert_eq!(large, if allowed >= LARGE_PIPE { LARGE_PIPE } else { small });
            assert!(small < LARGE_PIPE);
        }
    }
}

#[cfg(not(unix))]
mod other {
    use super::{Reader, Writer, empty_streams, first_taker};
    use crate::link::threads;

    /// The standard streams, which stay accessible to the whole process here.
    pub(in crate::link) struct Stdio(bool);

    impl Stdio {
        pub(in crate::link) fn take() -> Stdio {
            Stdio(first_taker())
        }

        pub(in crate::link) fn open(self) -> (Reader, Writer) {
            if !self.0 {
                return empty_streams();
            }
            (Box::new(threads::reader(std::io::stdin())), Box::new(threads::writer(std::io::stdout())))
        }
    }
}
