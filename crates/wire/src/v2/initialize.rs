//! `initialize`: version and capabilities of both sides.
//!
//! The version is read before the type of the message is chosen, because the members of both
//! versions differ.

pub use crate::v1::{Implementation, ProtocolVersion};

use crate::shape::*;
use crate::v2::{AgentCapabilities, AuthMethod, ClientCapabilities};

object! {
    // V2-03
    /// The client's first message.
    pub struct InitializeRequest {
        required {
            /// The newest version that the client supports.
            protocol_version "protocolVersion": ProtocolVersion [Required],
            /// Name and version of the client.
            info "info": Implementation [Required],
        }
        optional {
            /// Capabilities of the client.
            capabilities "capabilities": ClientCapabilities [AlwaysWritten],
        }
    }
}

object! {
    // V2-04
    /// The agent's answer to `initialize`.
    pub struct InitializeResponse {
        required {
            /// The version to use.
            protocol_version "protocolVersion": ProtocolVersion [Required],
            /// Name and version of the agent.
            info "info": Implementation [Required],
        }
        optional {
            /// Capabilities of the agent.
            capabilities "capabilities": AgentCapabilities [AlwaysWritten],
            /// Ways to log in; if there are any, `auth/login` and `auth/logout` work.
            auth_methods "authMethods": Vec<AuthMethod> [SkipInvalidOrEmpty],
        }
    }
}

crate::methods! {
    "initialize": InitializeRequest => InitializeResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn both_sides_name_themselves() {
        // shows V2-03, V2-04
        let read = serde_json::from_str::<InitializeRequest>;
        assert!(read(r#"{"protocolVersion":2,"clientCapabilities":{}}"#).is_err());
        assert!(read(r#"{"protocolVersion":2,"info":{"name":"x"}}"#).is_err());
        let request =
            read(r#"{"protocolVersion":2,"info":{"name":"x","version":"1"},"capabilities":5}"#).unwrap();
        assert_eq!(request, InitializeRequest::new(2, Implementation::new("x", "1")));
        let text = serde_json::to_string(&InitializeResponse::new(2, Implementation::new("a", "1"))).unwrap();
        assert_eq!(text, r#"{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{}}"#);
    }
}
