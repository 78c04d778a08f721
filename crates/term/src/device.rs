//! The terminal as a device: raw while the chat runs, as it was whatever ends it.

use std::io::{self, Write as _};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{Event, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use tokio::sync::mpsc;

use crate::output::locale_is_unicode;

/// Pastes come as one piece.
const ENTER: &[u8] = b"\x1b[?2004h";
/// No half-drawn frame, no bracketed paste, a cursor, no style.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[?2004l\x1b[?25h\x1b[m";

/// Returns whether the terminal can move its cursor.
pub fn can_move_cursor() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

static RAW: AtomicBool = AtomicBool::new(false);

/// As long as it lives the terminal is raw.
pub struct Raw(());

impl Raw {
    /// Enters raw mode and installs a panic hook that leaves it again.
    pub fn enter() -> io::Result<Raw> {
        static HOOK: Once = Once::new();
        // A panic is told on a terminal that works again.
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

    /// Makes the terminal raw again, whatever somebody else has made of it meanwhile.
    pub fn again(&self) -> io::Result<()> {
        // Otherwise it would be taken for raw still.
        disable_raw_mode()?;
        enable_raw_mode()?;
        RAW.store(true, Ordering::SeqCst);
        write(ENTER)
    }

    /// Gives the terminal back and stops, with the whole job, as Ctrl-Z does. Comes back when the job is continued; at once if nobody
    /// could continue it.
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

/// Keys, pastes and sizes, read by a thread that sleeps in between. It ends with the process.
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

/// The locale says whether characters are Unicode.
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
        // The terminal works again before the panic is told.
        let told = written.find("on purpose").unwrap();
        assert!(entered < left && left < told, "{written:?}");
    }
}
