//! The bench agent on the floor.

use bench_floor::messages::*;
use bench_floor::{Wire, decode, open};
use bench_probe::{Order, chunk, padding};
use serde::Serialize;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

type Stdio = Wire<io::StdinLock<'static>, File>;

fn main() -> io::Result<()> {
    let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut wire = Wire::new(io::stdin().lock(), out);
    let mut line = Vec::new();
    let mut sessions = 0;
    let mut calls = Calls { next: 0, line: Vec::new() };
    while wire.receive(&mut line)? {
        let envelope = open(&line)?;
        let (Some(id), Some(method)) = (envelope.id, envelope.method.as_deref()) else { continue };
        match method {
            "initialize" => {
                wire.answer(id, serde_json::json!({"protocolVersion": 1, "agentCapabilities": {}}))?;
            }
            "session/new" => {
                let _: NewSession = decode(envelope.params)?;
                sessions += 1;
                wire.answer(id, SessionOpened { session_id: format!("s-{sessions}") })?;
            }
            "session/prompt" => {
                let prompt: Prompt = decode(envelope.params)?;
                turn(&mut wire, &mut calls, &prompt)?;
                wire.answer(id, TurnEnded { stop_reason: "end_turn".into() })?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn turn(wire: &mut Stdio, calls: &mut Calls, prompt: &Prompt) -> io::Result<()> {
    let order = match prompt.prompt.first() {
        Some(Block::Text { text }) => Order::parse(text),
        _ => Order::Nothing,
    };
    let session_id = || prompt.session_id.clone();
    match order {
        Order::Stream { n, len } | Order::Streamy { n, len } => {
            let padding = padding(len);
            for i in 0..n {
                let content = Block::Text { text: chunk(i, &padding) };
                let update = Kind::AgentMessageChunk(Chunk { content });
                wire.notify("session/update", Update { session_id: session_id(), update })?;
            }
        }
        Order::Read { n } => {
            for _ in 0..n {
                let params = ReadFile { session_id: session_id(), path: "/tmp/x.txt".into() };
                let _: FileRead = calls.ask(wire, "fs/read_text_file", params)?;
            }
        }
        Order::Perm { n } => {
            for _ in 0..n {
                let params = AskPermission {
                    session_id: session_id(),
                    tool_call: ToolCall { tool_call_id: "t1".into(), title: "edit".into() },
                    options: vec![choice("a", "Allow", "allow_once"), choice("r", "Reject", "reject_once")],
                };
                let _: Permission = calls.ask(wire, "session/request_permission", params)?;
            }
        }
        Order::Paced { .. } | Order::Nothing => {}
    }
    Ok(())
}

fn choice(id: &str, name: &str, kind: &str) -> Choice {
    Choice { option_id: id.into(), name: name.into(), kind: kind.into() }
}

struct Calls {
    next: u64,
    line: Vec<u8>,
}

impl Calls {
    fn ask<T: serde::de::DeserializeOwned>(
        &mut self,
        wire: &mut Stdio,
        method: &str,
        params: impl Serialize,
    ) -> io::Result<T> {
        self.next += 1;
        wire.request(self.next, method, params)?;
        if !wire.receive(&mut self.line)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        decode(open(&self.line)?.result)
    }
}
