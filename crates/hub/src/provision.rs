//! Files, terminals and rules that a hub provides to agents.

use std::path::PathBuf;
use std::sync::Arc;

use attache::wire::v1::RequestPermissionRequest;
use attache_host::policy::Policy;
use attache_host::terminals::PtyTerminals;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::message::Outcome;

/// Files, terminals and rules for the agent of one session.
///
/// The policy decides questions of the agent before people are asked, and guards files and
/// terminals. What it leaves to a person becomes a question to the clients of the session.
///
/// ```
/// use attache_conn::Link;
/// use attache_host::policy::{Mode, Policy};
/// use attache_hub::{Options, Provision};
///
/// let options = Options::new("laptop", || async { Link::spawn("my-agent") })
///     .provide(|roots| Some(Provision::new(Policy::new(Mode::APPROVE_READS).roots(roots))));
/// # drop(options);
/// ```
#[derive(Clone, Debug)]
pub struct Provision {
    policy: Arc<Policy>,
    terminals: Option<PtyTerminals>,
}

impl Provision {
    /// Provides what the policy allows.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Self {
        Provision { policy: policy.into(), terminals: None }
    }

    /// Replaces the terminals, for example by those of a sandbox. Their guard is replaced by that
    /// of the policy.
    #[must_use]
    pub fn terminals(mut self, terminals: PtyTerminals) -> Self {
        self.terminals = Some(terminals);
        self
    }

    pub(crate) fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    pub(crate) fn own_terminals(&self) -> Option<&PtyTerminals> {
        self.terminals.as_ref()
    }
}

/// The working directory of a session and its other roots.
pub(crate) fn roots(params: &RawValue) -> Vec<PathBuf> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Params {
        cwd: PathBuf,
        additional_directories: Option<Vec<PathBuf>>,
    }
    let params: Params = serde_json::from_str(params.get()).unwrap_or_default();
    std::iter::once(params.cwd).chain(params.additional_directories.unwrap_or_default()).collect()
}

/// The option that a person chose.
pub(crate) fn chosen(outcome: &Outcome) -> Option<String> {
    #[derive(Deserialize)]
    struct Answered {
        outcome: Chosen,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Chosen {
        option_id: Option<String>,
    }
    let Outcome::Result(result) = outcome else { return None };
    serde_json::from_str::<Answered>(result.get()).ok()?.outcome.option_id
}

/// The permission that a question of the agent asks for, under the agent's id of the session.
pub(crate) fn permission(params: &RawValue, session: &str) -> Option<RequestPermissionRequest> {
    let mut request: RequestPermissionRequest = serde_json::from_str(params.get()).ok()?;
    request.session_id = session.into();
    Some(request)
}
