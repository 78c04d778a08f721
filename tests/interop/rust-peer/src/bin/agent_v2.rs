//! The interop agent of version 2, on stdin and stdout.

use agent_client_protocol::{ConnectTo, Result, Stdio};

#[tokio::main]
async fn main() -> Result<()> {
    interop_rust_peer::agent_v2::agent().connect_to(Stdio::new()).await
}
