//! Conversations that the checker leads to exercise rules.
//!
//! In `agent/` the checker plays the client, in `client/` the agent; `faults/` holds scenarios in
//! which the checker misbehaves on purpose.

mod agent;
mod client;
mod faults;

use std::fmt;

use crate::role::Role;
use crate::stage::{Stage, Step};
use crate::target::{BoxFuture, Need};
use crate::version::Version;

/// A conversation that shows whether rules are kept. Each runs against a fresh peer.
///
/// ```
/// use attache_check::{BoxFuture, Role, Scenario, Stage, Step, Version};
/// use serde_json::json;
///
/// static UNKNOWN_METHOD: Scenario = Scenario {
///     name: "unknown-method",
///     about: "an unknown method is refused as such",
///     judges: Role::Agent,
///     rules: &["RPC-12"],
///     needs: &[],
///     versions: &Version::ALL,
///     fault: false,
///     run,
/// };
///
/// fn run(stage: &mut Stage) -> BoxFuture<'_, Step> {
///     Box::pin(async move {
///         stage.initialize(json!({})).await?;
///         match stage.call("no/such", json!({})).await? {
///             Err(error) if error.code == -32601 => stage.pass("RPC-12"),
///             Err(error) => stage.fail("RPC-12", format!("answered {} instead of -32601", error.code)),
///             Ok(_) => stage.fail("RPC-12", "answered with a result"),
///         }
///         Ok(())
///     })
/// }
/// # let _ = &UNKNOWN_METHOD;
/// ```
#[derive(Clone, Copy)]
pub struct Scenario {
    /// A short name in lower case with dashes, unique per side.
    pub name: &'static str,
    /// The course of the conversation, in one line.
    pub about: &'static str,
    /// The role of the peer under test. The checker plays the other.
    pub judges: Role,
    /// The rules that it can judge, by itself or because watchers see such a conversation.
    pub rules: &'static [&'static str],
    /// Its requirements.
    pub needs: &'static [Need],
    /// The versions of the protocol in which it can be led.
    pub versions: &'static [Version],
    /// Whether it runs only with `--faults`.
    pub fault: bool,
    /// The conversation. `?` ends it early and keeps the findings so far.
    pub run: for<'a> fn(&'a mut Stage) -> BoxFuture<'a, Step>,
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scenario").field(&self.name).finish()
    }
}

/// Defines `SCENARIOS`, the scenarios of a file, from entries of the form
/// `"name": "about", [rules] needs [needs] in BOTH => function(arguments);`. The function gets the
/// stage first. `in` names the versions, behind an entry or behind the role; default is version 1.
macro_rules! scenario_table {
    (@fault) => { false };
    (@fault faults) => { true };
    (@needs) => { &[] };
    (@needs [$($need:expr),*]) => { &[$($need),*] };
    (@needs $needs:ident) => { $needs };
    (@versions) => { &[$crate::version::Version::V1] };
    (@versions V2) => { &[$crate::version::Version::V2] };
    (@versions BOTH) => { &$crate::version::Version::ALL };
    (@entry) => { VERSIONS };
    (@entry $versions:ident) => { scenario_table!(@versions $versions) };
    ($role:ident $(, $faults:ident)? $(in $version:ident)?: $(
        $name:literal: $about:literal, [$($rule:literal),*] $(needs $needs:tt)? $(in $versions:ident)?
            => $run:ident $(($($arg:expr),*))?;
    )*) => {
        const FAULT: bool = scenario_table!(@fault $($faults)?);
        const VERSIONS: &[$crate::version::Version] = scenario_table!(@versions $($version)?);

        pub(crate) const SCENARIOS: &[$crate::scenarios::Scenario] = &[$($crate::scenarios::Scenario {
            name: $name,
            about: $about,
            judges: $crate::role::Role::$role,
            rules: &[$($rule),*],
            needs: scenario_table!(@needs $($needs)?),
            versions: scenario_table!(@entry $($versions)?),
            fault: FAULT,
            run: |stage| Box::pin($run(stage $($(, $arg)*)?)),
        }),*];
    };
}

use scenario_table;

/// Returns every scenario that judges `role`, those that inject faults last.
pub fn scenarios(role: Role) -> Vec<Scenario> {
    let (mut list, faults) = match role {
        Role::Agent => (agent::scenarios(), faults::agent::SCENARIOS),
        Role::Client => (client::scenarios(), faults::client::SCENARIOS),
    };
    list.extend_from_slice(faults);
    list
}
