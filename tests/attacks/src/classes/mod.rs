//! The classes of attacks.

mod client;
mod commands;
mod git;
mod grants;
mod limits;
mod output;
mod repository;
mod rules;
mod sandbox;
mod servers;
mod users;

use crate::backends::backends;
use crate::report::Group;
use crate::world::Suite;

/// All groups, the slow ones first.
pub(crate) fn all() -> Vec<Group> {
    let classes: &[&[Group]] = &[
        sandbox::GROUPS,
        limits::GROUPS,
        grants::GROUPS,
        repository::GROUPS,
        client::GROUPS,
        output::GROUPS,
        rules::GROUPS,
        commands::GROUPS,
        git::GROUPS,
        servers::GROUPS,
        users::GROUPS,
    ];
    classes.concat()
}

/// Whether a way to confine commands works on this machine.
pub(crate) fn has_backend(suite: &Suite, backend: &str) -> bool {
    backends(suite).contains(&backend)
}
