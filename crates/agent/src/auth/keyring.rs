//! The system's keyring, through its command-line program, so that no library is needed.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::model::Key;

/// The time limit, because a keyring may ask its user to unlock it.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The Secret Service of a desktop, through `secret-tool`.
#[derive(Debug, Clone)]
pub struct Keyring {
    program: PathBuf,
}

impl Keyring {
    /// The keyring of this desktop session, if there is one.
    pub fn find() -> Option<Self> {
        std::env::var_os("DBUS_SESSION_BUS_ADDRESS")?;
        let path = std::env::var_os("PATH")?;
        let program =
            std::env::split_paths(&path).map(|dir| dir.join("secret-tool")).find(|file| file.is_file())?;
        Some(Keyring { program })
    }

    /// A keyring behind this program.
    pub fn at(program: &Path) -> Self {
        Keyring { program: program.to_owned() }
    }

    pub(super) fn get(&self, id: &str) -> Option<Key> {
        Key::new(&self.run(&["lookup", "service", "attache", "provider", id], None)?)
    }

    /// Stores a key. Returns whether that worked. The key is passed through a pipe, which other
    /// users cannot see.
    pub(super) fn set(&self, id: &str, key: &Key) -> bool {
        let label = format!("--label=attache: {id}");
        let arguments = ["store", &label, "service", "attache", "provider", id];
        // Some keyrings accept everything and store nothing.
        self.run(&arguments, Some(key)).is_some() && self.get(id).as_ref() == Some(key)
    }

    pub(super) fn remove(&self, id: &str) -> bool {
        self.run(&["clear", "service", "attache", "provider", id], None).is_some()
    }

    /// The program's output, if it succeeds in time.
    fn run(&self, arguments: &[&str], input: Option<&Key>) -> Option<String> {
        let mut child = Command::new(&self.program)
            .args(arguments)
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        if let (Some(mut pipe), Some(key)) = (child.stdin.take(), input) {
            // A program that does not read fails anyway.
            let _ = pipe.write_all(key.reveal().as_bytes());
        }
        let done = wait(&mut child);
        let mut output = String::new();
        if done {
            child.stdout.take()?.read_to_string(&mut output).ok()?;
        }
        done.then_some(output)
    }
}

/// Whether the program succeeds in time. A key fits into a pipe's buffer, so the program cannot
/// block on its output.
fn wait(child: &mut Child) -> bool {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if start.elapsed() < TIMEOUT => std::thread::sleep(Duration::from_millis(10)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}
