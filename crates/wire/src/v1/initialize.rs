//! `initialize`: version and capabilities of both sides.

use std::fmt;

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use super::{AgentCapabilities, AuthMethod, ClientCapabilities};
use crate::shape::*;

// INIT-05
/// The protocol version: the major version only. Texts and fractions are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs, reason = "a newtype holds one value")]
pub struct ProtocolVersion(pub u16);

impl ProtocolVersion {
    /// Version 1.
    pub const V1: ProtocolVersion = ProtocolVersion(1);
    /// Version 2.
    pub const V2: ProtocolVersion = ProtocolVersion(2);
}

impl From<u16> for ProtocolVersion {
    fn from(number: u16) -> Self {
        ProtocolVersion(number)
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for ProtocolVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(self.0)
    }
}

impl<'de> Deserialize<'de> for ProtocolVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u16::deserialize(deserializer).map(ProtocolVersion)
    }
}

object! {
    /// The name and version of a program.
    pub struct Implementation { // INIT-12, INIT-13
        required {
            /// A name for machines.
            name "name": String [Required],
            /// The program's version.
            version "version": String [Required],
        }
        optional {
            /// A name to show.
            title "title": Option<String> [LenientText],
        }
    }
}

impl Implementation {
    // INIT-14
    /// The name to show: the title, or the name if there is none.
    pub fn display_name(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

object! {
    /// The client's first message.
    pub struct InitializeRequest { // INIT-02
        required {
            /// The newest version that the client supports.
            protocol_version "protocolVersion": ProtocolVersion [Required], // INIT-04
        }
        optional {
            /// Capabilities of the client.
            client_capabilities "clientCapabilities": ClientCapabilities [AlwaysWritten], // INIT-17
            /// Name and version of the client.
            client_info "clientInfo": Option<Implementation> [Lenient], // INIT-12, INIT-29
        }
    }
}

object! {
    /// The agent's answer to `initialize`.
    pub struct InitializeResponse {
        required {
            /// The version to use.
            protocol_version "protocolVersion": ProtocolVersion [Required], // INIT-06, INIT-07
        }
        optional {
            /// Capabilities of the agent.
            agent_capabilities "agentCapabilities": AgentCapabilities [AlwaysWritten], // INIT-11
            /// Ways to authenticate; none if no account is needed.
            auth_methods "authMethods": Vec<AuthMethod> [SkipInvalidOrEmpty], // AUTH-01
            /// Name and version of the agent.
            agent_info "agentInfo": Option<Implementation> [Lenient], // INIT-13, INIT-29
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

    fn request(text: &str) -> serde_json::Result<InitializeRequest> {
        serde_json::from_str(text)
    }

    #[test]
    fn the_version_is_a_small_whole_number() {
        // shows INIT-05
        for version in ["0", "1", "65535"] {
            let request = request(&format!(r#"{{"protocolVersion":{version}}}"#)).unwrap();
            assert_eq!(request.protocol_version.to_string(), version);
        }
        for version in ["\"1\"", "\"1.0.0\"", "1.0", "1.5", "-1", "65536", "null", "true", "[1]"] {
            assert!(request(&format!(r#"{{"protocolVersion":{version}}}"#)).is_err(), "{version}");
        }
        assert!(request("{}").is_err() && request("null").is_err());
        // shows RPC-25
        assert!(request("[1]").is_err());
    }

    #[test]
    fn everything_but_the_version_may_be_missing_or_malformed() {
        // shows INIT-15, INIT-20, INIT-29
        for rest in [
            "",
            r#","clientCapabilities":null,"clientInfo":null"#,
            r#","clientCapabilities":"all","clientInfo":{"name":"x"}"#,
            r#","clientCapabilities":7,"clientInfo":[]"#,
        ] {
            let read = request(&format!(r#"{{"protocolVersion":1{rest}}}"#)).unwrap();
            assert_eq!(read, InitializeRequest::new(ProtocolVersion::V1), "{rest}");
        }
    }

    #[test]
    fn capabilities_of_version_2_grant_nothing() {
        // shows INIT-26
        let read = request(r#"{"protocolVersion":1,"capabilities":{"fs":{"readTextFile":true}}}"#).unwrap();
        assert_eq!(read.client_capabilities, ClientCapabilities::new());
    }

    #[test]
    fn the_answer_always_states_capabilities() {
        // shows INIT-11, INIT-18, AUTH-01
        let text = serde_json::to_string(&InitializeResponse::new(1)).unwrap();
        assert_eq!(text, r#"{"protocolVersion":1,"agentCapabilities":{}}"#);
    }

    #[test]
    fn a_malformed_auth_method_is_skipped() {
        // shows INIT-20, AUTH-01
        let text = r#"{"protocolVersion":1,"authMethods":[{"name":"no id"},{"id":"ok","name":"OK"},5]}"#;
        let read: InitializeResponse = serde_json::from_str(text).unwrap();
        assert_eq!(read.auth_methods.len(), 1);
        let text = r#"{"protocolVersion":1,"authMethods":"none"}"#;
        let read: InitializeResponse = serde_json::from_str(text).unwrap();
        assert!(read.auth_methods.is_empty());
    }

    #[test]
    fn the_name_stands_in_for_a_missing_title() {
        // shows INIT-14
        let program = Implementation::new("ed", "1");
        assert_eq!(program.display_name(), "ed");
        assert_eq!(program.title("Ed".to_owned()).display_name(), "Ed");
    }
}
