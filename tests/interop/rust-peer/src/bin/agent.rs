//! The interop agent of version 1. It serves stdin and stdout, or with `--http` WebSocket and
//! Streamable HTTP on a port, which it prints.

use agent_client_protocol::{ConnectTo, Error, Result, Stdio};
use agent_client_protocol_http::AcpHttpServer;
use interop_rust_peer::agent_v1::agent;
use interop_rust_peer::sessions::Sessions;

#[tokio::main]
async fn main() -> Result<()> {
    let sessions = Sessions::default();
    if std::env::args().nth(1).as_deref() != Some("--http") {
        return agent(&sessions).connect_to(Stdio::new()).await;
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(Error::into_internal_error)?;
    println!("{}", listener.local_addr().map_err(Error::into_internal_error)?.port());
    let server = AcpHttpServer::new(move || agent(&sessions));
    axum::serve(listener, server.into_router()).await.map_err(Error::into_internal_error)
}
