//! Reports: for a terminal, for programs (JSON, JUnit), as one page with the conversations drawn,
//! and as a badge.
//!
//! Everything here makes text of a [`Report`]; nothing is printed or written.

mod badge;
mod html;
mod json;
mod junit;
mod label;
mod origin;
mod sequence;
mod terminal;

pub use badge::badge;
pub use html::{escape, html, page};
pub use json::json;
pub use junit::junit;
pub use label::label;
pub(crate) use origin::{Origin, repeat};
pub use sequence::{Mark, sequence};
pub use terminal::{Emphasis, Line, Look, explain, list, plain, terminal};

use crate::run::{Conclusion, Outcome, Report, Status};
use crate::{Role, Tier, Transport};

/// How many rules have each status: pass, fail, not applicable, not exercised.
pub(crate) fn counts<'a>(rules: impl IntoIterator<Item = &'a Outcome>) -> [usize; 4] {
    let mut counts = [0; 4];
    for outcome in rules {
        counts[match outcome.status {
            Status::Pass => 0,
            Status::Fail => 1,
            Status::NotApplicable(_) => 2,
            Status::NotExercised(_) => 3,
        }] += 1;
    }
    counts
}

/// The name of a status.
pub(crate) fn status_name(status: &Status) -> &'static str {
    match status {
        Status::Pass => "pass",
        Status::Fail => "fail",
        Status::NotApplicable(_) => "not applicable",
        Status::NotExercised(_) => "not exercised",
    }
}

/// The reason of a status, if it has one.
pub(crate) fn reason(status: &Status) -> Option<&str> {
    match status {
        Status::NotApplicable(why) | Status::NotExercised(why) => Some(why),
        Status::Pass | Status::Fail => None,
    }
}

/// One line that says what all came to. How much was seen is always part of it: a peer of which
/// little was seen has kept little.
pub(crate) fn headline(report: &Report) -> String {
    if let Conclusion::CouldNotRun(why) = &report.conclusion {
        return format!("could not run: {why}");
    }
    let broken = report.broken().count();
    let known = report.broken().filter(|outcome| outcome.known).count();
    let advice = report
        .rules
        .iter()
        .filter(|outcome| outcome.failed() && outcome.rule.tier() == Tier::Advisory)
        .count();
    let mut line = match report.interrupted {
        Some(left) => format!("interrupted, {left} more scenarios to run: "),
        None => String::new(),
    };
    line += &match (broken, known) {
        (0, _) => "nothing broken".to_owned(),
        (1, 0) => "1 binding rule broken".to_owned(),
        (_, 0) => format!("{broken} binding rules broken"),
        _ => format!("{broken} binding rules broken, {known} of them known"),
    };
    let mandatory = report.mandatory();
    if mandatory.total > 0 {
        line += &format!(", {} of {} mandatory rules seen", mandatory.seen, mandatory.total);
    }
    match advice {
        0 => {}
        1 => line += ", 1 recommendation not followed",
        _ => line += &format!(", {advice} recommendations not followed"),
    }
    line
}

/// The judged peer as text.
pub(crate) fn judged(report: &Report) -> &'static str {
    match report.role {
        Some(Role::Agent) if !report.transports.contains(&Transport::Stdio) => "server",
        Some(role) => role.name(),
        None => "recording",
    }
}
