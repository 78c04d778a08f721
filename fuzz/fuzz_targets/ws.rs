//! Any bytes of a WebSocket peer: reading them never panics, the lines do not depend on how the
//! bytes are cut, and what is written in return is read as frames by the other role.
#![no_main]

use attache_http::ws::{self, Role, Settings};
use libfuzzer_sys::fuzz_target;
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    let Some((&[first, second], bytes)) = data.split_first_chunk::<2>() else { return };
    let role = if first & 1 == 0 { Role::Client } else { Role::Server };
    let (lines, failed, answers) = read(role, bytes, bytes.len().max(1));
    let (again, failed_again, _) = read(role, bytes, usize::from(second).max(1));
    assert_eq!(lines, again);
    assert_eq!(failed, failed_again);
    // Pongs and close frames are valid for the other end.
    let other = if role == Role::Client { Role::Server } else { Role::Client };
    let (lines, failed, _) = read(other, &answers, answers.len().max(1));
    assert!(lines.is_empty());
    // Only the close frame of a violation is reported.
    assert!(matches!(failed, None | Some(io::ErrorKind::ConnectionAborted)), "{failed:?}");
});

type Outcome = (Vec<Vec<u8>>, Option<io::ErrorKind>, Vec<u8>);

/// Reads all lines of bytes that arrive in pieces.
fn read(role: Role, bytes: &[u8], piece: usize) -> Outcome {
    let written = Arc::new(Mutex::new(Vec::new()));
    let socket = Script { pieces: bytes.chunks(piece).map(<[u8]>::to_vec).collect(), written: Arc::clone(&written) };
    let (lines, failed) = RUNTIME.with(|runtime| {
        let runtime = runtime.get_or_init(|| Builder::new_current_thread().enable_time().build().expect("a runtime"));
        runtime.block_on(async {
            let (mut reader, _writer) = ws::link(socket, role, Settings::default(), Vec::new()).split();
            let mut lines = Vec::new();
            loop {
                match reader.next().await {
                    // Whitespace around a message depends on where a line feed was cut.
                    Ok(Some(line)) => lines.push(line.trim_ascii().to_vec()),
                    Ok(None) => return (lines, None),
                    // The end within a message is no fault of the codec.
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return (lines, None),
                    Err(error) => return (lines, Some(error.kind())),
                }
            }
        })
    });
    let written = written.lock().expect("no panic").clone();
    (lines, failed, written)
}

/// A socket that returns given pieces and keeps what is written.
struct Script {
    pieces: VecDeque<Vec<u8>>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl AsyncRead for Script {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(mut piece) = self.pieces.pop_front() {
            let count = piece.len().min(buf.remaining());
            buf.put_slice(&piece[..count]);
            if count < piece.len() {
                self.pieces.push_front(piece.split_off(count));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.written.lock().expect("no panic").extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
