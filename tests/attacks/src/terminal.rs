//! The program on a terminal, and a user who types.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::Child;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};

use crate::world::{PATIENCE, World};

/// Written to the terminal after everything that the program wrote.
const END: &str = "<the end of the program>";

pub(crate) struct Terminal {
    pty: Arc<Pty>,
    pieces: mpsc::Receiver<Vec<u8>>,
    seen: Vec<u8>,
    /// Where the search for the next text begins.
    at: usize,
    ended: bool,
    pid: u32,
}

impl Terminal {
    /// Starts the program on a terminal of its own.
    pub(crate) fn start(world: &World<'_>, args: &[&str]) -> Terminal {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(50, 120)).unwrap();
        let mut command = Command::new(&world.suite.program)
            .args(args)
            .current_dir(&world.dir)
            .env_clear()
            .env("TERM", "xterm-256color")
            .env("BROWSER", "true");
        for (name, value) in world.env() {
            command = command.env(name, value);
        }
        // Held until the end, so that what was written last can still be read.
        let mut child: Child = command.spawn_borrowed(&pts).unwrap();
        let pid = child.id();
        let pty = Arc::new(pty);
        let (send, pieces) = mpsc::channel();
        let reader = pty.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 16 << 10];
            while let Ok(count @ 1..) = (&*reader).read(&mut bytes) {
                if send.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut tty = File::from(pts.as_fd().try_clone_to_owned().unwrap());
        std::thread::spawn(move || {
            let _ = child.wait();
            let _ = tty.write_all(END.as_bytes());
            drop(pts);
        });
        Terminal { pty, pieces, seen: Vec::new(), at: 0, ended: false, pid }
    }

    /// Reads until a text appears after what was looked for before. Returns whether it did before
    /// the program ended.
    pub(crate) fn sees(&mut self, text: &str) -> bool {
        let start = Instant::now();
        loop {
            let rest = &self.seen[self.at..];
            if let Some(found) = rest.windows(text.len()).position(|part| part == text.as_bytes()) {
                self.at += found + text.len();
                return true;
            }
            if self.ended || start.elapsed() > PATIENCE || !self.read() {
                return false;
            }
        }
    }

    /// Types something at once.
    pub(crate) fn types(&self, text: &str) {
        let _ = (&*self.pty).write_all(text.as_bytes());
    }

    /// Types something after a question stood long enough to be read.
    pub(crate) fn answers(&mut self, text: &str) {
        let until = Instant::now() + Duration::from_millis(600);
        while let Some(rest) = until.checked_duration_since(Instant::now()) {
            match self.pieces.recv_timeout(rest) {
                Ok(piece) => self.keep(&piece),
                Err(_) => break,
            }
        }
        self.types(text);
    }

    fn read(&mut self) -> bool {
        match self.pieces.recv_timeout(PATIENCE) {
            Ok(piece) => {
                self.keep(&piece);
                true
            }
            Err(_) => false,
        }
    }

    fn keep(&mut self, piece: &[u8]) {
        self.seen.extend_from_slice(piece);
        if self.seen.ends_with(END.as_bytes()) {
            self.seen.truncate(self.seen.len() - END.len());
            self.ended = true;
        }
    }

    /// Reads to the end of the program and gives everything that the terminal got. Questions get
    /// these answers, the last one again and again.
    pub(crate) fn finish(mut self, answers: &[&str]) -> Finished {
        let start = Instant::now();
        let mut answers = answers.iter().peekable();
        let mut answer = "n\r";
        let mut first = String::new();
        while !self.ended && start.elapsed() < PATIENCE {
            if is_question(&self.seen[self.at..]) {
                self.at = self.seen.len();
                if first.is_empty() {
                    first = self.text();
                }
                answer = answers.next().copied().unwrap_or(answer);
                self.answers(answer);
                continue;
            }
            if !self.read() {
                break;
            }
        }
        let hung = !self.ended;
        if hung && let Some(pid) = rustix::process::Pid::from_raw(self.pid.cast_signed()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        Finished { text: String::from_utf8_lossy(&self.seen).into_owned(), first, hung }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }
}

/// What a terminal got until the end of the program.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) text: String,
    /// What it had got when the first question was answered.
    pub(crate) first: String,
    pub(crate) hung: bool,
}

/// Whether the program waits for an answer in its last line.
fn is_question(seen: &[u8]) -> bool {
    let start = seen.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = String::from_utf8_lossy(&seen[start..]).into_owned();
    let line = plain(&line);
    line.starts_with("? ")
        || line.contains("[y/n]")
        || line.contains("--more--")
        || line.contains("Trust it?")
}

/// A text without escape sequences.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\x1b' {
            plain.push(c);
            continue;
        }
        if rest.next() == Some('[') {
            for c in rest.by_ref() {
                if ('\x40'..='\x7e').contains(&c) {
                    break;
                }
            }
        }
    }
    plain
}
