//! Runs scenarios against a target and summarises the findings.
//!
//! `scenario_run.rs` is one scenario from a fresh peer to its findings, `retry.rs` chooses those
//! that get more time, `summary.rs` makes one status per rule of all of them.

mod retry;
mod scenario_run;
mod scratch;
mod summary;

use std::future::poll_fn;
use std::path::PathBuf;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

use crate::judge::{Finding, Verdict};
use crate::prompts::Prompts;
use crate::rules::{Rule, Tier};
use crate::{BoxFuture, Role, Scenario, Stop, Target, Trace, Transport, Version};
use scenario_run::ScenarioRun;

/// The scenarios to run, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The role of the peer under test.
    pub role: Role,
    /// The version of the protocol.
    pub version: Version,
    /// The transports that the peer is judged on. Scenarios about others are left out.
    pub transports: Vec<Transport>,
    /// Only these rules; all if empty.
    pub only: Vec<String>,
    /// Only these scenarios; all if empty.
    pub scenarios: Vec<String>,
    /// Only these tiers; all if empty.
    pub tiers: Vec<Tier>,
    /// Whether scenarios with faults run too.
    pub faults: bool,
    /// The timeout of one step.
    pub deadline: Duration,
    /// The timeout of the first answer of a peer; three times the deadline if absent.
    pub startup_deadline: Option<Duration>,
    /// The number of scenarios that run at once.
    pub jobs: usize,
    /// The texts of prompts.
    pub prompts: Prompts,
    /// The method to log in with at agents that open no session before.
    pub login: Option<String>,
    /// The number of sessions that a fault opens on one connection of a server.
    pub sessions: usize,
    /// The directory of sessions, as the peer sees it; without it each scenario has one of its own.
    pub session_dir: Option<PathBuf>,
    /// The command line that runs one scenario again, for reports.
    pub repeat: Option<Repeat>,
    /// Whether a scenario in which a deadline passed and a rule was broken is run again at the end,
    /// alone and with three times the deadline. The second run counts.
    pub retry_late: bool,
    /// Rules that are known to be broken. They are no reason to run a scenario again.
    pub known: Vec<String>,
}

/// A command line that runs the checker again. The choice of scenario and rule goes between the
/// halves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repeat {
    /// Such as `attache check agent --deadline 5`.
    pub before: Vec<String>,
    /// Such as `-- my-agent --acp`.
    pub after: Vec<String>,
}

impl Options {
    /// All scenarios for this role over stdio in version 1, those with faults left out.
    pub fn new(role: Role) -> Options {
        Options {
            role,
            version: Version::V1,
            transports: vec![Transport::Stdio],
            only: Vec::new(),
            scenarios: Vec::new(),
            tiers: Vec::new(),
            faults: false,
            deadline: Duration::from_secs(10),
            startup_deadline: None,
            jobs: 4,
            prompts: Prompts::default(),
            login: None,
            sessions: 200,
            session_dir: None,
            repeat: None,
            retry_late: true,
            known: Vec::new(),
        }
    }

    /// The timeout of the first answer of a peer.
    pub fn startup(&self) -> Duration {
        self.startup_deadline.unwrap_or(self.deadline * 3)
    }
}

/// The status of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// Exercised and kept.
    Pass,
    /// Broken at least once.
    Fail,
    /// The rule does not apply to this peer, with the reason.
    NotApplicable(String),
    /// Nothing showed the rule, with the reason.
    NotExercised(String),
}

/// One rule of a report.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The rule.
    pub rule: &'static Rule,
    /// The status.
    pub status: Status,
    /// The evidence: failures or else one pass, each with the number of its scenario in the report.
    pub findings: Vec<(usize, Finding)>,
    /// Whether a [`Baseline`](crate::Baseline) lists the rule as broken.
    pub known: bool,
}

/// One scenario of a report.
#[derive(Clone, Debug)]
pub struct ScenarioResult {
    /// The name.
    pub name: String,
    /// The course of the conversation, in one line.
    pub about: String,
    /// The reason of an early end.
    pub stop: Option<Stop>,
    /// The conversation.
    pub trace: Trace,
    /// The number of failures.
    pub failures: usize,
    /// The duration.
    pub took: Duration,
}

/// The conclusion of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// No binding rule was seen broken. [`Report::mandatory`] counts what was seen.
    NothingBroken,
    /// At least one was.
    Broken,
    /// There was nothing to judge, with the reason.
    CouldNotRun(String),
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The judged role; `None` if both roles of a recording were judged.
    pub role: Option<Role>,
    /// The version of the protocol whose rules were judged.
    pub version: Version,
    /// The transports that were judged.
    pub transports: Vec<Transport>,
    /// The command of the target.
    pub command: Vec<String>,
    /// The rules, in the order of the list.
    pub rules: Vec<Outcome>,
    /// The scenarios, in the order in which they were played.
    pub scenes: Vec<ScenarioResult>,
    /// The conclusion of a run.
    pub conclusion: Conclusion,
    /// The number of scenarios that were chosen and not played, because the run was interrupted.
    pub interrupted: Option<usize>,
    /// The command line that runs one scenario again.
    pub repeat: Option<Repeat>,
}

/// How many rules of a kind were seen, kept or broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// The rules that were seen.
    pub seen: usize,
    /// The rules that apply to the peer.
    pub total: usize,
}

impl Coverage {
    /// The share in percent, rounded down.
    pub fn percent(self) -> usize {
        (self.seen * 100).checked_div(self.total).unwrap_or(100)
    }
}

impl Report {
    /// How many of the mandatory rules that apply were seen.
    pub fn mandatory(&self) -> Coverage {
        let mut coverage = Coverage { seen: 0, total: 0 };
        for outcome in self.rules.iter().filter(|outcome| outcome.rule.tier() == Tier::Mandatory) {
            coverage.total += usize::from(!matches!(outcome.status, Status::NotApplicable(_)));
            coverage.seen += usize::from(matches!(outcome.status, Status::Pass | Status::Fail));
        }
        coverage
    }

    /// The rules that count for the verdict and were broken.
    pub fn broken(&self) -> impl Iterator<Item = &Outcome> {
        self.rules.iter().filter(|outcome| outcome.failed() && outcome.rule.tier().binds())
    }
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

/// Progress of a run.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A scenario begins.
    Begins(&'a Scenario),
    /// A scenario has ended, with the number of ended ones and the total.
    Ended(&'a ScenarioResult, usize, usize),
    /// A deadline passed in this scenario and a rule was broken; it runs again with this deadline.
    Repeats(&'a ScenarioResult, Duration),
    /// So many scenarios more should run again, and there is no time left for it.
    NotRepeated(usize),
}

/// The number of scenarios that start before the peer has answered in any, since a silent peer
/// times out in each.
const SILENT_LIMIT: usize = 4;

/// Runs the scenarios that the options select and judges every conversation. Stops early if the
/// peer takes no part in the first few.
pub async fn run(target: &dyn Target, options: &Options, progress: &mut dyn FnMut(Progress<'_>)) -> Report {
    run_until(target, options, std::future::pending(), progress).await
}

/// As [`run`], but `stop` ends it: scenarios that run are given up, and the report is about those
/// that have ended.
pub async fn run_until(
    target: &dyn Target,
    options: &Options,
    stop: impl Future<Output = ()>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Report {
    let mut stop = std::pin::pin!(stop);
    let chosen = choose(options);
    let total = chosen.len();
    let mut waiting = chosen.iter().enumerate().peekable();
    let mut running: Vec<(usize, BoxFuture<'_, ScenarioRun>)> = Vec::new();
    let mut played: Vec<Option<ScenarioRun>> = (0..total).map(|_| None).collect();
    let mut heard = false;
    for count in 1..=total {
        while running.len() < options.jobs.max(1) {
            let begun = count - 1 + running.len();
            if !heard && begun >= SILENT_LIMIT {
                break;
            }
            let must_wait = |scenario: &Scenario| scenario.is_exclusive() && !running.is_empty();
            if waiting.peek().is_some_and(|(_, scenario)| must_wait(scenario)) {
                break;
            }
            let Some((place, scenario)) = waiting.next() else { break };
            progress(Progress::Begins(scenario));
            running.push((place, Box::pin(scenario_run::run_scenario(target, scenario, options))));
        }
        if running.is_empty() {
            break;
        }
        let (place, done) = tokio::select! {
            biased;
            () = &mut stop => {
                let left = played.iter().filter(|done| done.is_none()).count();
                return interrupted(target, options, played, left);
            }
            done = first(&mut running) => done,
        };
        heard |= done.heard;
        progress(Progress::Ended(&done.scene, count, total));
        played[place] = Some(done);
    }
    let (longer, until) = (retry::longer(options), Instant::now() + retry::budget(options));
    let due = retry::due(&played, options);
    for (number, place) in due.iter().copied().enumerate() {
        if Instant::now() >= until {
            progress(Progress::NotRepeated(due.len() - number));
            break;
        }
        let Some(first) = &played[place] else { continue };
        progress(Progress::Repeats(&first.scene, longer.deadline));
        let again = tokio::select! {
            biased;
            () = &mut stop => return interrupted(target, options, played, due.len() - number),
            again = scenario_run::run_scenario(target, &chosen[place], &longer) => again,
        };
        played[place] = Some(again);
    }
    summary::summarize(target.command(), options, played.into_iter().flatten().collect())
}

/// The report about a run that was interrupted when so many scenarios were left.
fn interrupted(
    target: &dyn Target,
    options: &Options,
    played: Vec<Option<ScenarioRun>>,
    left: usize,
) -> Report {
    let played = played.into_iter().flatten().collect();
    let mut report = summary::summarize(target.command(), options, played);
    if report.scenes.is_empty() {
        report.conclusion = Conclusion::CouldNotRun("interrupted before a scenario ended".to_owned());
    }
    Report { interrupted: Some(left), ..report }
}

/// Waits for the first future that completes.
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

/// Returns the scenarios that the options select. Rules that only watchers judge can show in any of
/// them.
pub fn choose(options: &Options) -> Vec<Scenario> {
    let all = crate::scenarios(options.role).into_iter().filter(|scenario| {
        scenario.versions.contains(&options.version)
            && scenario.is_over(&options.transports)
            && (options.faults || !scenario.fault)
    });
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
