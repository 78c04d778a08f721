//! Authentication methods, login and logout.

#[cfg(feature = "unstable")]
pub use crate::v1::{
    AuthAccount, AuthState, AuthStatusRequest, AuthStatusResponse, AuthStatusUpdateNotification,
};

use crate::shape::*;
use crate::v2::{AuthMethodId, EnvVariable};

tagged! {
    /// A way to log in. Only [`Agent`](AuthMethod::Agent) methods are passed to `auth/login`.
    pub enum AuthMethod by "type" {
        /// The client runs the agent in a terminal.
        Terminal(AuthMethodTerminal) = "terminal",
        /// Handled by the agent.
        Agent(AuthMethodAgent) = "agent",
    }
    other Other ["methodId" "name"]
}

impl AuthMethod {
    /// The method's id.
    pub fn method_id(&self) -> Option<AuthMethodId> {
        match self {
            AuthMethod::Agent(method) => Some(method.method_id.clone()),
            AuthMethod::Terminal(method) => Some(method.method_id.clone()),
            AuthMethod::Other(unknown) => unknown.get("methodId"),
        }
    }

    /// The name to show.
    pub fn name(&self) -> Option<String> {
        match self {
            AuthMethod::Agent(method) => Some(method.name.clone()),
            AuthMethod::Terminal(method) => Some(method.name.clone()),
            AuthMethod::Other(unknown) => unknown.get("name"),
        }
    }
}

object! {
    /// A way to log in that the agent handles itself.
    pub struct AuthMethodAgent {
        required {
            /// Id of the method, for `auth/login`.
            method_id "methodId": AuthMethodId [Required],
            /// A name to show.
            name "name": String [Required],
        }
        optional {
            /// A description to show.
            description "description": Option<String> [LenientText],
        }
    }
}

object! {
    /// A way to log in by running the agent in a terminal. Launch data is read strictly.
    pub struct AuthMethodTerminal {
        required {
            /// Id of the method.
            method_id "methodId": AuthMethodId [Required],
            /// A name to show.
            name "name": String [Required],
        }
        optional {
            /// A description to show.
            description "description": Option<String> [LenientText],
            /// Arguments to append to the agent's command line.
            args "args": Vec<String> [OptionalList],
            /// Variables to set; names are unique.
            env "env": Vec<EnvVariable> [OptionalList],
        }
    }
}

object! {
    /// Logs in.
    pub struct LoginAuthRequest {
        required {
            /// One of the announced methods.
            method_id "methodId": AuthMethodId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// Logged in.
    LoginAuthResponse,
    /// Logs out.
    LogoutAuthRequest,
    /// Logged out.
    LogoutAuthResponse,
}

crate::methods! {
    "auth/login": LoginAuthRequest => LoginAuthResponse,
    "auth/logout": LogoutAuthRequest => LogoutAuthResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_method_names_its_type_and_itself() {
        // shows V2-20, V2-21
        let read = serde_json::from_str::<AuthMethod>;
        assert!(read(r#"{"methodId":"a","name":"A"}"#).is_err());
        assert!(read(r#"{"type":"agent","methodId":"a"}"#).is_err());
        assert!(read(r#"{"type":"_x","methodId":"a"}"#).is_err());
        assert!(read(r#"{"type":"terminal","methodId":"a","name":"A","env":{"K":"v"}}"#).is_err());
        let text = r#"{"type":"_x","methodId":"a","name":"A","more":[1]}"#;
        let unknown = read(text).unwrap();
        assert_eq!(unknown.method_id(), Some("a".into()));
        assert_eq!(unknown.name().as_deref(), Some("A"));
        assert_eq!(serde_json::to_string(&unknown).unwrap(), text);
    }
}
