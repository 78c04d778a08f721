//! Failures that are known: a build stays green with them, and turns red when one is fixed and
//! still listed.
//!
//! A baseline is a text file with one rule per line. `#` begins a comment.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::rules;
use crate::run::{Report, Status};

/// The rules that are known to be broken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    rules: BTreeSet<&'static str>,
}

impl Baseline {
    /// Reads the text of a baseline.
    ///
    /// # Errors
    /// The number of a line that names no rule, with its text.
    pub fn parse(text: &str) -> Result<Baseline, String> {
        let mut rules = BTreeSet::new();
        for (number, line) in text.lines().enumerate() {
            let id = line.split('#').next().unwrap_or_default().trim();
            if id.is_empty() {
                continue;
            }
            let rule = rules::get(id).ok_or_else(|| format!("line {}: no rule `{id}`", number + 1))?;
            rules.insert(rule.id);
        }
        Ok(Baseline { rules })
    }

    /// The rules, in the order of their ids.
    pub fn rules(&self) -> impl Iterator<Item = &'static str> {
        self.rules.iter().copied()
    }

    /// The text of a baseline that lists what the report found broken.
    pub fn text(report: &Report) -> String {
        let mut text = "# Rules that are known to be broken, for `attache check --baseline`.\n".to_owned();
        for outcome in report.broken() {
            let _ = writeln!(text, "{} # {}", outcome.rule.id, outcome.rule.text);
        }
        text
    }

    /// Marks the failures of the report that are known. Returns the rules that are listed although
    /// they are kept.
    pub fn apply(&self, report: &mut Report) -> Vec<&'static str> {
        let mut fixed = Vec::new();
        for outcome in report.rules.iter_mut().filter(|outcome| self.rules.contains(outcome.rule.id)) {
            outcome.known = outcome.failed();
            if outcome.status == Status::Pass {
                fixed.push(outcome.rule.id);
            }
        }
        fixed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_empty_lines_are_allowed_and_unknown_rules_are_not() {
        let read = Baseline::parse("# known\n\n  RPC-01 # later\nCANCEL-05\n");
        assert_eq!(read, Ok(Baseline { rules: ["CANCEL-05", "RPC-01"].into() }));
        assert_eq!(Baseline::parse("RPC-01\nRPC-0"), Err("line 2: no rule `RPC-0`".to_owned()));
    }
}
