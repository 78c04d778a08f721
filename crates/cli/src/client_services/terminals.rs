//! Output of commands in client terminals: the last lines are kept, the rest is counted.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use attache::client::TerminalChange;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// Bytes of lines that are kept; the oldest are dropped.
const MAX_BYTES: usize = 128 << 10;
/// Bytes that a line takes besides its text.
const LINE_OVERHEAD: usize = 32;
/// The longest line; of a longer one the end is kept.
const LONGEST: usize = 4096;
/// Terminals of agents have numbers above this.
const AGENT_NUMBERS: u64 = u64::MAX / 2;
/// Terminals that are kept.
const TERMINALS: usize = 64;

/// Output of the terminals that the agent uses. Clones share their state.
///
/// Commands write from their own threads and never wait for the screen; memory is bounded.
#[derive(Debug, Clone, Default)]
pub(crate) struct TerminalOutputs(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    outputs: Mutex<Outputs>,
    inputs: Mutex<Inputs>,
    changed: Notify,
}

/// Writes typed bytes to a command; returns whether it takes them.
type Input = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// The commands that can be typed into.
#[derive(Default)]
struct Inputs(HashMap<u64, Input>);

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg_attr(not(unix), allow(dead_code, reason = "terminals are provided on Unix only"))]
impl TerminalOutputs {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Outputs> {
        self.0.outputs.lock()
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut TerminalOutput)) {
        change(self.lock().open(number));
        self.0.changed.notify_one();
    }

    /// A command was started.
    pub(crate) fn started(&self, number: u64, command: &str) {
        self.change(number, |output| command.clone_into(&mut output.command));
    }

    /// It can be typed into.
    pub(crate) fn attach(&self, number: u64, input: Input) {
        self.0.inputs.lock().0.insert(number, input);
    }

    /// The newest command that runs and can be typed into.
    pub(crate) fn running(&self) -> Option<(u64, String)> {
        let outputs = self.lock();
        let inputs = self.0.inputs.lock();
        let runs = |output: &&TerminalOutput| !output.ended && inputs.0.contains_key(&output.number);
        outputs.0.iter().rev().find(runs).map(|output| (output.number, output.command.clone()))
    }

    /// Types into a command. Returns `false` if it has ended, or does not read.
    pub(crate) fn typed(&self, number: u64, bytes: &[u8]) -> bool {
        let input = self.0.inputs.lock().0.get(&number).cloned();
        input.is_some_and(|input| input(bytes))
    }

    /// The agent knows it by this id.
    pub(crate) fn named(&self, number: u64, id: &str) {
        self.change(number, |output| output.id = Some(id.to_owned()));
    }

    /// It printed something.
    pub(crate) fn printed(&self, number: u64, text: &str) {
        self.change(number, |output| output.push(text));
    }

    /// It ended; `how` is nothing if it ended well.
    pub(crate) fn ended(&self, number: u64, how: Option<String>) {
        self.0.inputs.lock().0.remove(&number);
        self.change(number, |output| {
            output.ended = true;
            output.how = how;
        });
    }

    /// Takes in what the agent reports of a terminal of its own.
    pub(crate) fn agent_terminal(&self, change: &TerminalChange) {
        let terminal = &change.terminal;
        let mut outputs = self.lock();
        let known = outputs.get(terminal.id.as_str()).map(|output| output.number);
        // Numbers of terminals of the client count from below.
        let number = known.unwrap_or_else(|| {
            let least = outputs.0.iter().map(|output| output.number).filter(|number| *number > AGENT_NUMBERS);
            least.min().unwrap_or(u64::MAX) - 1
        });
        let output = outputs.open(number);
        output.id = Some(terminal.id.as_str().to_owned());
        // Its tool call shows it: it is not a command of this program.
        output.shown = true;
        if let Some(command) = &terminal.command {
            output.command.clone_from(command);
        }
        if change.replaced {
            *output = TerminalOutput {
                number,
                id: output.id.take(),
                command: std::mem::take(&mut output.command),
                shown: true,
                ..TerminalOutput::default()
            };
        }
        output.undecoded.extend_from_slice(&change.appended);
        let (text, rest) = decoded(&output.undecoded);
        output.undecoded = rest;
        output.push(&text);
        if let Some(status) = &terminal.exit_status {
            output.ended = true;
            output.how = failure_text(status.exit_code, status.signal.as_deref());
        }
        drop(outputs);
        self.0.changed.notify_one();
    }

    /// Takes in what happens on a terminal.
    #[cfg(unix)]
    pub(crate) fn event(&self, event: attache_host::terminals::TerminalEvent<'_>) {
        use attache_host::terminals::TerminalEvent as Event;
        match event {
            Event::Started { number, command, .. } => self.started(number, command),
            Event::Named { number, id } => self.named(number, id.as_str()),
            Event::Output { number, text } => self.printed(number, text),
            Event::Ended { number, status } => {
                let code = status.exit_code.map(i64::from);
                self.ended(number, failure_text(code, status.signal.as_deref()));
            }
            _ => {}
        }
    }

    /// Waits until something has changed.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }
}

/// The text of an exit status; `None` for success and for an unknown one.
fn failure_text(exit_code: Option<i64>, signal: Option<&str>) -> Option<String> {
    match (exit_code, signal) {
        (Some(0), _) | (None, None) => None,
        (Some(code), _) => Some(format!("exit code {code}")),
        (None, Some(signal)) => Some(format!("ended by {signal}")),
    }
}

/// The output of one command.
#[derive(Debug, Default)]
pub(crate) struct TerminalOutput {
    number: u64,
    id: Option<String>,
    pub(crate) command: String,
    pub(crate) ended: bool,
    /// How it ended, if not well.
    pub(crate) how: Option<String>,
    lines: VecDeque<String>,
    /// How much they weigh.
    weight: usize,
    /// The line that is being written.
    last: String,
    /// How many lines there were.
    count: usize,
    shown: bool,
    /// The beginning of a character whose end has not come.
    undecoded: Vec<u8>,
}

impl TerminalOutput {
    fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            match piece.strip_suffix('\n') {
                Some(end) => {
                    self.last.push_str(end);
                    let line = std::mem::take(&mut self.last);
                    let line = overwritten(&line).to_owned();
                    self.weight += line.len() + LINE_OVERHEAD;
                    self.lines.push_back(line);
                    self.count += 1;
                    while self.weight > MAX_BYTES
                        && let Some(old) = self.lines.pop_front()
                    {
                        self.weight -= old.len() + LINE_OVERHEAD;
                    }
                }
                None => self.last.push_str(piece),
            }
            if self.last.len() > LONGEST {
                let mut from = self.last.len() - LONGEST / 2;
                while !self.last.is_char_boundary(from) {
                    from += 1;
                }
                self.last.drain(..from);
            }
        }
    }

    fn count(&self) -> usize {
        self.count + usize::from(!overwritten(&self.last).is_empty())
    }

    /// The last lines, and how many came before them.
    pub(crate) fn tail(&self, most: usize) -> (usize, Vec<&str>) {
        let last = Some(overwritten(&self.last)).filter(|last| !last.is_empty());
        let from = (self.lines.len() + usize::from(last.is_some())).saturating_sub(most);
        let tail: Vec<&str> = self.lines.iter().map(String::as_str).chain(last).skip(from).collect();
        (self.count() - tail.len(), tail)
    }
}

/// The text of bytes, and the bytes of a character that is not complete yet.
fn decoded(bytes: &[u8]) -> (String, Vec<u8>) {
    let complete = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    let (text, rest) = bytes.split_at(complete);
    (String::from_utf8_lossy(text).into_owned(), rest.to_vec())
}

/// The visible part of a line after carriage returns, as a terminal shows progress bars.
fn overwritten(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rfind('\r').and_then(|at| line.get(at + 1..)).unwrap_or(line)
}

/// The output of all commands, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Outputs(VecDeque<TerminalOutput>);

impl Outputs {
    fn open(&mut self, number: u64) -> &mut TerminalOutput {
        let at = self.0.iter().position(|output| output.number == number).unwrap_or_else(|| {
            if self.0.len() >= TERMINALS {
                self.0.pop_front();
            }
            self.0.push_back(TerminalOutput { number, ..TerminalOutput::default() });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// By the id that the agent uses. An agent that was started again may use the same ones again.
    pub(crate) fn get(&self, id: &str) -> Option<&TerminalOutput> {
        self.0.iter().rev().find(|output| output.id.as_deref() == Some(id))
    }

    pub(crate) fn by_number(&self, number: u64) -> Option<&TerminalOutput> {
        self.0.iter().find(|output| output.number == number)
    }

    /// A tool call shows it.
    pub(crate) fn mark_shown(&mut self, id: &str) {
        for output in self.0.iter_mut().filter(|output| output.id.as_deref() == Some(id)) {
            output.shown = true;
        }
    }

    /// The terminals that nothing has shown; each is named once.
    pub(crate) fn take_unshown(&mut self) -> Vec<u64> {
        let unshown = self.0.iter_mut().filter(|output| !output.shown);
        unshown
            .map(|output| {
                output.shown = true;
                output.number
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_the_rest_counted() {
        let mut output = TerminalOutput::default();
        for n in 0..250 {
            output.push(&format!("line {n}\r\n"));
        }
        output.push("half");
        assert_eq!(output.tail(2), (249, vec!["line 249", "half"]));
        assert_eq!(output.count(), 251);
        output.push("\r10%\r20%");
        assert_eq!(output.tail(1).1, ["20%"]);
        for n in 0..10_000 {
            output.push(&format!("a longer line, number {n}\n"));
        }
        assert!(output.weight <= MAX_BYTES && output.lines.len() > 1_000);
        let (gone, kept) = output.tail(usize::MAX);
        assert_eq!(gone + kept.len(), 251 + 9_999);
        assert_eq!(kept.last(), Some(&"a longer line, number 9999"));
    }

    #[test]
    fn a_line_without_end_stays_short() {
        let mut output = TerminalOutput::default();
        for _ in 0..10_000 {
            output.push("é123456789");
        }
        assert!(output.last.len() <= LONGEST + 16);
    }

    #[test]
    fn a_terminal_without_a_tool_call_is_named_once() {
        let terminal_outputs = TerminalOutputs::default();
        for number in [7, 8] {
            terminal_outputs.started(number, "ls");
            terminal_outputs.named(number, &format!("term-{number}"));
        }
        let mut outputs = terminal_outputs.lock();
        outputs.mark_shown("term-7");
        assert_eq!(outputs.take_unshown(), [8]);
        assert!(outputs.take_unshown().is_empty());
    }
}
