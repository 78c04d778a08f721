//! An agent made of raw bytes: the load for every client under test, and as an agent the limit that
//! pipes set.

use bench_driver::line::{Head, text_member};
use bench_probe::Order;
use std::fs::File;
use std::io::{self, BufRead, BufReader, StdinLock, Write};
use std::os::fd::AsFd;

fn main() -> io::Result<()> {
    bench_probe::proc::stay_ahead();
    // Stdout is line-buffered; a file over the same descriptor writes what it is given.
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut input = BufReader::with_capacity(256 << 10, io::stdin().lock());
    let mut line = Vec::new();
    let mut buffer = Vec::with_capacity(128 << 10);
    let (mut sessions, mut turns, mut is_v2) = (0u64, 0u64, false);
    while read_line(&mut input, &mut line)? {
        let head = Head::of(&line);
        let (Some(id), Some(method)) = (head.id, head.method) else { continue };
        buffer.clear();
        match method {
            b"initialize" => {
                let offer = br#""protocolVersion":2"#;
                is_v2 = line.windows(offer.len()).any(|part| part == offer);
                let result = match is_v2 {
                    true => {
                        r#""result":{"protocolVersion":2,"info":{"name":"raw","version":"0"},"capabilities":{"session":{}},"authMethods":[]}"#
                    }
                    false => {
                        r#""result":{"protocolVersion":1,"agentCapabilities":{"loadSession":false},"authMethods":[]}"#
                    }
                };
                answer(&mut buffer, id, result.as_bytes());
            }
            b"session/new" => {
                sessions += 1;
                let result = format!(r#""result":{{"sessionId":"s-{sessions}"}}"#);
                answer(&mut buffer, id, result.as_bytes());
            }
            b"session/prompt" => {
                let session = text_member(&line, "sessionId").unwrap_or(b"s-1");
                let order = text_member(&line, "text").and_then(|text| std::str::from_utf8(text).ok());
                turns += 1;
                let message_id = is_v2.then(|| format!("a-{turns}"));
                if is_v2 {
                    let text = order.unwrap_or_default();
                    let message = format!(
                        r#""sessionUpdate":"user_message","messageId":"u-{turns}","content":[{{"type":"text","text":"{text}"}}]"#
                    );
                    update(&mut buffer, session, &message);
                    answer(&mut buffer, id, format!(r#""result":{{"messageId":"u-{turns}"}}"#).as_bytes());
                    update(&mut buffer, session, r#""sessionUpdate":"state_update","state":"running""#);
                }
                match Order::parse(order.unwrap_or_default()) {
                    Order::Stream { n, len } | Order::Streamy { n, len } => {
                        stream(&mut out, &mut buffer, session, message_id.as_deref(), n, len)?;
                    }
                    Order::Read { n } => {
                        let tail = br#"","path":"/tmp/x.txt"}}"#;
                        calls(&mut input, &mut out, "fs/read_text_file", session, tail, n)?;
                    }
                    Order::Perm { n } => {
                        let tail = concat!(
                            r#"","toolCall":{"toolCallId":"t1","title":"edit","kind":"edit","status":"pending"},"#,
                            r#""options":[{"optionId":"a","name":"Allow","kind":"allow_once"},"#,
                            r#"{"optionId":"r","name":"Reject","kind":"reject_once"}]}}"#
                        );
                        calls(
                            &mut input,
                            &mut out,
                            "session/request_permission",
                            session,
                            tail.as_bytes(),
                            n,
                        )?;
                    }
                    Order::Paced { .. } | Order::Nothing => {}
                }
                match is_v2 {
                    true => {
                        let idle = r#""sessionUpdate":"state_update","state":"idle","stopReason":"end_turn""#;
                        update(&mut buffer, session, idle);
                    }
                    false => answer(&mut buffer, id, br#""result":{"stopReason":"end_turn"}"#),
                }
            }
            _ => answer(&mut buffer, id, br#""error":{"code":-32601,"message":"Method not found"}"#),
        }
        out.write_all(&buffer)?;
    }
    Ok(())
}

fn read_line(input: &mut BufReader<StdinLock<'_>>, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    Ok(input.read_until(b'\n', line)? > 0)
}

fn answer(buffer: &mut Vec<u8>, id: &[u8], outcome: &[u8]) {
    buffer.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    buffer.extend_from_slice(id);
    buffer.push(b',');
    buffer.extend_from_slice(outcome);
    buffer.extend_from_slice(b"}\n");
}

fn update(buffer: &mut Vec<u8>, session: &[u8], members: &str) {
    buffer.extend_from_slice(br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":""#);
    buffer.extend_from_slice(session);
    buffer.extend_from_slice(br#"","update":{"#);
    buffer.extend_from_slice(members.as_bytes());
    buffer.extend_from_slice(b"}}}\n");
}

fn stream(
    out: &mut File,
    buffer: &mut Vec<u8>,
    session: &[u8],
    message_id: Option<&str>,
    n: usize,
    len: usize,
) -> io::Result<()> {
    let mut update = br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":""#.to_vec();
    update.extend_from_slice(session);
    update.extend_from_slice(
        br#"","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""#,
    );
    let digits = update.len();
    update.extend_from_slice(bench_probe::chunk(0, &bench_probe::padding(len)).as_bytes());
    update.extend_from_slice(b"\"}");
    if let Some(id) = message_id {
        update.extend_from_slice(format!(r#","messageId":"{id}""#).as_bytes());
    }
    update.extend_from_slice(b"}}}\n");
    for i in 0..n {
        let mut rest = i;
        for digit in update[digits..digits + 8].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        buffer.extend_from_slice(&update);
        if buffer.len() > 64 << 10 {
            out.write_all(buffer)?;
            buffer.clear();
        }
    }
    Ok(())
}

fn calls(
    input: &mut BufReader<StdinLock<'_>>,
    out: &mut File,
    method: &str,
    session: &[u8],
    tail: &[u8],
    n: usize,
) -> io::Result<()> {
    let mut line = Vec::new();
    let mut request = Vec::new();
    for i in 0..n {
        request.clear();
        write!(request, r#"{{"jsonrpc":"2.0","id":"c{i}","method":"{method}","params":{{"sessionId":""#)?;
        request.extend_from_slice(session);
        request.extend_from_slice(tail);
        request.push(b'\n');
        out.write_all(&request)?;
        if !read_line(input, &mut line)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if Head::of(&line).is_error {
            return Err(io::Error::other("the client refused"));
        }
    }
    Ok(())
}
