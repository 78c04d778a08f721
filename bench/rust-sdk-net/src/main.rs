//! The bench agent on the official Rust SDK over WebSocket and Streamable HTTP. Prints its port.

use agent_client_protocol_http::AcpHttpServer;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    axum::serve(listener, AcpHttpServer::new(bench_rust_sdk::agent).into_router()).await
}
