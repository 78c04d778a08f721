//! Conversations that the checker leads to exercise rules.
//!
//! In `agent/` the checker plays the client, in `client/` the agent; `faults/` holds scenarios in
//! which the checker misbehaves on purpose. `server/` is about the transports of
//! remote agents, `listener.rs` about those of their clients.

mod agent;
mod client;
mod faults;
mod listener;
pub(crate) mod server;

use std::fmt;

use crate::role::Role;
use crate::stage::{Stage, Step};
use crate::target::{BoxFuture, Need};
use crate::transport::Transport;
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

/// Rules about messages that a server of Streamable HTTP refuses with a status, so that no agent
/// sees them.
const REFUSED_BY_STATUS: [&str; 4] = ["RPC-09", "RPC-10", "RPC-11", "RPC-25"];

impl Scenario {
    /// The transport that it is about; `None` for a conversation over any.
    pub fn transport(&self) -> Option<Transport> {
        self.needs.iter().find_map(|need| match need {
            Need::Transport(transport) => Some(*transport),
            _ => None,
        })
    }

    /// Whether no other scenario may begin before it beside it. It is the last of all.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.name == server::limits::TAKES_ALL_PLACES
    }

    /// Whether it can judge a peer that is connected by one of these transports. Faults of ordinary
    /// conversations are about lines, which only stdio has.
    pub fn is_over(&self, transports: &[Transport]) -> bool {
        if let Some(own) = self.transport().or(self.fault.then_some(Transport::Stdio)) {
            return transports.contains(&own);
        }
        let is_refused = self.rules.iter().any(|rule| REFUSED_BY_STATUS.contains(rule));
        !is_refused || transports != [Transport::Http]
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scenario").field(&self.name).finish()
    }
}

/// Defines `SCENARIOS`, the scenarios of a file, from entries of the form
/// `"name": "about", [rules] needs [needs] in BOTH => function(arguments);`. The function gets the
/// stage first. `in` names the versions, after an entry or after the role; default is version 1.
macro_rules! scenario_table {
    (@fault) => { false };
    (@fault faults) => { true };
    (@needs) => { &[] };
    (@needs [$($need:expr),*]) => { &[$($need),*] };
    (@needs $needs:ident) => { $needs };
    (@versions) => { &[$crate::version::Version::V1] };
    (@versions V1) => { &[$crate::version::Version::V1] };
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
    match role {
        Role::Agent => list.extend(server::scenarios()),
        Role::Client => {
            list.extend_from_slice(listener::SCENARIOS);
            list.extend_from_slice(faults::listener::SCENARIOS);
        }
    }
    list
}
