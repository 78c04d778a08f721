//! Plays scenarios against a target and sums up what was found.
//!
//! `scenario_run.rs` is one scenario from a fresh peer to its findings, `summary.rs` makes one status per rule of all of them.

mod scenario_run;
mod scratch;
mod summary;

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use crate::judge::{Finding, Verdict};
use crate::prompts::Prompts;
use crate::rules::{Rule, Tier};
use crate::{BoxFuture, Role, Scenario, Stop, Target, Trace};
use scenario_run::ScenarioRun;

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who is judged.
    pub role: Role,
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
    /// The method with which to log in at an agent that opens no session before that.
    pub login: Option<String>,
}

impl Options {
    /// All scenarios but the unkind ones, for this role.
    pub fn new(role: Role) -> Options {
        Options {
            role,
            only: Vec::new(),
            scenarios: Vec::new(),
            tiers: Vec::new(),
            faults: false,
            deadline: Duration::from_secs(10),
            jobs: 4,
            prompts: Prompts::default(),
            login: None,
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
pub struct ScenarioResult {
    /// Its name.
    pub name: String,
    /// What happens in it.
    pub about: String,
    /// Why it ended early.
    pub stop: Option<Stop>,
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
    pub role: Option<Role>,
    /// The command of the target.
    pub command: Vec<String>,
    /// The rules, in the order of the list.
    pub rules: Vec<Outcome>,
    /// The scenarios, in the order in which they were played.
    pub scenes: Vec<ScenarioResult>,
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

/// What happens while a run goes on.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A scenario begins.
    Begins(&'a Scenario),
    /// A scenario has ended; how many have, of how many.
    Ended(&'a ScenarioResult, usize, usize),
}

/// How many scenarios are begun with a peer that has not taken part in any: one that never says anything is waited for in each.
const UNHEARD: usize = 4;

/// Plays the scenarios that the options ask for, and judges every conversation. A peer that takes no part in the first few is
/// not asked for more.
pub async fn run(target: &dyn Target, options: &Options, progress: &mut dyn FnMut(Progress<'_>)) -> Report {
    let chosen = choose(options);
    let total = chosen.len();
    let mut waiting = chosen.iter().enumerate();
    let mut running: Vec<(usize, BoxFuture<'_, ScenarioRun>)> = Vec::new();
    let mut played: Vec<Option<ScenarioRun>> = (0..total).map(|_| None).collect();
    let mut heard = false;
    for count in 1..=total {
        while running.len() < options.jobs.max(1) {
            let begun = count - 1 + running.len();
            if !heard && begun >= UNHEARD {
                break;
            }
            let Some((place, scenario)) = waiting.next() else { break };
            progress(Progress::Begins(scenario));
            running.push((place, Box::pin(scenario_run::run_scenario(target, scenario, options))));
        }
        if running.is_empty() {
            break;
        }
        let (place, done) = first(&mut running).await;
        heard |= done.heard;
        progress(Progress::Ended(&done.scene, count, total));
        played[place] = Some(done);
    }
    summary::summarize(target.command(), options, played.into_iter().flatten().collect())
}

/// Waits for whichever ends first.
async fn first<T>(running: &mut Vec<(usize, BoxFuture<'_, T>)>) -> (usize, T) {
    poll_fn(|cx| {
        for place in 0..running.len() {
            if let Poll::Ready(value) = running[place].1.as_mut().poll(cx) {
                let (number, _) = running.swap_remove(place);
                return Poll::Ready((number, value));
            }
        }
        Poll::Pending
    })
    .await
}

/// The scenarios that the options ask for. A rule that only watchers speak about can show in any of them.
pub fn choose(options: &Options) -> Vec<Scenario> {
    let all = crate::scenarios(options.role).into_iter().filter(|scenario| options.faults || !scenario.fault);
    let wanted = |scenario: &Scenario| {
        options.scenarios.is_empty() || options.scenarios.iter().any(|name| name == scenario.name)
    };
    let all: Vec<Scenario> = all.filter(wanted).collect();
    let shows = |scenario: &Scenario| {
        options.only.is_empty()
            || scenario.rules.iter().any(|rule| options.only.iter().any(|only| only == rule))
    };
    let chosen: Vec<Scenario> = all.iter().copied().filter(shows).collect();
    if chosen.is_empty() { all } else { chosen }
}

/// Judges a recording, or any conversation that was not led by the checker.
pub fn judge_trace(trace: Trace, role: Option<Role>, options: &Options) -> Report {
    summary::summarize_trace(trace, role, options)
}
