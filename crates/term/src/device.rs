//! The terminal as a device: raw mode, restored however the program ends, and a reader of keys.

use std::io::{self, Write as _};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{Event, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use tokio::sync::mpsc;

use crate::output::locale_is_unicode;

/// Enables bracketed paste.
const ENTER: &[u8] = b"\x1b[?2004h";
/// Ends a synchronized frame and bracketed paste, shows the cursor, resets styles.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[?2004l\x1b[?25h\x1b[m";

/// Returns whether the terminal can move its cursor.
pub fn can_move_cursor() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

static RAW: AtomicBool = AtomicBool::new(false);

/// Raw mode, left on drop.
pub struct Raw(());

impl Raw {
    /// Enters raw mode and installs a panic hook that leaves it again.
    pub fn enter() -> io::Result<Raw> {
        static HOOK: Once = Once::new();
        // The panic message needs a terminal in its normal mode.
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
        });
        let raw = Raw(());
        raw.again()?;
        Ok(raw)
    }

    /// Enters raw mode again after another program has changed the terminal.
    pub fn again(&self) -> io::Result<()> {
        // crossterm would assume that raw mode is still on.
        disable_raw_mode()?;
        enable_raw_mode()?;
        RAW.store(true, Ordering::SeqCst);
        write(ENTER)
    }

    /// Restores the terminal and stops the whole job, as Ctrl-Z does. Returns when the shell continues the
    /// job, at once if there is no shell.
    #[cfg(unix)]
    pub fn suspend(&self) -> io::Result<()> {
        use rustix::process::{Signal, kill_current_process_group};
        restore();
        kill_current_process_group(Signal::TSTP)?;
        self.again()
    }

    #[cfg(not(unix))]
    pub fn suspend(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    if RAW.swap(false, Ordering::SeqCst) {
        let _ = write(LEAVE);
        let _ = disable_raw_mode();
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(bytes)?;
    out.flush()
}

/// Reads keys, pastes and sizes on a thread that ends with the process.
pub fn keys() -> io::Result<mpsc::Receiver<Event>> {
    let (sender, receiver) = mpsc::channel(64);
    std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
        while let Ok(event) = read() {
            if sender.blocking_send(event).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

/// Returns whether the locale uses Unicode.
pub fn is_unicode() -> bool {
    locale_is_unicode() == Some(true)
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use std::io::Read as _;
    use std::os::fd::AsFd as _;
    use std::process::Stdio;

    use super::*;

    /// Not a test of its own: it runs on a terminal of `a_panic_leaves_the_terminal_as_it_was`.
    #[test]
    #[ignore = "panics, on purpose"]
    fn panics_in_raw_mode() {
        let _raw = Raw::enter().unwrap();
        panic!("on purpose");
    }

    #[test]
    fn a_panic_leaves_the_terminal_as_it_was() {
        let (mut pty, pts) = pty_process::blocking::open().unwrap();
        let tty = || Stdio::from(pts.as_fd().try_clone_to_owned().unwrap());
        let mut command = pty_process::blocking::Command::new(std::env::current_exe().unwrap()).args([
            "--exact",
            "device::tests::panics_in_raw_mode",
            "--ignored",
            "--nocapture",
        ]);
        let mut child = command.spawn_borrowed(&pts).unwrap();
        assert!(!child.wait().unwrap().success());
        let state = std::process::Command::new("stty").arg("-a").stdin(tty()).output().unwrap();
        let state = String::from_utf8_lossy(&state.stdout).into_owned();
        for word in ["icanon", "echo", "isig", "opost"] {
            assert!(state.split([' ', ';', '\n']).any(|is| is == word), "{word} in {state}");
        }
        let (mut written, mut bytes) = (String::new(), [0; 4096]);
        while !written.contains("on purpose") || !written.contains("\x1b[?2004l") {
            let count = pty.read(&mut bytes).unwrap();
            written.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        let (entered, left) = (written.find("\x1b[?2004h").unwrap(), written.find("\x1b[?2004l").unwrap());
        // The terminal works again before the panic is reported.
        let told = written.find("on purpose").unwrap();
        assert!(entered < left && left < told, "{written:?}");
    }
}
