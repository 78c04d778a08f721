//! `attache check-bridge SOCKET`: what a client under test starts in place of an agent. It carries bytes between its own pipes and
//! the checker, and knows nothing of them.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use crate::error::{Context as _, Result};

/// Carries bytes until the checker has closed its side.
pub(crate) fn bridge(socket: &str) -> Result<()> {
    let stream = UnixStream::connect(socket).context(socket)?;
    let to_checker = stream.try_clone().context(socket)?;
    // Not waited for: it sits in a read that only the client can end.
    std::thread::spawn(move || {
        let _ = carry(io::stdin().lock(), &to_checker);
        let _ = to_checker.shutdown(Shutdown::Write);
    });
    // A client that has closed its end hears no more; that is its right.
    let _ = carry(&stream, io::stdout().lock());
    Ok(())
}

/// Each piece is handed on as it came.
fn carry(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut chunk = vec![0; 64 << 10];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&chunk[..count])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
