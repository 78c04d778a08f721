//! A server on each crate.

use crate::LEN;
use attache_http::ws;
use fastwebsockets::{Frame, OpCode, Payload, WebSocket};
use futures_util::{SinkExt, StreamExt};
use std::io;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

#[tokio::main(flavor = "current_thread")]
pub async fn run(name: &str) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        // A connection that ends is no concern of the others.
        match name {
            "ours" => drop(tokio::spawn(ours(stream))),
            "tokio-tungstenite" => drop(tokio::spawn(tungstenite(stream, WebSocketConfig::default()))),
            "tokio-tungstenite-4k" => {
                let small = WebSocketConfig::default().read_buffer_size(4 << 10).write_buffer_size(4 << 10);
                drop(tokio::spawn(tungstenite(stream, small)));
            }
            "tokio-websockets" => drop(tokio::spawn(websockets(stream))),
            "fastwebsockets" => drop(tokio::spawn(fast(stream))),
            other => return Err(io::Error::other(format!("no crate {other}"))),
        }
    }
}

fn text() -> String {
    "x".repeat(LEN)
}

fn number(text: &[u8]) -> usize {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

async fn ours(stream: TcpStream) -> io::Result<()> {
    let settings = ws::Settings::default();
    let (mut reader, mut writer) = ws::link(stream, ws::Role::Server, settings, Vec::new()).split();
    let text = text();
    while let Some(line) = reader.next().await? {
        for i in 0..number(line) {
            writer.feed(text.as_bytes());
            if i % 1_024 == 1_023 {
                writer.flush().await?;
            }
        }
        writer.flush().await?;
    }
    Ok(())
}

async fn tungstenite(
    stream: TcpStream,
    config: WebSocketConfig,
) -> Result<(), tokio_tungstenite::tungstenite::Error> {
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let text = text();
    while let Some(message) = socket.next().await {
        for _ in 0..number(&message?.into_data()) {
            socket.feed(Message::text(text.as_str())).await?;
        }
        socket.flush().await?;
    }
    Ok(())
}

async fn websockets(stream: TcpStream) -> Result<(), tokio_websockets::Error> {
    let mut socket = tokio_websockets::ServerBuilder::new().serve(stream);
    let text = text();
    while let Some(message) = socket.next().await {
        for _ in 0..number(&message?.into_payload()) {
            socket.feed(tokio_websockets::Message::text(text.clone())).await?;
        }
        socket.flush().await?;
    }
    Ok(())
}

async fn fast(stream: TcpStream) -> Result<(), fastwebsockets::WebSocketError> {
    let mut socket = WebSocket::after_handshake(stream, fastwebsockets::Role::Server);
    let text = text();
    loop {
        let count = {
            let frame = socket.read_frame().await?;
            match frame.opcode {
                OpCode::Close => return Ok(()),
                _ => number(&frame.payload),
            }
        };
        // It has no buffer for several frames: each is a write.
        for _ in 0..count {
            socket.write_frame(Frame::text(Payload::Borrowed(text.as_bytes()))).await?;
        }
    }
}
