//! `attache doctor`: starts an agent and reports step by step what works, and how to fix what does
//! not.
//!
//! `steps.rs` takes the steps, `remote.rs` those of a URL, `versions.rs` finds the protocol
//! versions, `report.rs` prints the steps, `processes.rs` finds processes that are left running.

mod processes;
mod remote;
mod report;
mod steps;
mod versions;

use crate::cx::Cx;
use crate::error::{Failure, Kind, Result};
use crate::runtime::{runtime, until_interrupted};
use report::Report;

/// Examines an agent. The exit code is 1 if it cannot be used.
pub(crate) fn doctor(cx: &Cx) -> Result<()> {
    let spec = cx.agent()?;
    let mut report = Report::new(cx, &spec);
    let examined = runtime(until_interrupted(steps::examine(cx, &spec, &mut report)));
    report.finish();
    examined?;
    if report.is_well() {
        return Ok(());
    }
    let mut failure = Failure::new(Kind::Runtime, format_args!("the agent `{}` does not work", spec.name));
    // The steps have reported the problems already.
    failure.shown = true;
    Err(failure)
}
