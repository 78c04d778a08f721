//! The program in a plain terminal: what it prints as text, and keys to answer with.

use std::io::{Read as _, Write as _};
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use pty_process::Size;
use pty_process::blocking::{Command, Pts, Pty, open};

use super::world::World;

/// How long something may take that takes no time.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Printed {
    text: Mutex<String>,
    changed: Condvar,
}

pub(crate) struct Terminal {
    pty: Arc<Pty>,
    /// Held, so that what was printed last can still be read when the program has ended.
    pts: Pts,
    child: Child,
    printed: Arc<Printed>,
    /// How far it has been looked at.
    seen: usize,
}

impl Terminal {
    pub(crate) fn start(world: &World, args: &[&str], env: &[(&str, &str)]) -> Terminal {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(50, 200)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_attache"))
            .env("ATTACHE_HOME", world.home())
            .env("TERM", "xterm")
            .env("LANG", "C.UTF-8")
            .env("NO_COLOR", "1")
            .env("COLUMNS", "100")
            .envs(env.iter().copied())
            .current_dir(&world.dir)
            .args(args);
        let child = command.spawn_borrowed(&pts).unwrap();
        let (pty, printed) = (Arc::new(pty), Arc::new(Printed::default()));
        let (reader, into) = (pty.clone(), printed.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = (&*reader).read(&mut bytes) {
                into.text.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
                into.changed.notify_all();
            }
        });
        Terminal { pty, pts, child, printed, seen: 0 }
    }

    /// Waits until this is printed, behind what was waited for before.
    #[track_caller]
    pub(crate) fn sees(&mut self, wanted: &str) {
        let text = self.printed.text.lock().unwrap();
        let seen = self.seen;
        let found = |text: &str| text[seen..].find(wanted).map(|at| seen + at + wanted.len());
        let (text, _) =
            self.printed.changed.wait_timeout_while(text, LIMIT, |text| found(text).is_none()).unwrap();
        match found(&text) {
            Some(at) => self.seen = at,
            None => panic!("`{wanted}` never came:\n{}", *text),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn keys(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for the end; gives all that was printed.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        // The reader comes to an end when no process has the terminal open.
        drop(self.pts);
        let mut text = self.printed.text.lock().unwrap();
        // What is printed last may still be on its way; nothing else is waited for.
        loop {
            let before = text.len();
            let (after, waited) =
                self.printed.changed.wait_timeout(text, Duration::from_millis(200)).unwrap();
            text = after;
            if waited.timed_out() && text.len() == before {
                return (status, text.clone());
            }
        }
    }
}
