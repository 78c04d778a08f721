//! The bench client on the floor.

use bench_floor::messages::*;
use bench_floor::{Wire, decode, open};
use bench_probe::{Job, Meter, Report, Seen, proc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::io;
use std::process::{ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::time::Instant;

struct Client {
    wire: Wire<ChildStdout, ChildStdin>,
    line: Vec<u8>,
    next: u64,
    jitter: bool,
    seen: Seen,
    /// Updates per session: what routing to an open session costs at the least.
    sessions: HashMap<String, usize>,
}

impl Client {
    fn ask<T: DeserializeOwned>(&mut self, method: &str, params: impl Serialize) -> io::Result<T> {
        self.next += 1;
        self.wire.request(self.next, method, params)?;
        loop {
            if !self.wire.receive(&mut self.line)? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let envelope = open(&self.line)?;
            match envelope.method.as_deref() {
                None => return decode(envelope.result),
                Some("session/update") => {
                    let update: Update = decode(envelope.params)?;
                    if let Some(count) = self.sessions.get_mut(&update.session_id) {
                        *count += 1;
                    }
                    if let Kind::AgentMessageChunk(Chunk { content: Block::Text { text } }) = &update.update {
                        if self.jitter {
                            std::thread::sleep(Job::jitter(text));
                        }
                        self.seen.text(text);
                    }
                }
                Some("fs/read_text_file") => {
                    let _: ReadFile = decode(envelope.params)?;
                    if let Some(id) = envelope.id {
                        self.wire.answer(id, FileRead { content: "hello from the file".into() })?;
                    }
                }
                Some(_) => {}
            }
        }
    }

    fn session(&mut self) -> io::Result<String> {
        let params = NewSession { cwd: "/tmp".into(), mcp_servers: Vec::new() };
        let opened: SessionOpened = self.ask("session/new", params)?;
        Ok(opened.session_id)
    }

    fn prompt(&mut self, session: &str, text: String) -> io::Result<()> {
        let params = Prompt { session_id: session.into(), prompt: vec![Block::Text { text }] };
        self.ask::<TurnEnded>("session/prompt", params).map(drop)
    }
}

fn main() -> ExitCode {
    let outcome = Job::from_args().and_then(|job| run(&job).map_err(|error| error.to_string()));
    match outcome {
        Ok(report) => println!("{}", report.finish()),
        Err(why) => println!("{}", Report::failure("client", &why)),
    }
    ExitCode::SUCCESS
}

fn run(job: &Job) -> io::Result<Report> {
    let mut child = Command::new(&job.agent[0])
        .args(&job.agent[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the agent has no pipes"));
    };
    let mut client = Client {
        wire: Wire::new(output, input),
        line: Vec::new(),
        next: 0,
        jitter: job.mode == "jitter",
        seen: Seen::default(),
        sessions: HashMap::new(),
    };
    let hello = serde_json::json!({
        "protocolVersion": 1,
        "clientCapabilities": {"fs": {"readTextFile": true, "writeTextFile": false}, "terminal": false},
    });
    client.ask::<serde_json::Value>("initialize", hello)?;
    let report = measure(job, &mut client);
    drop(client);
    child.wait()?;
    report
}

fn measure(job: &Job, client: &mut Client) -> io::Result<Report> {
    if job.mode == "rtt" {
        let mut times = Vec::with_capacity(job.n());
        let meter = Meter::start();
        for _ in 0..job.n() {
            let start = Instant::now();
            client.session()?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        return Ok(meter.stop(job, &client.seen).times(&mut times));
    }
    let me = std::process::id();
    let before = proc::rss(me);
    let opening = Instant::now();
    let mut open = Vec::new();
    for _ in 0..job.sessions() {
        let session = client.session()?;
        client.sessions.insert(session.clone(), 0);
        open.push(session);
    }
    let each = opening.elapsed().as_secs_f64() * 1e6 / open.len() as f64;
    let held = proc::rss(me);
    let meter = Meter::start();
    client.prompt(&open[open.len() / 2], job.prompt())?;
    let handled = client.seen.handled();
    Ok(meter
        .stop(job, &client.seen)
        .number("handled_at_response", handled)
        .number("sessions", open.len())
        .fixed("open_us_per", each, 1)
        .number("rss_1_kb", before as usize)
        .number("rss_s_kb", held as usize))
}
