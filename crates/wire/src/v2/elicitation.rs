//! Questions to the user: `elicitation/create` and `elicitation/complete`.

pub use crate::v1::{CompleteElicitationNotification, ElicitationSessionScope};

use serde::de::MapAccess;
use serde::ser::SerializeMap;

use crate::Unknown;
use crate::shape::tagged::Tagged;
use crate::shape::*;
use crate::v2::{
    ElicitationContentValue, ElicitationId, ElicitationSchema, Fields, RequestId, SessionId, ToolCallId,
};

#[path = "../both/elicitation.rs"]
mod both;
pub use both::*;

object! {
    /// A form to fill in; never for secrets.
    pub struct ElicitationFormMode {
        required {
            /// The form.
            requested_schema "requestedSchema": ElicitationSchema [Required],
        }
        no_meta!
    }
}

object! {
    /// A URL to open.
    pub struct ElicitationUrlMode {
        required {
            /// Id of the question until it is completed.
            elicitation_id "elicitationId": ElicitationId [Required],
            /// The URL.
            url "url": String [Required],
        }
        no_meta!
    }
}

tagged! {
    /// The mode of a question.
    pub enum ElicitationMode by "mode" {
        /// A form to fill in.
        Form(ElicitationFormMode) = "form",
        /// A URL to open.
        Url(ElicitationUrlMode) = "url",
    }
    other Other
}

flattened! {
    /// A question to the user.
    pub struct CreateElicitationRequest {
        required {
            /// The message to show.
            message "message": String [Required],
        }
        unions {
            /// The session or request that the question belongs to; its id is a member of the
            /// question.
            scope: ElicitationScope,
            /// The mode; the members are flattened into the object.
            mode: ElicitationMode,
        }
    }
}

/// The user's response to a question. An unlisted action does not count as acceptance.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ElicitationAction {
    /// The user accepted.
    Accept(ElicitationAcceptAction),
    /// The user declined.
    Decline,
    /// The user closed the question.
    Cancel,
    /// An unlisted action, kept unchanged.
    Other(Unknown),
}

impl Tagged for ElicitationAction {
    const NAME: &'static str = "ElicitationAction";
    const TAG: &'static str = "action";
    fn from_tag<'de, A: MapAccess<'de>>(tag: &str, map: A) -> Result<Self, A::Error> {
        Ok(match tag {
            "accept" => ElicitationAction::Accept(ElicitationAcceptAction::from_map(map)?),
            "decline" => ElicitationAction::Decline,
            "cancel" => ElicitationAction::Cancel,
            other => ElicitationAction::Other(Unknown::collect("action", other, map)?),
        })
    }
}

impl ToMap for ElicitationAction {
    fn to_map<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            ElicitationAction::Accept(accept) => {
                map.serialize_entry("action", "accept")?;
                accept.to_map(map)
            }
            ElicitationAction::Decline => map.serialize_entry("action", "decline"),
            ElicitationAction::Cancel => map.serialize_entry("action", "cancel"),
            ElicitationAction::Other(unknown) => unknown.to_map(map),
        }
    }
}

flattened! {
    /// The answer to a question.
    pub struct CreateElicitationResponse {
        unions {
            /// The user's action; the members are flattened into the object.
            action: ElicitationAction,
        }
    }
}

crate::methods! {
    "elicitation/create": CreateElicitationRequest => CreateElicitationResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_question_belongs_to_a_session_or_a_request() {
        // shows V2-01, V2-20, V2-21
        let read = |text: &str| serde_json::from_str::<CreateElicitationRequest>(text);
        let text = r#"{"message":"m","sessionId":"s","mode":"url","elicitationId":"e","url":"https://x"}"#;
        let question = read(text).unwrap();
        assert_eq!(question.scope, ElicitationScope::from(SessionId::from("s")));
        assert_eq!(serde_json::to_string(&question).unwrap(), text);
        let text = r#"{"mode":"_voice","message":"m","requestId":5,"tune":"x"}"#;
        let question = read(text).unwrap();
        assert_eq!(question.scope, ElicitationScope::from(RequestId::from(5)));
        assert!(
            matches!(&question.mode, ElicitationMode::Other(unknown) if unknown.get("tune") == Some("x".to_owned()))
        );
        assert_eq!(read(&serde_json::to_string(&question).unwrap()).unwrap(), question);
        for bad in [
            r#"{"mode":"_voice","message":"m"}"#,
            r#"{"mode":"_voice","message":"m","requestId":null}"#,
            r#"{"mode":"form","message":"m","sessionId":"s"}"#,
            r#"{"mode":"url","message":"m","sessionId":"s","url":"u"}"#,
            r#"{"message":"m","sessionId":"s"}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn actions_are_open() {
        // shows V2-20, V2-21
        let same = |text: &str| {
            let answer: CreateElicitationResponse = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&answer).unwrap(), text);
            answer.action
        };
        assert_eq!(same(r#"{"action":"decline"}"#), ElicitationAction::Decline);
        assert!(matches!(same(r#"{"action":"_later","at":5}"#), ElicitationAction::Other(_)));
        assert_eq!(
            CreateElicitationResponse::accept([("a", "x".into())]).action,
            same(r#"{"action":"accept","content":{"a":"x"}}"#)
        );
        let bad = r#"{"action":"accept","content":5}"#;
        assert!(serde_json::from_str::<CreateElicitationResponse>(bad).is_err());
    }
}
