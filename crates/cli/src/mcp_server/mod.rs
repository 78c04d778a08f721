//! Files and commands of this program for agents, as a server of the Model Context Protocol (MCP).
//!
//! Version 2 of ACP has no `fs/*` and `terminal/*`, so an agent that is to use our jail, terminals
//! and permission policy gets them as tools. `tools.rs` has the tools, `connection.rs` serves one
//! client, `protocol.rs` knows the revisions of MCP, `question.rs` asks the user by way of the
//! client, and `endpoint.rs` is the socket of a running session.
//!
//! What never happens here: a file or a command is used without the guard of `client_services`; a
//! command outlives its connection; a question that has no answer is a yes.

mod connection;
mod endpoint;
mod protocol;
mod question;
mod tools;

pub(crate) use connection::serve;
pub(crate) use endpoint::Endpoint;
pub(crate) use endpoint::forward;
pub(crate) use tools::{Asking, Toolbox};
