//! Scenarios that judge a client: the checker plays the agent.
//!
//! A client under test is started to do one thing, by default to send one prompt, and leaves. So most scenarios wait for that
//! prompt (`open_turn`) and use the time until they answer it: the client must serve whatever an agent may ask in a turn. What a
//! client does only when it is told to (loading a session, changing the mode) needs an act, see [`crate::Need::Act`].
//!
//! `play.rs` holds what the scenarios share; then one file per topic.

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

use crate::Scenario;

/// The scenarios, in the order in which they run.
pub(super) fn scenarios() -> Vec<Scenario> {
    let families: [&[Scenario]; 16] = [
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
    ];
    families.concat()
}
