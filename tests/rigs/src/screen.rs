//! A program on a pseudo terminal, and the screen that a person would see.

use std::io::{Read as _, Write as _};
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pty_process::blocking::{Command, Pts, Pty, open};

/// A running program with its screen. Dropping it ends the program.
pub struct Screen {
    pty: Arc<Pty>,
    /// Kept open, so that output can still be read after the program has ended.
    _pts: Pts,
    child: Child,
    state: Arc<State>,
    started: Instant,
}

struct State {
    parser: Mutex<vt100::Parser>,
    changed: Condvar,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, vt100::Parser> {
        self.parser.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Screen {
    /// Starts a program on a terminal of this size.
    pub fn start(command: Command, rows: u16, columns: u16) -> Result<Screen, String> {
        let failed = |error: pty_process::Error| format!("the terminal: {error}");
        let (pty, pts) = open().map_err(failed)?;
        pty.resize(pty_process::Size::new(rows, columns)).map_err(failed)?;
        let started = Instant::now();
        let mut command = command;
        let child = command.spawn_borrowed(&pts).map_err(failed)?;
        let parser = Mutex::new(vt100::Parser::new(rows, columns, 0));
        let (pty, state) = (Arc::new(pty), Arc::new(State { parser, changed: Condvar::new() }));
        let (reader, shown) = (pty.clone(), state.clone());
        // The thread ends when both ends of the terminal are closed, at the latest with this
        // process.
        std::thread::spawn(move || {
            let mut bytes = [0; 1 << 16];
            while let Ok(count @ 1..) = (&*reader).read(&mut bytes) {
                shown.lock().process(&bytes[..count]);
                shown.changed.notify_all();
            }
        });
        Ok(Screen { pty, _pts: pts, child, state, started })
    }

    /// The process id of the program.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Types.
    pub fn keys(&self, keys: &str) -> Result<(), String> {
        (&*self.pty).write_all(keys.as_bytes()).map_err(|error| format!("the terminal: {error}"))
    }

    /// Waits until the screen is as `seen` wants, and returns the time since the start of the
    /// program.
    pub fn wait(
        &self,
        what: &str,
        limit: Duration,
        seen: impl Fn(&vt100::Screen) -> bool,
    ) -> Result<Duration, String> {
        let (parser, _) = self
            .state
            .changed
            .wait_timeout_while(self.state.lock(), limit, |parser| !seen(parser.screen()))
            .unwrap_or_else(PoisonError::into_inner);
        if seen(parser.screen()) {
            Ok(self.started.elapsed())
        } else {
            Err(format!("the screen never showed {what}:\n{}", parser.screen().contents()))
        }
    }

    /// Looks at the screen.
    pub fn look<T>(&self, see: impl FnOnce(&vt100::Screen) -> T) -> T {
        see(self.state.lock().screen())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
