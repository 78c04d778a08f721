//! Scenarios that judge a client: the checker plays the agent.
//!
//! A client under test performs one action, by default one prompt, and exits. So most scenarios
//! wait for that prompt (`open_turn`) and send requests before they answer it. Other actions
//! (loading a session, changing the mode) are requirements, see [`crate::Need::Act`].
//!
//! `steps.rs` holds the steps that scenarios share; then one file per topic.

mod ask;
mod cancel;
mod content;
mod elicit;
mod envelope;
mod extend;
mod files;
mod login;
mod nes;
mod opening;
mod options;
mod reopen;
mod roots;
mod sessions;
pub(super) mod steps;
mod terminals;
mod updates;
mod v2;

use crate::Scenario;

/// The scenarios, in the order in which they run.
pub(super) fn scenarios() -> Vec<Scenario> {
    let families: [&[Scenario]; 17] = [
        opening::SCENARIOS,
        envelope::SCENARIOS,
        login::SCENARIOS,
        sessions::SCENARIOS,
        reopen::SCENARIOS,
        roots::SCENARIOS,
        content::SCENARIOS,
        updates::SCENARIOS,
        ask::SCENARIOS,
        cancel::SCENARIOS,
        files::SCENARIOS,
        terminals::SCENARIOS,
        elicit::SCENARIOS,
        options::SCENARIOS,
        nes::SCENARIOS,
        extend::SCENARIOS,
        v2::SCENARIOS,
    ];
    families.concat()
}
