//! What commands print, as it comes: the last lines are kept, the rest is counted.

use std::collections::{HashMap, VecDeque};

/// Lines that are kept.
const KEPT: usize = 100;
/// The longest line; of a longer one the end counts.
const LONGEST: usize = 4096;
/// Terminals that are kept.
const TERMINALS: usize = 64;

/// News of a terminal that is lent to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TerminalNews {
    /// A command was started.
    Started { id: String, command: String },
    /// It printed something.
    Output { id: String, text: String },
    /// It ended, and how.
    Ended { id: String, status: String },
}

/// The output of one command.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) command: String,
    /// How it ended.
    pub(crate) ended: Option<String>,
    lines: VecDeque<String>,
    /// The line that is being written.
    last: String,
    /// How many lines there were.
    count: usize,
    shown: bool,
}

impl Output {
    pub(crate) fn push(&mut self, text: &str) {
        for piece in text.split_inclusive('\n') {
            match piece.strip_suffix('\n') {
                Some(end) => {
                    self.last.push_str(end);
                    let line = std::mem::take(&mut self.last);
                    self.lines.push_back(overwritten(&line).to_owned());
                    self.count += 1;
                    if self.lines.len() > KEPT {
                        self.lines.pop_front();
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

    pub(crate) fn count(&self) -> usize {
        self.count + usize::from(!overwritten(&self.last).is_empty())
    }

    /// The last lines, and how many came before them.
    pub(crate) fn tail(&self, most: usize) -> (usize, Vec<&str>) {
        let last = Some(overwritten(&self.last)).filter(|last| !last.is_empty());
        let all: Vec<&str> = self.lines.iter().map(String::as_str).chain(last).collect();
        let from = all.len().saturating_sub(most);
        let tail = all.get(from..).unwrap_or_default().to_vec();
        (self.count() - tail.len(), tail)
    }
}

/// What is left of a line after carriage returns, as a terminal shows progress bars.
fn overwritten(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rfind('\r').and_then(|at| line.get(at + 1..)).unwrap_or(line)
}

/// The output of all commands by the ids of their terminals.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    terminals: HashMap<String, Output>,
    order: VecDeque<String>,
}

impl Outputs {
    pub(crate) fn news(&mut self, news: TerminalNews) {
        match news {
            TerminalNews::Started { id, command } => self.get_mut(&id).command = command,
            TerminalNews::Output { id, text } => self.get_mut(&id).push(&text),
            TerminalNews::Ended { id, status } => self.get_mut(&id).ended = Some(status),
        }
    }

    fn get_mut(&mut self, id: &str) -> &mut Output {
        if !self.terminals.contains_key(id) {
            self.order.push_back(id.to_owned());
            if self.order.len() > TERMINALS {
                if let Some(oldest) = self.order.pop_front() {
                    self.terminals.remove(&oldest);
                }
            }
        }
        self.terminals.entry(id.to_owned()).or_default()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Output> {
        self.terminals.get(id)
    }

    /// A tool call shows it.
    pub(crate) fn mark_shown(&mut self, id: &str) {
        if let Some(output) = self.terminals.get_mut(id) {
            output.shown = true;
        }
    }

    /// The terminals that nothing has shown; each is named once.
    pub(crate) fn take_unshown(&mut self) -> Vec<String> {
        let mut ids = Vec::new();
        for id in &self.order {
            if let Some(output) = self.terminals.get_mut(id).filter(|output| !output.shown) {
                output.shown = true;
                ids.push(id.clone());
            }
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_the_rest_counted() {
        let mut output = Output::default();
        for n in 0..250 {
            output.push(&format!("line {n}\r\n"));
        }
        output.push("half");
        assert_eq!(output.tail(2), (249, vec!["line 249", "half"]));
        assert_eq!(output.count(), 251);
        output.push("\r10%\r20%");
        assert_eq!(output.tail(1).1, ["20%"]);
    }

    #[test]
    fn a_line_without_end_stays_short() {
        let mut output = Output::default();
        for _ in 0..10_000 {
            output.push("é123456789");
        }
        assert!(output.last.len() <= LONGEST + 16);
    }

    #[test]
    fn what_no_tool_call_shows_is_named_once() {
        let mut outputs = Outputs::default();
        for id in ["a", "b"] {
            outputs.news(TerminalNews::Output { id: id.to_owned(), text: "x".to_owned() });
        }
        outputs.mark_shown("a");
        assert_eq!(outputs.take_unshown(), ["b"]);
        assert!(outputs.take_unshown().is_empty());
    }
}
