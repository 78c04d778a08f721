//! Why a session is idle: a member of its state, with members of its own beside it. In version 1 a
//! part of the unstable states; version 2 has it too.

use serde::ser::SerializeMap;

use crate::Json;
use crate::shape::*;
use crate::v1::Error;

object! {
    /// The turn failed.
    pub struct ErrorStopReason { // SUBA-06
        optional {
            /// The error.
            error "error": Option<Error> [Lenient],
        }
        no_meta!
    }
}

/// Why a session is idle.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum IdleStopReason {
    /// The model was done.
    EndTurn,
    /// The model reached its limit of tokens.
    MaxTokens,
    /// The turn reached its limit of model requests.
    MaxTurnRequests,
    /// The agent refused to continue.
    Refusal,
    /// The turn was cancelled.
    Cancelled,
    /// The turn failed.
    Error(ErrorStopReason),
    /// A reason that is not in the list, with the members that came with it.
    Other {
        /// The reason.
        stop_reason: String,
        /// Unknown members.
        members: Vec<(String, Json)>,
    },
}

impl IdleStopReason {
    /// The name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            IdleStopReason::EndTurn => "end_turn",
            IdleStopReason::MaxTokens => "max_tokens",
            IdleStopReason::MaxTurnRequests => "max_turn_requests",
            IdleStopReason::Refusal => "refusal",
            IdleStopReason::Cancelled => "cancelled",
            IdleStopReason::Error(_) => "error",
            IdleStopReason::Other { stop_reason, .. } => stop_reason,
        }
    }
}

impl From<Error> for IdleStopReason {
    fn from(error: Error) -> Self {
        IdleStopReason::Error(ErrorStopReason::new().error(error))
    }
}

impl Flat for Option<IdleStopReason> {
    /// A malformed reason is no reason.
    fn take<E: serde::de::Error>(members: &mut Members<'_>) -> Result<Self, E> {
        let name = members.take::<LenientText, Option<ReasonName>, E>("stopReason")?;
        let mut reason = name.map(|ReasonName(reason)| reason);
        match &mut reason {
            Some(IdleStopReason::Error(reason)) => {
                reason.error = members.take::<Lenient, Option<Error>, E>("error")?;
            }
            Some(IdleStopReason::Other { members: unknown, .. }) => {
                *unknown = std::mem::take(members).into_entries();
            }
            _ => {}
        }
        Ok(reason)
    }
}

/// The reason of a name, without the members beside it.
struct ReasonName(IdleStopReason);

impl From<&str> for ReasonName {
    fn from(name: &str) -> Self {
        ReasonName(match name {
            "end_turn" => IdleStopReason::EndTurn,
            "max_tokens" => IdleStopReason::MaxTokens,
            "max_turn_requests" => IdleStopReason::MaxTurnRequests,
            "refusal" => IdleStopReason::Refusal,
            "cancelled" => IdleStopReason::Cancelled,
            "error" => IdleStopReason::Error(ErrorStopReason::new()),
            _ => IdleStopReason::Other { stop_reason: name.to_owned(), members: Vec::new() },
        })
    }
}

impl ToMap for Option<IdleStopReason> {
    fn to_map<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let Some(reason) = self else { return Ok(()) };
        map.serialize_entry("stopReason", reason.as_str())?;
        match reason {
            IdleStopReason::Error(error) => error.to_map(map),
            IdleStopReason::Other { members, .. } => {
                members.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
            }
            _ => Ok(()),
        }
    }
}
