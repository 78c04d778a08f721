//! MCP servers of a session. Everything here is launch data and read strictly.

pub use crate::v1::{EnvVariable, HttpHeader};
#[cfg(feature = "unstable")]
pub use crate::v1::{
    McpError, McpRequestId, McpServerAcp, McpServerAcpId, MessageMcpNotification, MessageMcpRequest,
    MessageMcpResponse,
};

use crate::shape::*;

tagged! {
    /// An MCP server to connect to. Agents refuse a transport that they do not support; an unknown
    /// one is kept for relays and never starts a process.
    pub enum McpServer by "type" {
        /// A server with streamable HTTP; needs the capability `mcp.http`.
        Http(McpServerHttp) = "http",
        /// A server that is reached through this connection; needs the capability `mcp.acp`.
        #[cfg(feature = "unstable")]
        Acp(McpServerAcp) = "acp",
        /// A program to start; needs the capability `mcp.stdio`.
        Stdio(McpServerStdio) = "stdio",
    }
    other Other
}

object! {
    /// A program to start.
    pub struct McpServerStdio {
        required {
            /// A name to show.
            name "name": String [Required],
            /// The absolute path of the program.
            command "command": String [Required],
        }
        optional {
            /// Its arguments.
            args "args": Vec<String> [OptionalList],
            /// Variables to set.
            env "env": Vec<EnvVariable> [OptionalList],
        }
    }
}

object! {
    /// A server with streamable HTTP.
    pub struct McpServerHttp {
        required {
            /// A name to show.
            name "name": String [Required],
            /// The URL.
            url "url": String [Required],
        }
        optional {
            /// Headers of every request.
            headers "headers": Vec<HttpHeader> [OptionalList],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn launch_data_is_strict_and_unknown_transports_are_kept() {
        // shows V2-20
        let read = serde_json::from_str::<McpServer>;
        for bad in [
            r#"{"name":"x","command":"/x"}"#,
            r#"{"type":"stdio","name":"x"}"#,
            r#"{"type":"stdio","name":"x","command":"/x","args":"-v"}"#,
            r#"{"type":"stdio","name":"x","command":"/x","env":[{"name":"A"}]}"#,
            r#"{"type":"http","name":"x","url":"u","headers":{}}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
        let text = r#"{"type":"stdio","name":"x","command":"/x","args":null}"#;
        assert_eq!(read(text).unwrap(), McpServerStdio::new("x", "/x").into());
        let text = r#"{"type":"sse","name":"x","url":"u"}"#;
        let server = read(text).unwrap();
        assert!(matches!(&server, McpServer::Other(unknown) if unknown.tag == "sse"));
        assert_eq!(serde_json::to_string(&server).unwrap(), text);
    }
}
