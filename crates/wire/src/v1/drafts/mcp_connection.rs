//! MCP over this connection as an older draft had it: a connection to a server is opened first.

// MCPA-03

use crate::Json;
use crate::shape::*;
use crate::v1::McpServerAcpId;

ids! {
    /// Id of an open connection to an MCP server.
    McpConnectionId,
}

object! {
    /// Opens a connection to a server. Only in an older draft.
    pub struct ConnectMcpRequest { // MCPA-03
        required {
            /// The server.
            server_id "serverId": McpServerAcpId [Required],
        }
    }
}

object! {
    /// The connection is open.
    pub struct ConnectMcpResponse {
        required {
            /// Id of the connection.
            connection_id "connectionId": McpConnectionId [Required],
        }
    }
}

object! {
    /// Closes a connection.
    pub struct DisconnectMcpRequest {
        required {
            /// The connection.
            connection_id "connectionId": McpConnectionId [Required],
        }
    }
}

empty_objects! {
    [nullable]
    /// The connection is closed.
    DisconnectMcpResponse,
}

object! {
    /// An MCP request on a connection, answered with the bare MCP result. What `mcp/message` held
    /// in an older draft.
    pub struct ConnectedMcpRequest {
        required {
            /// The connection.
            connection_id "connectionId": McpConnectionId [Required],
            /// The MCP method.
            method "method": String [Required],
        }
        optional {
            /// The MCP params, an object.
            params "params": Option<Json> [AnyObject],
        }
    }
}

object! {
    /// An MCP notification on a connection. What `mcp/message` held in an older draft.
    pub struct ConnectedMcpNotification {
        required {
            /// The connection.
            connection_id "connectionId": McpConnectionId [Required],
            /// The MCP method.
            method "method": String [Required],
        }
        optional {
            /// The MCP params, an object.
            params "params": Option<Json> [AnyObject],
        }
    }
}

crate::methods! {
    "mcp/message": ConnectedMcpRequest => Json,
    "mcp/connect": ConnectMcpRequest => ConnectMcpResponse,
    "mcp/disconnect": DisconnectMcpRequest => DisconnectMcpResponse,
}

crate::notifications! {
    "mcp/message": ConnectedMcpNotification,
}
