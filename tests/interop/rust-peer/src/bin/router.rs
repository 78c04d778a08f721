//! The interop agents of both versions behind the router of the official Rust SDK, on stdin and
//! stdout: `router [--only 1|2]`.

use agent_client_protocol::{Agent, ConnectTo, Result, Stdio};
use interop_rust_peer::sessions::Sessions;
use interop_rust_peer::{agent_v1, agent_v2};

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let only = if let [flag, version] = &*args
        && flag == "--only"
    {
        Some(version.as_str())
    } else {
        None
    };
    let mut router = Agent.protocol_router();
    if only != Some("2") {
        router = router.with_v1(agent_v1::agent(&Sessions::default()));
    }
    if only != Some("1") {
        router = router.with_v2(agent_v2::agent());
    }
    router.connect_to(Stdio::new()).await
}
