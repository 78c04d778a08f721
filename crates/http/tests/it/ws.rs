//! The codec: our two ends, and bytes written by hand.

use attache_conn::{FrameReader, FrameWriter, Link};
use attache_http::ws::{self, Role, Settings};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

fn settings() -> Settings {
    Settings::default()
}

/// A link of ours and the bare bytes of its peer.
fn bare(role: Role) -> (FrameReader, FrameWriter, DuplexStream) {
    let (near, far) = tokio::io::duplex(64 << 10);
    let (reader, writer) = ws::link(near, role, settings(), Vec::new()).split();
    (reader, writer, far)
}

fn pair() -> (Link, Link) {
    let (a, b) = tokio::io::duplex(64 << 10);
    (ws::link(a, Role::Client, settings(), Vec::new()), ws::link(b, Role::Server, settings(), Vec::new()))
}

async fn line(reader: &mut FrameReader) -> String {
    String::from_utf8(reader.next().await.unwrap().expect("a line").to_vec()).unwrap()
}

#[tokio::test]
async fn lines_of_all_sizes_arrive_in_both_directions() {
    let (client, server) = pair();
    let (mut client, mut to_server) = client.split();
    let (mut server, mut to_client) = server.split();
    let lines: Vec<String> =
        [0usize, 1, 120, 125, 126, 127, 65_530, 65_536, 1 << 20, (1 << 20) - 2, 3_333_333, 5]
            .iter()
            .map(|len| format!("{{{}}}", "x".repeat(*len)))
            .collect();
    let sent = lines.clone();
    let send = async {
        for line in &sent {
            to_server.feed(line.as_bytes());
            to_client.feed(line.as_bytes());
        }
        tokio::try_join!(to_server.flush(), to_client.flush()).unwrap();
    };
    let receive = async {
        for expected in &lines {
            assert!(line(&mut client).await == *expected && line(&mut server).await == *expected);
        }
    };
    tokio::join!(send, receive);
    to_server.close().await.unwrap();
    assert!(server.next().await.unwrap().is_none());
}

#[tokio::test]
async fn pings_are_answered_and_binary_messages_ignored() {
    let (mut reader, _writer, mut peer) = bare(Role::Client);
    // WS-05, WS-08: a binary message in two frames with a ping between them, then text.
    // shows WS-11
    peer.write_all(b"\x02\x01a\x89\x02hi\x80\x01b\x01\x01{\x89\x00\x80\x01}").await.unwrap();
    assert_eq!(line(&mut reader).await, "{}");
    let mut pong = [0; 8];
    peer.read_exact(&mut pong).await.unwrap();
    assert_eq!(pong[..2], [0x8A, 0x82]);
    assert_eq!([pong[6] ^ pong[2], pong[7] ^ pong[3]], *b"hi");
}

#[tokio::test]
async fn one_frame_may_hold_several_messages_and_one_message_line_feeds() {
    let (mut reader, _writer, mut peer) = bare(Role::Client);
    peer.write_all(b"\x81\x0e{\n\"a\":1}\n{}\n{}").await.unwrap();
    assert_eq!(line(&mut reader).await, "{ \"a\":1}");
    assert_eq!(line(&mut reader).await, "{}");
    assert_eq!(line(&mut reader).await, "{}");
}

#[tokio::test]
async fn violations_end_the_connection_with_status_1002() {
    // shows WS-09, WS-14
    for bytes in [&b"\x81\x02{}"[..], b"\xc1\x80\0\0\0\0", b"\x80\x80\0\0\0\0", b"\x89\xfe\x01\x00"] {
        let (mut reader, _writer, mut peer) = bare(Role::Server);
        peer.write_all(bytes).await.unwrap();
        assert!(reader.next().await.unwrap_err().to_string().starts_with("WebSocket: "));
        let mut close = [0; 4];
        peer.read_exact(&mut close).await.unwrap();
        assert_eq!((close[0], &close[2..]), (0x88, &1002u16.to_be_bytes()[..]));
        assert!(reader.next().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn violations_of_a_server_end_the_connection_too() {
    // shows WS-20
    for bytes in [&b"\x81\x82\x01\x02\x03\x04{}"[..], b"\xc1\x02{}", b"\x83\x02{}", b"\x80\x02{}"] {
        let (mut reader, _writer, mut peer) = bare(Role::Client);
        peer.write_all(bytes).await.unwrap();
        assert!(reader.next().await.unwrap_err().to_string().starts_with("WebSocket: "));
        let mut close = [0; 2];
        peer.read_exact(&mut close).await.unwrap();
        assert_eq!(close[0], 0x88);
        assert!(reader.next().await.unwrap().is_none());
    }
}

#[tokio::test]
async fn a_close_with_a_reason_is_an_error_and_a_normal_one_the_end() {
    // shows WS-12
    let (mut reader, _writer, mut peer) = bare(Role::Client);
    peer.write_all(b"\x88\x07\x03\xf1large").await.unwrap();
    let error = reader.next().await.unwrap_err().to_string();
    assert_eq!(error, "the peer closed the WebSocket with status 1009 (message too big): large");
    let (mut reader, _writer, mut peer) = bare(Role::Client);
    peer.write_all(b"\x88\x02\x03\xe8").await.unwrap();
    assert!(reader.next().await.unwrap().is_none());
    let mut echo = [0; 8];
    peer.read_exact(&mut echo).await.unwrap();
    assert_eq!(echo[..2], [0x88, 0x82]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_pinged_and_given_up() {
    let (mut reader, _writer, mut peer) = bare(Role::Server);
    let read = tokio::spawn(async move { reader.next().await.map(|line| line.map(<[u8]>::to_vec)) });
    let mut ping = [0; 2];
    peer.read_exact(&mut ping).await.unwrap();
    assert_eq!(ping, [0x89, 0]);
    // An answer counts, so the peer is kept for another two periods.
    peer.write_all(b"\x8a\x80\0\0\0\0").await.unwrap();
    let before = tokio::time::Instant::now();
    let error = read.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    assert!(before.elapsed() >= Duration::from_secs(30));
}

/// Lets a link pause for as long as `peer` takes. A link that fails meanwhile fails the test.
async fn paused(reader: &mut FrameReader, peer: impl Future<Output = ()>) {
    tokio::select! {
        error = reader.keep_alive() => panic!("{error}"),
        () = peer => {}
    }
}

#[tokio::test]
async fn pings_are_answered_while_the_link_pauses() {
    let (mut reader, _writer, mut peer) = bare(Role::Client);
    paused(&mut reader, async {
        // Two pings among messages, one of them in the middle of a message of two frames.
        peer.write_all(b"\x81\x02{}\x89\x01a\x01\x01{\x89\x01b\x80\x01}\x81\x02{}").await.unwrap();
        for expected in *b"ab" {
            let mut pong = [0; 7];
            peer.read_exact(&mut pong).await.unwrap();
            assert_eq!((pong[0], pong[6] ^ pong[2]), (0x8A, expected));
        }
    })
    .await;
    for _ in 0..3 {
        assert_eq!(line(&mut reader).await, "{}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_is_not_silent_while_what_it_sent_is_unread() {
    const MESSAGES: usize = 6;
    let text = "x".repeat(300 << 10);
    for closes in [false, true] {
        let (near, far) = tokio::io::duplex(64 << 10);
        let mut reader = ws::link(near, Role::Client, settings(), Vec::new()).split().0;
        let (_pings, mut peer) = tokio::io::split(far);
        // More than the link reads ahead, so that the rest waits in the socket; or an end behind
        // unread messages.
        let messages = if closes { 2 } else { MESSAGES };
        let sending = tokio::spawn({
            let text = text.clone();
            async move {
                for _ in 0..messages {
                    let frame =
                        [&b"\x81\x7f"[..], &(text.len() as u64).to_be_bytes(), text.as_bytes()].concat();
                    peer.write_all(&frame).await.unwrap();
                }
                if closes {
                    peer.write_all(b"\x88\x02\x03\xe8").await.unwrap();
                    peer.shutdown().await.unwrap();
                }
                peer
            }
        });
        paused(&mut reader, tokio::time::sleep(Duration::from_secs(600))).await;
        for _ in 0..messages {
            assert!(line(&mut reader).await == text);
        }
        let _peer = sending.await.unwrap();
        if closes {
            assert!(reader.next().await.unwrap().is_none());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_given_up_while_the_link_pauses() {
    let (mut reader, _writer, mut peer) = bare(Role::Client);
    peer.write_all(b"\x81\x02{}").await.unwrap();
    let before = tokio::time::Instant::now();
    assert_eq!(reader.keep_alive().await.kind(), std::io::ErrorKind::TimedOut);
    assert!(before.elapsed() >= Duration::from_secs(30));
}

#[tokio::test]
async fn a_flood_of_pings_takes_no_memory() {
    let (mut reader, _writer, peer) = bare(Role::Server);
    // The peer never reads: pongs beyond the bound are left out, and reading goes on.
    let (_unread, mut peer) = tokio::io::split(peer);
    let flood = tokio::spawn(async move {
        for _ in 0..20_000 {
            peer.write_all(b"\x89\x85\0\0\0\0hello").await.unwrap();
        }
        peer.write_all(b"\x81\x82\0\0\0\0{}").await.unwrap();
        peer
    });
    assert_eq!(line(&mut reader).await, "{}");
    flood.await.unwrap();
}
