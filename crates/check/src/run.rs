//! Plays scenarios against a target and sums up what was found.

use std::time::Duration;

use crate::judge::{Finding, Verdict};
use crate::rules::{Rule, Tier};
use crate::stage::Prompts;
use crate::{Party, Trace};

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who is judged.
    pub party: Party,
    /// Only these rules; all if empty.
    pub only: Vec<String>,
    /// Only these scenarios; all if empty.
    pub scenarios: Vec<String>,
    /// Only these tiers; all if empty.
    pub tiers: Vec<Tier>,
    /// The unkind scenarios too.
    pub faults: bool,
    /// How long one thing may take.
    pub deadline: Duration,
    /// How many scenarios at once.
    pub jobs: usize,
    /// What prompts say.
    pub prompts: Prompts,
}

impl Options {
    /// All scenarios but the unkind ones, for this party.
    pub fn new(party: Party) -> Options {
        Options {
            party,
            only: Vec::new(),
            scenarios: Vec::new(),
            tiers: Vec::new(),
            faults: false,
            deadline: Duration::from_secs(10),
            jobs: 4,
            prompts: Prompts::default(),
        }
    }
}

/// How a rule fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Exercised and kept.
    Pass,
    /// Broken at least once.
    Fail,
    /// It does not concern this peer; why.
    NotApplicable(String),
    /// Nothing showed it; why.
    NotExercised(String),
}

/// One rule of a report.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The rule.
    pub rule: &'static Rule,
    /// How it fared.
    pub status: Status,
    /// What shows it: the number of the scenario in the report, and the finding. Failures, or else one pass.
    pub findings: Vec<(usize, Finding)>,
}

/// One scenario of a report.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Its name.
    pub name: String,
    /// What happens in it.
    pub about: String,
    /// Why it ended early.
    pub stopped: Option<String>,
    /// The conversation.
    pub trace: Trace,
    /// How many failures were found in it.
    pub failures: usize,
    /// How long it took.
    pub took: Duration,
}

/// What all came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// No failure of a MUST.
    Conformant,
    /// At least one.
    NotConformant,
    /// There was nothing to judge; why.
    CouldNotRun(String),
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Who was judged; `None` for a recording of both.
    pub party: Option<Party>,
    /// The command of the target.
    pub command: Vec<String>,
    /// The rules, in the order of the list.
    pub rules: Vec<Outcome>,
    /// The scenarios, in the order in which they were played.
    pub scenes: Vec<Scene>,
    /// What all came to.
    pub conclusion: Conclusion,
}

impl Outcome {
    /// Whether it is a failure.
    pub fn failed(&self) -> bool {
        self.status == Status::Fail
    }

    /// The failures.
    pub fn failures(&self) -> impl Iterator<Item = &(usize, Finding)> {
        self.findings.iter().filter(|(_, finding)| finding.verdict == Verdict::Fail)
    }
}
