//! The bench agent on the official Rust SDK.

use agent_client_protocol::{ConnectTo, Result, Stdio};

#[tokio::main]
async fn main() -> Result<()> {
    bench_rust_sdk::agent().connect_to(Stdio::new()).await
}
