//! The smallest program that can confine commands: the tests of the sandbox start it, and it shows
//! how `main` begins in a program that uses `attache_host::sandbox`.
//!
//! Without the hidden word it runs its arguments in a read-only sandbox that shows the current
//! directory.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            let _ = io::Write::write_all(&mut io::stderr(), format!("sandbox: {error}\n").as_bytes());
            ExitCode::from(125)
        }
    }
}

#[cfg(unix)]
fn run() -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt as _;

    use attache_host::sandbox::{self, Backend, Confinement};

    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|word| word == sandbox::WORD) {
        return sandbox::run(arguments.drain(1..)).map(ExitCode::from);
    }
    let own = std::env::current_exe()?;
    let backend =
        Backend::detect(&own).ok_or_else(|| io::Error::other("no sandbox works on this machine"))?;
    let line = Confinement::read_only([std::env::current_dir()?]).command(backend, &own, arguments);
    Err(std::process::Command::new(&line[0]).args(&line[1..]).exec())
}

#[cfg(not(unix))]
fn run() -> io::Result<ExitCode> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
