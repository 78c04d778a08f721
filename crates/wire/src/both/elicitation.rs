//! The session or request that a question belongs to, and acceptance. Ids of requests and values of
//! fields differ between the versions.

use serde::de::Error;
use serde::ser::SerializeMap;

use super::{
    CreateElicitationResponse, ElicitationAction, ElicitationContentValue, ElicitationSessionScope, Fields,
    RequestId, SessionId, ToolCallId,
};
use crate::Json;
use crate::shape::*;

object! {
    /// The question belongs to an open request of the client, outside of any session.
    pub struct ElicitationRequestScope {
        required {
            /// The request.
            request_id "requestId": RequestId [Required],
        }
        no_meta!
    }
}

// ELIC-05
/// The session or request that a question belongs to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationScope {
    /// A session.
    Session(ElicitationSessionScope),
    /// A request.
    Request(ElicitationRequestScope),
}

impl Flat for ElicitationScope {
    /// A session takes precedence over a request.
    fn take<E: Error>(members: &mut Members<'_>) -> Result<Self, E> {
        if let Some(session_id) = members.take::<LenientText, Option<SessionId>, E>("sessionId")? {
            let tool_call_id = members.take::<LenientText, Option<ToolCallId>, E>("toolCallId")?;
            return Ok(ElicitationSessionScope { session_id, tool_call_id }.into());
        }
        let id = members.take::<NullableJson, Option<Json>, E>("requestId")?;
        let id = id.ok_or_else(|| E::custom("an elicitation needs `sessionId` or `requestId`"))?;
        let request_id = id.parse().map_err(E::custom)?;
        Ok(ElicitationRequestScope { request_id }.into())
    }
}

impl ToMap for ElicitationScope {
    fn to_map<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            ElicitationScope::Session(scope) => scope.to_map(map),
            ElicitationScope::Request(scope) => scope.to_map(map),
        }
    }
}

impl From<ElicitationSessionScope> for ElicitationScope {
    fn from(scope: ElicitationSessionScope) -> Self {
        ElicitationScope::Session(scope)
    }
}

impl From<ElicitationRequestScope> for ElicitationScope {
    fn from(scope: ElicitationRequestScope) -> Self {
        ElicitationScope::Request(scope)
    }
}

impl From<SessionId> for ElicitationScope {
    fn from(session_id: SessionId) -> Self {
        ElicitationSessionScope::new(session_id).into()
    }
}

impl From<RequestId> for ElicitationScope {
    fn from(request_id: RequestId) -> Self {
        ElicitationRequestScope::new(request_id).into()
    }
}

object! {
    /// The user accepts. For a URL this covers opening it, not the actions there.
    pub struct ElicitationAcceptAction { // ELIC-17
        optional {
            /// The values of the form.
            content "content": Option<Fields<ElicitationContentValue>> [Optional], // ELIC-18, ELIC-19
        }
        no_meta!
    }
}

impl From<ElicitationAcceptAction> for ElicitationAction {
    fn from(accept: ElicitationAcceptAction) -> Self {
        ElicitationAction::Accept(accept)
    }
}

impl CreateElicitationResponse {
    /// The user accepts, with the values of the form.
    pub fn accept(content: impl Into<Fields<ElicitationContentValue>>) -> Self {
        Self::new(ElicitationAcceptAction { content: Some(content.into()) })
    }
}
