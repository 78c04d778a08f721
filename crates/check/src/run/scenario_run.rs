//! One scenario, from a fresh peer to its findings.

use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::scratch::Scratch;
use super::{Options, ScenarioResult};
use crate::judge::{self, Finding, Kind, Message, Verdict};
use crate::prompts::PromptKind;
use crate::scenarios::server;
use crate::stage::StageConfig;
use crate::trace::{EntryKind, Header};
use crate::{Need, Role, Scenario, Stage, StartOptions, Stop, Target, Trace};

/// Timeout factor of a whole scenario.
const WHOLE: u32 = 30;

/// A scenario that ran.
pub(super) struct ScenarioRun {
    pub(super) scenario: Scenario,
    pub(super) scene: ScenarioResult,
    pub(super) findings: Vec<Finding>,
    pub(super) skipped: Vec<(&'static str, String)>,
    /// Whether the peer took part: an agent answered, a client sent a request.
    pub(super) heard: bool,
    /// Whether a wait has ended by its deadline.
    pub(super) late: bool,
    /// The peer's capabilities, once `initialize` was answered.
    pub(super) capabilities: Option<Value>,
}

pub(super) async fn run_scenario(target: &dyn Target, scenario: &Scenario, options: &Options) -> ScenarioRun {
    let started = Instant::now();
    tracing::debug!(scenario = scenario.name, "scenario started");
    let mut done = ScenarioRun {
        scenario: *scenario,
        scene: ScenarioResult {
            name: scenario.name.to_owned(),
            about: scenario.about.to_owned(),
            stop: None,
            trace: Trace { head: head(target), entries: Vec::new() },
            failures: 0,
            took: std::time::Duration::ZERO,
        },
        findings: Vec::new(),
        skipped: Vec::new(),
        heard: false,
        late: false,
        capabilities: None,
    };
    if let Err(stop) = drive(target, scenario, options, &mut done).await {
        done.late |= matches!(stop, Stop::Deadline(_));
        done.scene.stop = Some(stop);
    }
    done.heard |= takes_part(&done.scene.trace, scenario.judges);
    done.scene.failures = done.findings.iter().filter(|finding| finding.verdict == Verdict::Fail).count();
    done.scene.took = started.elapsed();
    // Scenarios about transports wait for their own connections, without the stage.
    done.late |= scenario.transport().is_some() && done.scene.took >= options.deadline;
    tracing::debug!(
        scenario = scenario.name,
        failures = done.scene.failures,
        stop = done.scene.stop.as_ref().map(tracing::field::display),
        "scenario ended"
    );
    done
}

async fn drive(
    target: &dyn Target,
    scenario: &Scenario,
    options: &Options,
    done: &mut ScenarioRun,
) -> Result<(), Stop> {
    if let Some(why) = scenario.needs.iter().find_map(|need| target.lacks(need)) {
        return Err(Stop::NotExercised(why));
    }
    let scratch = Scratch::new(scenario.name, target.is_real())
        .map_err(|error| Stop::Broken(format!("cannot make a directory for the scenario: {error}")))?;
    let fresh = fresh(scenario, options, &scratch);
    let peer = target.open(&fresh).await.map_err(|error| Stop::Broken(error.to_string()))?;
    let setup = StageConfig {
        plays: scenario.judges.other(),
        version: options.version,
        deadline: options.deadline,
        startup: options.startup(),
        prompts: options.prompts.clone(),
        // Scenarios about authentication log in themselves.
        login: options.login.clone().filter(|_| !scenario.name.starts_with("auth")),
        cwd: options.session_dir.clone().unwrap_or(fresh.cwd),
        real: target.is_real(),
        needs: scenario.needs,
        endpoint: target.endpoint().cloned(),
        sessions: options.sessions,
    };
    let mut stage = Stage::new(setup, peer);
    let whole = timeout(options.startup() + options.deadline * WHOLE, (scenario.run)(&mut stage)).await;
    let ended = whole.unwrap_or_else(|_| Err(Stop::Deadline("the end of the scenario".to_owned())));
    server::end_connections(&mut stage).await;
    let played = stage.finish().await;
    done.scene.trace.entries = played.trace.entries;
    done.findings = played.findings;
    done.skipped = played.skipped;
    done.heard = played.responded;
    done.late = played.late;
    done.capabilities = played.initialized.then_some(played.capabilities);
    let seen = judge::judge(&done.scene.trace, Some(scenario.judges));
    done.findings.extend(
        seen.into_iter()
            .filter(|finding| !played.not_applicable.iter().any(|(rule, _)| *rule == finding.rule)),
    );
    ended
}

fn takes_part(trace: &Trace, peer: Role) -> bool {
    trace.entries.iter().any(|entry| {
        let EntryKind::Line { from, text, end } = &entry.kind else { return false };
        *from == peer
            && match Message::read(0, entry.at, peer, text, *end).kind {
                Kind::Response { .. } => peer == Role::Agent,
                Kind::Request { .. } => peer == Role::Client,
                _ => false,
            }
    })
}

fn fresh(scenario: &Scenario, options: &Options, scratch: &Scratch) -> StartOptions {
    let act = scenario.needs.iter().find_map(|need| match need {
        Need::Act(act) => Some((*act, None)),
        Need::Acts(one, two) => Some((*one, Some(*two))),
        _ => None,
    });
    let (act, then) = act.unwrap_or(("prompt", None));
    let kind = scenario.needs.iter().find_map(|need| match need {
        Need::Prompt(kind) => Some(*kind),
        _ => None,
    });
    let cwd = scratch.path().to_owned();
    let prompt = options.prompts.text(kind.unwrap_or(PromptKind::Say), &cwd);
    StartOptions { scenario: scenario.name, act, then, prompt, cwd, transport: scenario.transport() }
}

fn head(target: &dyn Target) -> Header {
    // A peer in memory has no date either, so that what tests print stays the same.
    let started = if target.is_real() { crate::trace::now() } else { String::new() };
    Header { started, command: target.command(), masked: false }
}
