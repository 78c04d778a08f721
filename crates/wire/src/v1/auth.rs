//! Authentication methods, login and logout.

use std::collections::BTreeMap;

#[cfg(feature = "drafts")]
use super::AuthMethodEnvVar;
use super::AuthMethodId;
use crate::shape::*;

tagged! {
    /// A way to authenticate.
    ///
    /// Only [`Agent`](AuthMethod::Agent) methods are passed to `authenticate`. A method of a type
    /// that is not known is kept as [`Other`](AuthMethod::Other), never taken for an agent method.
    pub enum AuthMethod by "type" { // AUTH-21
        /// The client runs the agent in a terminal; not passed to `authenticate`.
        Terminal(AuthMethodTerminal) = "terminal", // AUTH-10
        /// The client restarts the agent with variables set; only in an older draft.
        #[cfg(feature = "drafts")]
        EnvVar(AuthMethodEnvVar) = "env_var", // AUTH-21
    }
    untagged
    // AUTH-07
    /// Handled by the agent; the type of methods without a type.
    Agent(AuthMethodAgent) or "agent"
    other Other
}

impl AuthMethod {
    /// The method's id, if its type is known.
    pub fn id(&self) -> Option<&AuthMethodId> {
        match self {
            AuthMethod::Agent(method) => Some(&method.id),
            AuthMethod::Terminal(method) => Some(&method.id),
            #[cfg(feature = "drafts")]
            AuthMethod::EnvVar(method) => Some(&method.id),
            AuthMethod::Other(_) => None,
        }
    }

    /// The name to show, if the method's type is known.
    pub fn name(&self) -> Option<&str> {
        match self {
            AuthMethod::Agent(method) => Some(&method.name),
            AuthMethod::Terminal(method) => Some(&method.name),
            #[cfg(feature = "drafts")]
            AuthMethod::EnvVar(method) => Some(&method.name),
            AuthMethod::Other(_) => None,
        }
    }
}

object! {
    /// A way to authenticate that the agent handles itself.
    pub struct AuthMethodAgent {
        required {
            /// Id of the method, for `authenticate`.
            id "id": AuthMethodId [Required],
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
    /// A way to authenticate by running the agent in a terminal. Launch data is read strictly.
    pub struct AuthMethodTerminal { // AUTH-11
        required {
            /// Id of the method.
            id "id": AuthMethodId [Required],
            /// A name to show.
            name "name": String [Required],
        }
        optional {
            /// A description to show.
            description "description": Option<String> [LenientText],
            /// Arguments to append to the agent's command line.
            args "args": Option<Vec<String>> [Optional],
            /// Variables to set; they win over those of the same name.
            env "env": Option<BTreeMap<String, String>> [Optional],
        }
    }
}

object! {
    /// Logs in. No credentials travel here.
    pub struct AuthenticateRequest { // INIT-24, AUTH-20
        required {
            /// One of the announced methods.
            method_id "methodId": AuthMethodId [Required], // AUTH-03
        }
    }
}

empty_objects! {
    [nullable]
    /// Logged in.
    AuthenticateResponse,
    /// Logs out.
    LogoutRequest, // AUTH-16
    /// Logged out.
    LogoutResponse,
}

crate::methods! {
    "authenticate": AuthenticateRequest => AuthenticateResponse,
    "logout": LogoutRequest => LogoutResponse,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use crate::v1::*;

    fn read(text: &str) -> serde_json::Result<AuthMethod> {
        serde_json::from_str(text)
    }

    #[test]
    fn without_a_type_it_is_the_agents() {
        // shows AUTH-07
        for kind in ["", r#","type":null"#, r#","type":"agent""#] {
            let method = read(&format!(r#"{{"id":"own","name":"Own"{kind}}}"#)).unwrap();
            assert_eq!(method, AuthMethodAgent::new("own", "Own").into(), "{kind}");
            assert_eq!(serde_json::to_string(&method).unwrap(), r#"{"id":"own","name":"Own"}"#);
        }
    }

    #[test]
    fn an_unknown_type_is_not_the_agents() {
        // shows AUTH-21: wherever the type stands in the object
        for text in [
            r#"{"type":"carrier_pigeon","id":"p","name":"Pigeon"}"#,
            r#"{"id":"p","name":"Pigeon","type":"carrier_pigeon"}"#,
        ] {
            let method = read(text).unwrap();
            let AuthMethod::Other(unknown) = &method else { panic!("{method:?}") };
            assert_eq!(unknown.tag, "carrier_pigeon");
            assert_eq!(method.id(), None);
            let again = serde_json::to_string(&method).unwrap();
            assert_eq!(again, r#"{"type":"carrier_pigeon","id":"p","name":"Pigeon"}"#);
        }
        assert!(read(r#"{"type":5,"id":"p","name":"Pigeon"}"#).is_err());
    }

    #[test]
    fn variables_are_secret_unless_said_otherwise() {
        // shows AUTH-21: the older draft's method is known as what it is
        let text = r#"{"id":"key","name":"Key","type":"env_var","link":"https://e.example",
            "vars":[{"name":"A"},{"name":"B","secret":false,"optional":true},{"name":"C","secret":"?"}]}"#;
        let AuthMethod::EnvVar(method) = read(text).unwrap() else { panic!() };
        let secret: Vec<_> = method.vars.iter().map(AuthEnvVar::is_secret).collect();
        assert_eq!(secret, [true, false, true]);
        assert!(!method.vars[0].optional && method.vars[1].optional);
    }

    #[test]
    fn a_malformed_terminal_method_is_refused() {
        // shows AUTH-11: arguments are never guessed, and the method does not turn into another
        // kind (AUTH-10)
        let with = |rest: &str| read(&format!(r#"{{"id":"t","name":"T","type":"terminal",{rest}}}"#));
        assert!(with(r#""args":"--login""#).is_err());
        assert!(with(r#""args":["--login",5]"#).is_err());
        assert!(with(r#""env":{"A":1}"#).is_err());
        assert!(with(r#""env":[]"#).is_err());
        let Ok(AuthMethod::Terminal(method)) = with(r#""args":["--login"],"env":null,"description":7"#)
        else {
            panic!()
        };
        assert_eq!(method, AuthMethodTerminal::new("t", "T").args(vec!["--login".to_owned()]));
    }

    #[test]
    fn credentials_are_not_a_method_id() {
        // shows AUTH-20
        let text = r#"{"method":"oauth-device-code","credentials":{"token":"x"}}"#;
        assert!(serde_json::from_str::<AuthenticateRequest>(text).is_err());
    }

    #[test]
    fn null_stands_for_an_empty_object() {
        // shows RPC-21, RPC-22
        assert_eq!(crate::decode::<LogoutRequest>(None).unwrap(), LogoutRequest::new());
        assert_eq!(
            serde_json::from_str::<AuthenticateResponse>("null").unwrap(),
            AuthenticateResponse::new()
        );
        assert!(serde_json::from_str::<LogoutRequest>("\"now\"").is_err());
        assert!(serde_json::from_str::<LogoutRequest>("[]").is_err());
    }

    #[test]
    fn unknown_states_are_kept_and_count_as_unknown() {
        // shows AUTH-23
        let status: AuthStatusResponse =
            serde_json::from_str(r#"{"state":"_x","accounts":[{"label":"A"},{"name":"no label"}]}"#).unwrap();
        assert!(status.state.is_unknown());
        assert_eq!(serde_json::to_string(&status).unwrap(), r#"{"state":"_x","accounts":[{"label":"A"}]}"#);
        assert!(serde_json::from_str::<AuthStatusResponse>(r#"{"authenticated":true}"#).is_err());
    }
}
