//! The terminal as a device: raw while the chat runs, as it was whatever ends it.

use std::io::{self, Write as _};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::{Event, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use tokio::sync::mpsc;

/// Pastes come as one piece.
const ENTER: &[u8] = b"\x1b[?2004h";
/// No half-drawn frame, no bracketed paste, a cursor, no style.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[?2004l\x1b[?25h\x1b[m";

static RAW: AtomicBool = AtomicBool::new(false);

/// As long as it lives the terminal is raw.
pub(crate) struct Raw(());

impl Raw {
    pub(crate) fn enter() -> io::Result<Raw> {
        static HOOK: Once = Once::new();
        // A panic is told on a terminal that works again.
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
        });
        enable_raw_mode()?;
        RAW.store(true, Ordering::SeqCst);
        let raw = Raw(());
        write(ENTER)?;
        Ok(raw)
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
pub(crate) fn keys() -> io::Result<mpsc::Receiver<Event>> {
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

/// Opens a page in the user's browser.
pub(crate) fn browse(url: &str) -> io::Result<()> {
    use std::process::{Command, Stdio};
    let browser = std::env::var("BROWSER").ok().filter(|browser| !browser.is_empty());
    let program = browser.unwrap_or_else(|| {
        if cfg!(target_os = "macos") {
            "open".to_owned()
        } else if cfg!(windows) {
            "explorer".to_owned()
        } else {
            "xdg-open".to_owned()
        }
    });
    let mut child = Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    // Somebody has to wait for it, or it stays as a zombie.
    std::thread::Builder::new().name("browser".to_owned()).spawn(move || drop(child.wait()))?;
    Ok(())
}

/// The locale says whether characters are Unicode.
pub(crate) fn is_unicode() -> bool {
    if cfg!(windows) {
        return true;
    }
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG")).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}
