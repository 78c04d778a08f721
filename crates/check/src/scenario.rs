//! Conversations that are led on purpose.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::{Role, Stage};

/// A future on the checker's own thread.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// One conversation that shows whether rules are kept. Each is played in a fresh process.
///
/// ```
/// use attache_check::{BoxFuture, Role, Scenario, Stage, Step};
/// use serde_json::json;
///
/// static UNKNOWN_METHOD: Scenario = Scenario {
///     name: "unknown-method",
///     about: "a request that nobody knows is refused as such",
///     judges: Role::Agent,
///     rules: &["RPC-12"],
///     needs: &[],
///     fault: false,
///     run,
/// };
///
/// fn run(stage: &mut Stage) -> BoxFuture<'_, Step> {
///     Box::pin(async move {
///         stage.initialize(json!({})).await?;
///         match stage.call("no/such", json!({})).await? {
///             Err(error) if error.code == -32601 => stage.pass("RPC-12"),
///             Err(error) => stage.fail("RPC-12", format!("answered {} in place of -32601", error.code)),
///             Ok(_) => stage.fail("RPC-12", "answered a result"),
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
    /// What happens, in one line.
    pub about: &'static str,
    /// Who is judged. The checker plays the other.
    pub judges: Role,
    /// The rules that it can say something about, by itself or because watchers see such a conversation.
    pub rules: &'static [&'static str],
    /// What it cannot do without.
    pub needs: &'static [Need],
    /// Played only with `--faults`.
    pub fault: bool,
    /// What happens. `?` ends it early; what was found until then stays.
    pub run: for<'a> fn(&'a mut Stage) -> BoxFuture<'a, Step>,
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scenario").field(&self.name).finish()
    }
}

/// What a scenario cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A capability that the agent advertises, a path below `agentCapabilities`: `sessionCapabilities.list`. Looked at by
    /// [`Stage::initialize`].
    Agent(&'static str),
    /// A capability that the client advertises, a path below `clientCapabilities`: `fs.readTextFile`. Looked at by [`Stage::accept`].
    Client(&'static str),
    /// Something that the client under test must be told to do: `load`, `cancel`. Without any the client is told to send one prompt.
    Act(&'static str),
    /// A prompt of this kind must make the agent do something.
    Prompt(crate::stage::PromptKind),
}

/// How a part of a scenario ends.
pub type Step = Result<(), Stop>;

/// Why a scenario ends before its end. The rules of the scenario that have no finding then are not exercised, for this reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The peer closed the connection.
    PeerGone,
    /// Nothing came in time; what was waited for.
    Deadline(String),
    /// The scenario does not concern this peer.
    NotApplicable(String),
    /// The peer did not do what the scenario needs in order to go on.
    NotExercised(String),
    /// The conversation cannot go on: the peer said something that nothing can be built upon.
    Broken(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::PeerGone => f.write_str("the peer closed the connection"),
            Stop::Deadline(what) => write!(f, "{what} did not come in time"),
            Stop::NotApplicable(why) | Stop::NotExercised(why) | Stop::Broken(why) => f.write_str(why),
        }
    }
}

/// Defines `SCENARIOS`, the scenarios of a file, from entries of the form
/// `"name": "about", [rules] needs [needs] => function(arguments);`. The function gets the stage first.
macro_rules! scenario_table {
    (@fault) => { false };
    (@fault faults) => { true };
    (@needs) => { &[] };
    (@needs [$($need:expr),*]) => { &[$($need),*] };
    (@needs $needs:ident) => { $needs };
    ($role:ident $(, $faults:ident)?: $(
        $name:literal: $about:literal, [$($rule:literal),*] $(needs $needs:tt)?
            => $run:ident $(($($arg:expr),*))?;
    )*) => {
        const FAULT: bool = scenario_table!(@fault $($faults)?);

        pub(crate) const SCENARIOS: &[$crate::Scenario] = &[$($crate::Scenario {
            name: $name,
            about: $about,
            judges: $crate::Role::$role,
            rules: &[$($rule),*],
            needs: scenario_table!(@needs $($needs)?),
            fault: FAULT,
            run: |stage| Box::pin($run(stage $($(, $arg)*)?)),
        }),*];
    };
}

pub(crate) use scenario_table;

/// Returns every scenario that judges `role`, those that inject faults last.
pub fn scenarios(role: Role) -> Vec<Scenario> {
    let (mut list, faults) = match role {
        Role::Agent => (crate::agent::scenarios(), crate::faults::agent::SCENARIOS),
        Role::Client => (crate::client::scenarios(), crate::faults::client::SCENARIOS),
    };
    list.extend_from_slice(faults);
    list
}
