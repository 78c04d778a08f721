//! MCP servers of a session.
//!
//! Everything here is launch data and read strictly: a server, an argument or a header that is
//! malformed refuses the request instead of being dropped.

// MCP-11

#[cfg(feature = "unstable")]
use super::McpServerAcp;
use crate::shape::*;

object! {
    /// A variable of the environment.
    pub struct EnvVariable {
        required {
            /// Its name.
            name "name": String [Required],
            /// Its value.
            value "value": String [Required],
        }
    }
}

object! {
    /// A header of HTTP requests.
    pub struct HttpHeader {
        required {
            /// Its name.
            name "name": String [Required],
            /// Its value.
            value "value": String [Required],
        }
    }
}

tagged! {
    /// An MCP server to connect to. A `type` that is not known is refused; it never starts a
    /// process.
    pub enum McpServer by "type" { // MCP-01, MCP-08
        /// A server with streamable HTTP; needs the MCP capability `http`.
        Http(McpServerHttp) = "http", // MCP-03
        /// A server with server-sent events; needs the MCP capability `sse`.
        Sse(McpServerSse) = "sse", // MCP-03
        /// A server that is reached through this connection; needs the MCP capability `acp`.
        #[cfg(feature = "unstable")]
        Acp(McpServerAcp) = "acp", // MCPA-01
    }
    untagged
    // MCP-02
    /// A program to start; every agent can.
    Stdio(McpServerStdio) or "stdio"
}

impl McpServer {
    /// The name to show.
    pub fn name(&self) -> &str {
        match self {
            McpServer::Http(server) => &server.name,
            McpServer::Sse(server) => &server.name,
            #[cfg(feature = "unstable")]
            McpServer::Acp(server) => &server.name,
            McpServer::Stdio(server) => &server.name,
        }
    }
}

object! {
    /// A program to start. Arguments and variables are always written, even if there are none.
    pub struct McpServerStdio { // MCP-07
        required {
            /// A name to show.
            name "name": String [Required],
            /// The absolute path of the program.
            command "command": String [Required], // MCP-06
            /// Its arguments.
            args "args": Vec<String> [NullAsDefault],
            /// Variables to set.
            env "env": Vec<EnvVariable> [NullAsDefault],
        }
    }
}

object! {
    /// A server with streamable HTTP. Headers are always written, even if there are none.
    pub struct McpServerHttp { // MCP-07
        required {
            /// A name to show.
            name "name": String [Required],
            /// The URL.
            url "url": String [Required],
            /// Headers of every request.
            headers "headers": Vec<HttpHeader> [NullAsDefault],
        }
    }
}

object! {
    /// A server with server-sent events. Headers are always written, even if there are none.
    pub struct McpServerSse { // MCP-07
        required {
            /// A name to show.
            name "name": String [Required],
            /// The URL.
            url "url": String [Required],
            /// Headers of every request.
            headers "headers": Vec<HttpHeader> [NullAsDefault],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(text: &str) -> serde_json::Result<McpServer> {
        serde_json::from_str(text)
    }

    #[test]
    fn a_server_without_a_type_is_a_program() {
        // shows MCP-02, MCP-07
        let server = McpServer::from(McpServerStdio::new("n", "/c", Vec::new(), Vec::new()));
        let text = r#"{"name":"n","command":"/c","args":[],"env":[]}"#;
        assert_eq!(serde_json::to_string(&server).unwrap(), text);
        assert_eq!(read(text).unwrap(), server);
        assert_eq!(read(r#"{"name":"n","command":"/c","args":null,"env":null}"#).unwrap(), server);
        // Version 2 writes the type; there is no other meaning it could have.
        assert_eq!(read(r#"{"name":"n","command":"/c","args":[],"env":[],"type":"stdio"}"#).unwrap(), server);
    }

    #[test]
    fn an_unknown_type_never_starts_a_process() {
        // shows MCP-08: wherever the type stands in the object
        assert!(read(r#"{"type":"weird","name":"n","command":"/c","args":[],"env":[]}"#).is_err());
        assert!(read(r#"{"name":"n","command":"/c","args":[],"env":[],"type":"weird"}"#).is_err());
        assert!(read(r#"{"type":1,"name":"n","command":"/c","args":[],"env":[]}"#).is_err());
        // Nor does a known one that is incomplete.
        assert!(read(r#"{"type":"http","name":"n","command":"/c","args":[],"env":[]}"#).is_err());
    }

    #[test]
    fn launch_data_is_not_guessed() {
        // shows MCP-07, MCP-11
        for text in [
            r#"{"name":"n","command":"/c"}"#,
            r#"{"name":"n","command":"/c","args":["a",5],"env":[]}"#,
            r#"{"name":"n","command":"/c","args":[],"env":{"A":"b"}}"#,
            r#"{"name":"n","command":"/c","args":[],"env":[{"name":"A"}]}"#,
            r#"{"type":"http","name":"n","url":"https://e.example"}"#,
            r#"{"type":"sse","name":"n","url":"https://e.example","headers":[5]}"#,
            r#"{"type":"acp","name":"n","id":"x"}"#,
            "5",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn other_kinds_carry_their_type() {
        // shows MCP-03, MCPA-06
        for text in [
            r#"{"type":"http","name":"n","url":"https://e.example","headers":[{"name":"A","value":"b"}]}"#,
            r#"{"type":"sse","name":"n","url":"https://e.example","headers":[]}"#,
            r#"{"type":"acp","name":"n","serverId":"srv-1"}"#,
        ] {
            assert_eq!(serde_json::to_string(&read(text).unwrap()).unwrap(), text);
        }
    }
}
