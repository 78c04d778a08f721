//! Why work ended: a member of idle states, with members of its own beside it.

use serde::ser::SerializeMap;

use crate::Json;
use crate::shape::*;
use crate::v2::Error;

object! {
    /// The work failed.
    pub struct ErrorStopReason {
        optional {
            /// The error.
            error "error": Option<Error> [Lenient],
        }
        no_meta!
    }
}

/// Why the foreground work of a session ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StopReason {
    /// The model was done.
    EndTurn,
    /// The model reached its limit of tokens.
    MaxTokens,
    /// The work reached its limit of model requests.
    MaxTurnRequests,
    /// The agent refused to continue.
    Refusal,
    /// The work was cancelled.
    Cancelled,
    /// The work failed.
    Error(ErrorStopReason),
    /// An unlisted reason, kept with the members that came with it.
    Other {
        /// The reason.
        stop_reason: String,
        /// Unknown members.
        members: Vec<(String, Json)>,
    },
}

impl StopReason {
    /// The name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            StopReason::EndTurn => "end_turn",
            StopReason::MaxTokens => "max_tokens",
            StopReason::MaxTurnRequests => "max_turn_requests",
            StopReason::Refusal => "refusal",
            StopReason::Cancelled => "cancelled",
            StopReason::Error(_) => "error",
            StopReason::Other { stop_reason, .. } => stop_reason,
        }
    }
}

impl From<Error> for StopReason {
    fn from(error: Error) -> Self {
        StopReason::Error(ErrorStopReason::new().error(error))
    }
}

impl Flat for Option<StopReason> {
    /// A malformed reason is no reason.
    fn take<E: serde::de::Error>(members: &mut Members<'_>) -> Result<Self, E> {
        let Some(name) = members.take::<LenientText, Option<String>, E>("stopReason")? else {
            return Ok(None);
        };
        Ok(Some(match &*name {
            "end_turn" => StopReason::EndTurn,
            "max_tokens" => StopReason::MaxTokens,
            "max_turn_requests" => StopReason::MaxTurnRequests,
            "refusal" => StopReason::Refusal,
            "cancelled" => StopReason::Cancelled,
            "error" => {
                let error = members.take::<Lenient, Option<Error>, E>("error")?;
                StopReason::Error(ErrorStopReason { error })
            }
            _ => StopReason::Other { stop_reason: name, members: std::mem::take(members).into_entries() },
        }))
    }
}

impl ToMap for Option<StopReason> {
    fn to_map<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let Some(reason) = self else { return Ok(()) };
        map.serialize_entry("stopReason", reason.as_str())?;
        match reason {
            StopReason::Error(error) => error.to_map(map),
            StopReason::Other { members, .. } => {
                members.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
            }
            _ => Ok(()),
        }
    }
}
