//! The tap: a program between client and agent that keeps a copy of every line.
//!
//! A line is written to the log before it is passed on, so the log's order is one in which things
//! can have happened: no answer stands before its question. The last line says how the agent ended.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

/// What makes this program a tap: `xtask interop --tap LOG AGENT ARGS…`.
pub(super) const FLAG: &str = "--tap";

/// Who wrote a line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Client,
    Agent,
}

/// What the log says.
#[derive(Default)]
pub(super) struct Log {
    pub(super) lines: Vec<(From, String)>,
    /// The agent's exit code, if the tap lived to see it.
    pub(super) exit: Option<i32>,
}

/// The command that runs `agent` behind a tap.
pub(super) fn command(log: &Path, agent: &[String]) -> Result<Vec<String>, String> {
    let xtask = std::env::current_exe().map_err(|error| format!("where am I? {error}"))?;
    let mut command: Vec<String> =
        [&*xtask.to_string_lossy(), "interop", FLAG, &*log.to_string_lossy()].map(str::to_owned).to_vec();
    command.extend(agent.iter().cloned());
    Ok(command)
}

/// Reads what a tap wrote.
pub(super) fn read(log: &Path) -> Result<Log, String> {
    let text = std::fs::read_to_string(log).map_err(|error| format!("{}: {error}", log.display()))?;
    Ok(parse(&text))
}

/// Reads the text of a log.
pub(super) fn parse(text: &str) -> Log {
    let mut read = Log::default();
    // Split at the line feed only: other line ends are ordinary characters in JSON texts.
    for line in text.split('\n') {
        match line.split_at_checked(2) {
            Some(("> ", line)) => read.lines.push((From::Client, line.to_owned())),
            Some(("< ", line)) => read.lines.push((From::Agent, line.to_owned())),
            Some(("= ", code)) => read.exit = code.parse().ok(),
            _ => {}
        }
    }
    read
}

/// Is the tap.
pub(super) fn run(args: &[String]) -> Result<(), String> {
    let [log, program, args @ ..] = args else { return Err("--tap LOG AGENT ARGS…".to_owned()) };
    let log = File::create(log).map_err(|error| format!("{log}: {error}"))?;
    let log = Arc::new(Mutex::new(log));
    let mut agent = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    let (Some(to_agent), Some(from_agent)) = (agent.stdin.take(), agent.stdout.take()) else {
        return Err("the agent has no pipes".to_owned());
    };
    let copy = Arc::clone(&log);
    thread::spawn(move || pass(BufReader::new(io::stdin()), to_agent, b"> ", &copy));
    pass(BufReader::new(from_agent), io::stdout(), b"< ", &log);
    let code = agent.wait().ok().and_then(|status| status.code()).unwrap_or(-1);
    note(&log, &[b"= ", code.to_string().as_bytes(), b"\n"].concat());
    std::process::exit(code)
}

fn pass(mut from: impl BufRead, mut to: impl Write, mark: &[u8], log: &Mutex<File>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        line.extend_from_slice(mark);
        if !matches!(from.read_until(b'\n', &mut line), Ok(n) if n > 0) {
            return;
        }
        note(log, &line);
        if to.write_all(&line[mark.len()..]).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

fn note(log: &Mutex<File>, line: &[u8]) {
    // A tap that cannot write its log still passes messages on; the missing lines will be noticed.
    if let Ok(mut log) = log.lock() {
        let _ = log.write_all(line);
    }
}
