//! Reports: for a terminal, for programs (JSON, JUnit) and as one page with the conversations
//! drawn.
//!
//! Everything here makes text of a [`Report`]; nothing is printed or written.

mod html;
mod json;
mod junit;
mod label;
mod sequence;
mod terminal;

pub use html::{escape, html, page};
pub use json::json;
pub use junit::junit;
pub use label::label;
pub use sequence::{Mark, sequence};
pub use terminal::{Emphasis, Line, Look, explain, list, plain, terminal};

use crate::Role;
use crate::run::{Conclusion, Outcome, Report, Status};

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

/// One line that says what all came to.
pub(crate) fn headline(report: &Report) -> String {
    let [pass, fail, ..] = counts(&report.rules);
    let bound = report.rules.iter().filter(|outcome| outcome.failed() && outcome.rule.tier().binds()).count();
    match &report.conclusion {
        Conclusion::Conformant if fail == 0 => format!("conformant: {pass} rules kept, none broken"),
        Conclusion::Conformant => {
            format!("conformant: {pass} rules kept, {fail} pieces of advice not followed")
        }
        Conclusion::NotConformant => {
            format!("not conformant: {bound} of its duties broken, {pass} rules kept")
        }
        Conclusion::CouldNotRun(why) => format!("could not run: {why}"),
    }
}

/// Who was judged, in words.
pub(crate) fn judged(role: Option<Role>) -> &'static str {
    role.map_or("recording", Role::name)
}
