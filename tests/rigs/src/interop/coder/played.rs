//! A scene that a client of others has played with our agent, and what was right and wrong with it.

use std::fs;
use std::path::Path;

use super::super::pair::{self, Ended};
use super::super::shipped::Checks;
use super::super::tap::{From, Log};
use super::super::wire;

pub(super) struct Played<'a> {
    pub(super) ended: &'a Ended,
    /// What its user saw.
    pub(super) shown: &'a str,
    pub(super) log: &'a Log,
    pub(super) work: &'a Path,
}

impl Played<'_> {
    pub(super) fn shows(&self, text: &str) -> bool {
        self.shown.contains(text)
    }

    pub(super) fn said(&self, from: From, text: &str) -> bool {
        self.log.lines.iter().any(|(side, line)| *side == from && line.contains(text))
    }

    pub(super) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.work.join(name)).unwrap_or_default()
    }
}

/// What came of all scenes of one client.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) good: usize,
    pub(super) messages: usize,
    pub(super) bad: Vec<String>,
}

impl Tally {
    pub(super) fn add(&mut self, scene: &str, played: &Played<'_>, checks: &Checks) {
        self.good += checks.iter().filter(|(_, held)| *held).count();
        self.messages += played.log.lines.len();
        let ended = played.ended;
        let wrong = checks.iter().filter(|(_, held)| !held).map(|(what, _)| format!("not so: {what}"));
        let mut wrong: Vec<String> = wrong.collect();
        if !wrong.is_empty() {
            wrong.push(format!("ended with {:?}; stderr: {}", ended.code, pair::short(ended.stderr.trim())));
        }
        wrong.extend(wire::check(played.log));
        wrong.extend(ended.problems.iter().cloned());
        self.bad.extend(wrong.into_iter().map(|problem| format!("{scene}: {problem}")));
    }
}
