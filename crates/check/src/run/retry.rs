//! Scenarios that are run again, because their failure may be one of a deadline that was too short.
//!
//! They run alone and with more time. What they show then is what counts.

use std::time::Duration;

use super::scenario_run::ScenarioRun;
use super::{Options, summary};
use crate::judge::Verdict;
use crate::rules;

/// How much more time there is.
const LONGER: u32 = 3;

/// The time in which scenarios are run again, in deadlines. Failures of the rest stand as they are.
const BUDGET: u32 = 60;

/// The numbers of the scenarios to run again.
pub(super) fn due(played: &[Option<ScenarioRun>], options: &Options) -> Vec<usize> {
    // A peer that never took part takes no part with more time either.
    let is_heard = played.iter().flatten().any(|done| done.heard);
    if !options.retry_late || !is_heard {
        return Vec::new();
    }
    let is_due = |done: &ScenarioRun| done.late && has_new_failure(done, options);
    let due = played.iter().enumerate().filter(|(_, done)| done.as_ref().is_some_and(is_due));
    due.map(|(place, _)| place).collect()
}

/// Whether a rule is broken that the report will show and that is not known to be broken.
fn has_new_failure(done: &ScenarioRun, options: &Options) -> bool {
    let mut failures = done.findings.iter().filter(|finding| finding.verdict == Verdict::Fail);
    failures.any(|finding| {
        let wanted = rules::get(finding.rule).is_some_and(|rule| {
            rule.binds(options.role) && rule.is_of(options.version) && summary::is_wanted(rule, options)
        });
        wanted && !options.known.iter().any(|known| known == finding.rule)
    })
}

/// The options of a second run.
pub(super) fn longer(options: &Options) -> Options {
    Options {
        deadline: options.deadline * LONGER,
        startup_deadline: Some(options.startup() * LONGER),
        ..options.clone()
    }
}

/// The time after which no more scenarios are run again.
pub(super) fn budget(options: &Options) -> Duration {
    options.deadline * BUDGET
}
