//! The terminal as a device: raw mode, restored however the program ends, and a reader of keys.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::event::Event;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use tokio::sync::mpsc;

use crate::output::locale_is_unicode;
use crate::render::text::Look;

/// Enables bracketed paste.
const ENTER: &[u8] = b"\x1b[?2004h";
/// Ends a synchronized frame and bracketed paste, shows the cursor, resets styles.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[?2004l\x1b[?25h\x1b[m";
/// Asks for keys that can be told apart, such as Shift-Enter and Enter (kitty keyboard protocol).
const DISTINCT_KEYS: &[u8] = b"\x1b[>1u";
const PLAIN_KEYS: &[u8] = b"\x1b[<1u";

/// Returns whether the terminal can move its cursor.
pub fn can_move_cursor() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Returns whether unknown sequences are ignored. The Linux console takes the one for keys as
/// "restore the cursor".
fn ignores_unknown_sequences() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "linux")
}

/// Returns what the terminal at standard output can show.
pub fn look() -> Look {
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    Look { colours, unicode: is_unicode() }
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
        let first = !RAW.swap(true, Ordering::SeqCst);
        if first && ignores_unknown_sequences() {
            write(DISTINCT_KEYS)?;
        }
        write(ENTER)
    }

    /// Restores the terminal for another program, until [`again`](Self::again).
    pub fn release(&self) {
        restore();
    }

    /// Restores the terminal and stops the whole job, as Ctrl-Z does. Returns when the shell
    /// continues the job, at once if there is no shell.
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
        if ignores_unknown_sequences() {
            let _ = write(PLAIN_KEYS);
        }
        let _ = disable_raw_mode();
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(bytes)?;
    out.flush()
}

/// Keys, pastes and sizes, read on a thread that ends with the process.
pub struct Keys {
    events: mpsc::Receiver<Event>,
    /// Events that arrived while the reader was being paused.
    early: VecDeque<Event>,
    #[cfg(unix)]
    pause: reader::Pause,
}

impl Keys {
    /// Starts to read.
    pub fn read() -> io::Result<Keys> {
        let (sender, events) = mpsc::channel(64);
        #[cfg(unix)]
        return Ok(Keys { events, early: VecDeque::new(), pause: reader::start(sender)? });
        #[cfg(not(unix))]
        {
            std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
                while let Ok(event) = crossterm::event::read() {
                    if sender.blocking_send(event).is_err() {
                        return;
                    }
                }
            })?;
            Ok(Keys { events, early: VecDeque::new() })
        }
    }

    /// Waits for the next event; `None` when the terminal is gone. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        match self.early.pop_front() {
            Some(event) => Some(event),
            None => self.events.recv().await,
        }
    }

    /// Discards the events that were not taken.
    pub fn forget(&mut self) {
        self.early.clear();
        while self.events.try_recv().is_ok() {}
    }

    /// Leaves the keys to another program, until [`resume`](Self::resume).
    pub fn pause(&mut self) -> io::Result<()> {
        #[cfg(unix)]
        self.pause.begin(&mut self.events, &mut self.early)?;
        Ok(())
    }

    /// Reads again after [`pause`](Self::pause).
    pub fn resume(&mut self) {
        #[cfg(unix)]
        self.pause.end();
    }
}

/// Does what Ctrl-C does in the terminal's normal mode.
#[cfg(unix)]
pub fn interrupt() -> io::Result<()> {
    use rustix::process::{Signal, getpid, kill_process};
    Ok(kill_process(getpid(), Signal::INT)?)
}

/// Reads a line in the terminal's normal mode; `None` at the end of the input. Cancel-safe: a line
/// that is not complete stays in the terminal.
#[cfg(unix)]
pub async fn read_line() -> Option<String> {
    use std::os::fd::AsRawFd as _;

    use filedescriptor::{POLLIN, pollfd};

    let (open, closed) = std::os::unix::net::UnixStream::pair().ok()?;
    let (sender, line) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("line".to_owned())
        .spawn(move || {
            let fds = [io::stdin().as_raw_fd(), closed.as_raw_fd()];
            loop {
                let mut wanted = fds.map(|fd| pollfd { fd, events: POLLIN, revents: 0 });
                match filedescriptor::poll(&mut wanted, None) {
                    Ok(_) => {}
                    Err(filedescriptor::Error::Poll(error)) if error.kind() == io::ErrorKind::Interrupted => {
                        continue;
                    }
                    Err(_) => return,
                }
                let [typed, given_up] = wanted;
                if given_up.revents != 0 {
                    return;
                }
                if typed.revents != 0 {
                    break;
                }
            }
            let mut text = String::new();
            let read = io::stdin().read_line(&mut text);
            let _ = sender.send(read.is_ok_and(|count| count > 0).then_some(text));
        })
        .ok()?;
    let line = line.await.ok().flatten();
    drop(open);
    line
}

/// A reader that can be paused: a thread in a read would take the next key from an editor that has
/// the terminal.
#[cfg(unix)]
mod reader {
    use std::collections::VecDeque;
    use std::io::{self, Read as _, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc as sync;
    use std::time::Duration;

    use crossterm::event::{Event, poll, read};
    use filedescriptor::{POLLIN, pollfd};
    use tokio::sync::mpsc;

    /// How long the reader looks for the next event after it was woken.
    const LOOK: Duration = Duration::from_millis(5);

    /// Pauses the reader.
    pub(super) struct Pause {
        requests: UnixStream,
        paused: sync::Receiver<()>,
        resume: sync::SyncSender<()>,
    }

    impl Pause {
        /// Returns when the reader does not read any more. Events that it still had to deliver go
        /// to `early`.
        pub(super) fn begin(
            &mut self,
            events: &mut mpsc::Receiver<Event>,
            early: &mut VecDeque<Event>,
        ) -> io::Result<()> {
            self.requests.write_all(b"p")?;
            loop {
                match self.paused.recv_timeout(Duration::from_millis(5)) {
                    Ok(()) => return Ok(()),
                    Err(sync::RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::BrokenPipe.into()),
                    // The reader may wait for room in the channel.
                    Err(sync::RecvTimeoutError::Timeout) => {
                        while let Ok(event) = events.try_recv() {
                            early.push_back(event);
                        }
                    }
                }
            }
        }

        pub(super) fn end(&mut self) {
            // A reader that has ended needs no permission.
            let _ = self.resume.send(());
        }
    }

    pub(super) fn start(sender: mpsc::Sender<Event>) -> io::Result<Pause> {
        let (requests, mut requested) = UnixStream::pair()?;
        let (announce, paused) = sync::sync_channel(1);
        let (resume, resumed) = sync::sync_channel(1);
        let fds = [io::stdin().as_raw_fd(), requested.as_raw_fd()];
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || {
            loop {
                let mut wanted = fds.map(|fd| pollfd { fd, events: POLLIN, revents: 0 });
                match filedescriptor::poll(&mut wanted, None) {
                    Ok(_) => {}
                    // A signal came; a size that changed is reported by the event loop.
                    Err(filedescriptor::Error::Poll(error)) if error.kind() == io::ErrorKind::Interrupted => {
                        continue;
                    }
                    Err(_) => return,
                }
                let [keys, request] = wanted;
                if request.revents != 0 {
                    let asked = requested.read(&mut [0]).is_ok_and(|count| count > 0);
                    if !asked || announce.send(()).is_err() || resumed.recv().is_err() {
                        return;
                    }
                    continue;
                }
                if keys.revents == 0 {
                    continue;
                }
                // Without a time to wait crossterm does not look at the terminal at all.
                while let Ok(true) = poll(LOOK) {
                    let Ok(event) = read() else { return };
                    if sender.blocking_send(event).is_err() {
                        return;
                    }
                }
                if keys.revents & POLLIN == 0 {
                    // The terminal is gone.
                    return;
                }
            }
        })?;
        Ok(Pause { requests, paused, resume })
    }
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
        let message = written.find("on purpose").unwrap();
        assert!(entered < left && left < message, "{written:?}");
    }
}
