//! The program on a terminal: all bytes that it writes, and answers to what it asks.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};

use super::clean_cases::COLUMNS;
use super::world::World;

/// Nothing here takes as long; what does, hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// No command asks as often, unless it does not take the answers.
const MOST_ANSWERS: usize = 500;

/// Written after everything that the program wrote.
const END: &str = "<the end of the program>";

/// A terminal on which questions are answered with keys.
pub(crate) const WITH_KEYS: &str = "xterm-256color";

/// A terminal that cannot move its cursor, where each answer is a line.
pub(crate) const WITH_LINES: &str = "dumb";

/// What is typed when the last line on the terminal contains this.
pub(crate) type Answers<'a> = &'a [(&'a str, &'a str)];

/// Runs the program on a terminal to its end and gives what the terminal got.
#[track_caller]
pub(crate) fn run(world: &World, term: &str, args: &[&str], answers: Answers<'_>) -> Vec<u8> {
    let (pty, pts) = open().unwrap();
    pty.resize(Size::new(40, COLUMNS)).unwrap();
    let plain = world.command(args);
    let mut command = Command::new(plain.get_program())
        .args(plain.get_args())
        .current_dir(plain.get_current_dir().unwrap())
        .env("TERM", term)
        .env("LC_ALL", "C.UTF-8")
        .env("BROWSER", "true");
    for (name, value) in plain.get_envs() {
        command = match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    // Held until the end, so that what was written last can still be read.
    let mut child = command.spawn_borrowed(&pts).unwrap();
    let pty = Arc::new(pty);
    let (send, pieces) = mpsc::channel();
    let reader = pty.clone();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = (&*reader).read(&mut bytes) {
            if send.send(bytes[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    // The end of the program is reported through the terminal, after its last output.
    let mut tty = File::from(pts.as_fd().try_clone_to_owned().unwrap());
    let waiting = std::thread::spawn(move || {
        child.wait().unwrap();
        tty.write_all(END.as_bytes()).unwrap();
        drop(pts);
    });
    let mut seen = Vec::new();
    let (mut answered, mut answers_given) = (0, 0);
    loop {
        match pieces.recv_timeout(PATIENCE) {
            Ok(piece) => seen.extend_from_slice(&piece),
            Err(_) => {
                let tail = seen.len().saturating_sub(2000);
                panic!("{args:?} hangs; the end was:\n{}", String::from_utf8_lossy(&seen[tail..]));
            }
        }
        if seen.ends_with(END.as_bytes()) {
            seen.truncate(seen.len() - END.len());
            waiting.join().unwrap();
            return seen;
        }
        let before = answered;
        answered = answer(&pty, &seen, answered, answers);
        answers_given += usize::from(answered > before);
        if answers_given > MOST_ANSWERS {
            let tail = seen.len().saturating_sub(2000);
            panic!("{args:?} does not stop asking; the end was:\n{}", String::from_utf8_lossy(&seen[tail..]));
        }
    }
}

/// Answers the question that stands in the last line, once. Gives the place up to which everything
/// is answered.
fn answer(pty: &Pty, seen: &[u8], answered: usize, answers: Answers<'_>) -> usize {
    let start = seen.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = String::from_utf8_lossy(&seen[start.max(answered)..]).into_owned();
    for (question, keys) in answers {
        if line.contains(question) {
            (&*pty).write_all(keys.as_bytes()).unwrap();
            return seen.len();
        }
    }
    answered
}
