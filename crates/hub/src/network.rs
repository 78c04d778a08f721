//! Messages between hubs that share a journal.

use std::future::Future;
use std::pin::Pin;

use attache_conn::rpc::Id;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::identity::{Identity, Role};
use crate::message::Outcome;

/// The outcome of a request to another node.
pub type Requested<'a> = Pin<Box<dyn Future<Output = Result<Bytes, NoReply>> + Send + 'a>>;

/// A request to another node has no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReply {
    /// The node is not there, and has not got the request.
    Unreachable,
    /// It may have got the request.
    Unknown,
    /// The request is larger than the network takes, and was not sent.
    TooLarge,
}

/// The way to other hubs on the same journal. Messages may be lost or come twice.
pub trait Network: Send + Sync + 'static {
    /// Sends a request to a node and waits some seconds for its reply, which
    /// [`Hub::answer`](crate::Hub::answer) makes there. An empty reply is none.
    fn request<'a>(&'a self, node: &'a str, request: Bytes) -> Requested<'a>;

    /// Sends a request to all nodes and returns the first reply that is not empty.
    fn ask_all(&self, request: Bytes) -> Requested<'_>;
}

/// A request about a session.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NodeRequest {
    pub(crate) tenant: String,
    pub(crate) session: String,
    pub(crate) action: Action,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Action {
    /// A prompt. What becomes of it is told to `node`, unless its turn begins.
    Prompt {
        node: String,
        connection: u64,
        by: String,
        prompt: String,
        params: Box<RawValue>,
    },
    Cancel {
        connection: u64,
    },
    CancelPrompt {
        prompt: String,
    },
    Forward {
        connection: u64,
        id: Box<RawValue>,
        method: String,
        params: Box<RawValue>,
    },
    /// Answers a request whose owner is gone.
    Interrupt {
        connection: u64,
        id: Box<RawValue>,
    },
    CancelForward {
        connection: u64,
        id: Box<RawValue>,
    },
    Notify {
        method: String,
        params: Box<RawValue>,
    },
    Answer {
        question: String,
        by: Answerer,
        outcome: Outcome,
    },
    Close,
    /// What became of a prompt that this node has sent.
    PromptStatus {
        prompt: String,
        status: PromptStatus,
    },
    /// Become the owner, if the files of the session are there.
    Adopt,
}

/// What becomes of a prompt that starts no turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum PromptStatus {
    /// It ran before: the entries of its begin and its end.
    Ended {
        begun: u64,
        ended: u64,
        outcome: Outcome,
    },
    Running {
        begun: Option<u64>,
    },
    Outcome(Outcome),
}

/// Who answers a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answerer {
    name: String,
    tenant: String,
    role: String,
    from: Option<String>,
}

impl Answerer {
    pub(crate) fn new(identity: &Identity) -> Answerer {
        Answerer {
            name: identity.name().to_owned(),
            tenant: identity.tenant_name().to_owned(),
            role: identity.rights().name().to_owned(),
            from: identity.address().map(str::to_owned),
        }
    }

    pub(crate) fn identity(&self) -> Identity {
        let role = self.role.parse().unwrap_or(Role::Watch);
        let identity = Identity::new(self.name.clone()).tenant(self.tenant.clone()).role(role);
        match &self.from {
            Some(from) => identity.from(from.clone()),
            None => identity,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Reply {
    /// The owner has taken it.
    Done,
    /// This node does not own the session.
    NotOwner,
}

/// An id from its JSON.
pub(crate) fn id(raw: &RawValue) -> Option<Id> {
    Id::from_raw(raw)
}
