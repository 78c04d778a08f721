//! `attache check-bridge SOCKET`: what a client under test starts in place of an agent. It carries
//! bytes between its own pipes and the checker, and knows nothing of them.
//!
//! With more words after the socket it is the program of a login in a terminal: it reports to the
//! checker how it was started, and ends as the checker says.

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
    // A client may close its end early; the rest is not sent.
    let _ = carry(&stream, io::stdout().lock());
    Ok(())
}

/// Says what it was started with and ends with the code that comes back.
pub(crate) fn login(socket: &str, words: &[&str]) -> Result<()> {
    let mut stream = UnixStream::connect(socket).context(socket)?;
    let ours = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let env: serde_json::Map<String, serde_json::Value> = ours
        .filter(|(name, _)| name.starts_with("ATTACHE_CHECK_"))
        .map(|(name, value)| (name, value.into()))
        .collect();
    writeln!(stream, "{}", serde_json::json!({ "args": words, "env": env })).context(socket)?;
    let mut code = String::new();
    stream.read_to_string(&mut code).context(socket)?;
    std::process::exit(code.trim().parse().unwrap_or(1))
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
