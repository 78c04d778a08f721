//! `attache hub top`: the sessions of a hub, and what they need.

use std::io;
use std::time::Duration;

use attache::{FrameReader, FrameWriter};
use attache_rpc::Frame;
use attache_term::device::{self, Keys, Raw};
use attache_term::render::style::Line;
use attache_term::render::text::{self, Look};
use attache_term::screen::{Frame as Picture, Screen};
use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use serde_json::{Value, json};

use crate::connect;
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::output::{Format, bytes};
use crate::runtime::runtime;

/// The hub without a word on the command line.
const HUB: &str = "http://127.0.0.1:4848/acp";
/// The time between two pictures.
const PERIOD: Duration = Duration::from_secs(2);
/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Levels of objects and arrays in an answer.
const DEPTH: usize = 64;
/// The heads of the columns.
const HEADS: [&str; 8] = ["session", "state", "clients", "queued", "asks", "agent", "stored", "title"];

/// Shows the table: once, or again and again on a terminal until a key ends it.
pub(crate) fn top(cx: &Cx) -> Result<()> {
    let spec = cx.agent_named(cx.args.word(0).unwrap_or(HUB))?;
    runtime(async {
        let link = connect::link(&spec, &cx.cwd, None, &connect::credentials(cx, &spec)).await?;
        let mut hub = Hub::open(link).await?;
        if cx.output.format == Format::Json {
            cx.output.json(&hub.status().await?);
            return Ok(());
        }
        if !cx.output.stdout.terminal || cx.output.format != Format::Text {
            cx.output.columns(&rows(&hub.status().await?));
            return Ok(());
        }
        watch(&mut hub).await
    })
}

/// Draws the table until a key ends it.
async fn watch(hub: &mut Hub) -> Result<()> {
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let look = Look { colours, unicode: device::is_unicode() };
    let first = hub.status().await?;
    let _raw = Raw::enter().context("the terminal")?;
    let mut keys = Keys::read().context("the terminal")?;
    let mut screen = Screen::new(io::stdout(), look);
    let mut status = first;
    let mut time = tokio::time::interval(PERIOD);
    time.tick().await;
    let ended = loop {
        let (columns, lines) = crossterm::terminal::size().context("the terminal")?;
        let live = picture(&status, columns.into(), usize::from(lines).max(1), look);
        screen.draw(Picture { live, ..Picture::default() }).context("the terminal")?;
        tokio::select! {
            event = keys.next() => match event {
                None => break Ok(()),
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release && ends(key.code, key.modifiers) => {
                    break Ok(());
                }
                Some(_) => {}
            },
            _ = time.tick() => match hub.status().await {
                Ok(next) => status = next,
                Err(failure) => break Err(failure),
            },
        }
    };
    screen.leave().context("the terminal")?;
    ended
}

fn ends(code: KeyCode, modifiers: KeyModifiers) -> bool {
    match code {
        KeyCode::Char('q') | KeyCode::Esc => true,
        KeyCode::Char('c' | 'd') => modifiers.contains(KeyModifiers::CONTROL),
        _ => false,
    }
}

fn picture(status: &Value, columns: usize, lines: usize, look: Look) -> Vec<Line> {
    let number = |name: &str| status[name].as_u64().unwrap_or(0);
    let mut live = Vec::new();
    if status["clients"].is_number() {
        live.push(format!(
            "{} clients, {} agents, {} turns, {}",
            number("clients"),
            number("agents"),
            number("turns"),
            bytes(number("memory"))
        ));
    }
    let foreign = |cells: Vec<String>| cells.iter().map(|cell| text::inline(cell, look)).collect();
    let rows: Vec<Vec<String>> = rows(status).into_iter().map(foreign).collect();
    let widest: Vec<usize> = (0..HEADS.len())
        .map(|at| rows.iter().filter_map(|row| row.get(at)).map(|cell| text::width(cell)).max().unwrap_or(0))
        .collect();
    live.extend(rows.iter().map(|row| {
        let cells = row.iter().zip(&widest);
        cells.map(|(cell, widest)| format!("{cell}{}  ", " ".repeat(widest - text::width(cell)))).collect()
    }));
    // The last row stays free for the cursor.
    let lines = live.into_iter().take(lines.saturating_sub(1));
    lines.map(|line| Line::from(text::cut(line.trim_end(), columns.saturating_sub(1), look))).collect()
}

/// The table, its heads first.
fn rows(status: &Value) -> Vec<Vec<String>> {
    let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
    for session in status["sessions"].as_array().into_iter().flatten() {
        let meta = &session["_meta"]["attache"];
        let number = |name: &str| meta[name].as_u64().unwrap_or(0);
        let word = |value: &Value| value.as_str().unwrap_or("-").replace(char::is_control, " ");
        let agent = match (&meta["agent"], meta["agent"]["memory"].as_u64()) {
            (Value::Null, _) => "-".to_owned(),
            (_, Some(memory)) => bytes(memory),
            (_, None) => "running".to_owned(),
        };
        rows.push(vec![
            word(&session["sessionId"]),
            word(&meta["state"]),
            number("clients").to_string(),
            number("queued").to_string(),
            number("questions").to_string(),
            agent,
            bytes(number("bytes")),
            word(&session["title"]),
        ]);
    }
    rows
}

/// A connection to a hub.
struct Hub {
    reader: FrameReader,
    writer: FrameWriter,
    next_id: i64,
}

impl Hub {
    async fn open(link: attache::Link) -> Result<Hub> {
        let (reader, writer) = link.split();
        let mut hub = Hub { reader, writer, next_id: 0 };
        let params = json!({
            "protocolVersion": 1,
            "clientInfo": {"name": "attache", "version": env!("CARGO_PKG_VERSION")},
        });
        let initialized = hub.call("initialize", &params).await?;
        if !initialized["agentCapabilities"]["_meta"]["attache"]["hub"].is_string() {
            return Err(Failure::usage("this is no hub").hint("attache hub starts one"));
        }
        Ok(hub)
    }

    async fn status(&mut self) -> Result<Value> {
        self.call("_attache/status", &json!({})).await
    }

    async fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let answered = tokio::time::timeout(PATIENCE, self.exchange(method, params)).await;
        answered.unwrap_or_else(|_| Err(Failure::runtime("the hub does not answer")))
    }

    async fn exchange(&mut self, method: &str, params: &Value) -> Result<Value> {
        let own = self.next_id;
        self.next_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": own, "method": method, "params": params});
        self.writer.send(request.to_string().as_bytes()).await.context("the hub")?;
        loop {
            let Some(line) = self.reader.next().await.context("the hub")? else {
                return Err(Failure::runtime("the hub has closed the connection"));
            };
            match Frame::parse(line, DEPTH) {
                Frame::Response { id, outcome } if id == attache_rpc::Id::Int(own) => {
                    let result = outcome
                        .map_err(|error| Failure::runtime(format_args!("the hub: {}", error.message)))?;
                    return serde_json::from_str(result.get()).map_err(Failure::runtime);
                }
                _ => {}
            }
        }
    }
}
