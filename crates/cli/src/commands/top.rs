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
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
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

/// The answer of a hub to `_attache/status`. A member that is missing or of another type counts as
/// zero.
#[derive(Debug, Deserialize)]
struct Status {
    #[serde(default)]
    sessions: Vec<SessionStatus>,
    /// Those of the whole hub, for the default tenant.
    #[serde(flatten)]
    whole: Option<Whole>,
}

/// The connections and processes of a hub.
#[derive(Debug, Deserialize)]
struct Whole {
    clients: u64,
    #[serde(default, deserialize_with = "lenient")]
    agents: u64,
    #[serde(default, deserialize_with = "lenient")]
    turns: u64,
    /// Bytes.
    #[serde(default, deserialize_with = "lenient")]
    memory: u64,
}

/// A session, in the form of `session/list`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionStatus {
    #[serde(default, deserialize_with = "lenient")]
    session_id: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    title: Option<String>,
    #[serde(rename = "_meta", default, deserialize_with = "lenient")]
    meta: SessionMeta,
}

#[derive(Debug, Default, Deserialize)]
struct SessionMeta {
    #[serde(default, deserialize_with = "lenient")]
    attache: SessionDetails,
}

/// What the hub adds to a session.
#[derive(Debug, Default, Deserialize)]
struct SessionDetails {
    #[serde(default, deserialize_with = "lenient")]
    state: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    clients: u64,
    /// Prompts that wait.
    #[serde(default, deserialize_with = "lenient")]
    queued: u64,
    /// Open questions.
    #[serde(default, deserialize_with = "lenient")]
    questions: u64,
    /// Bytes in the journal.
    #[serde(default, deserialize_with = "lenient")]
    bytes: u64,
    #[serde(default, deserialize_with = "lenient")]
    agent: Option<AgentStatus>,
}

/// The agent's process of a session.
#[derive(Debug, Deserialize)]
struct AgentStatus {
    /// Bytes; `None` if the system does not tell.
    #[serde(default, deserialize_with = "lenient")]
    memory: Option<u64>,
}

/// Reads a member; one of another type is the default. The table is worth more than a column of it.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(deserializer: D) -> Result<T, D::Error> {
    Value::deserialize(deserializer).map(|value| serde_json::from_value(value).unwrap_or_default())
}

/// The answer of a hub to `initialize`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Initialized {
    agent_capabilities: Capabilities,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Capabilities {
    #[serde(rename = "_meta", deserialize_with = "lenient")]
    meta: CapabilitiesMeta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CapabilitiesMeta {
    attache: HubMark,
}

/// The mark of a hub: its version. Other agents have none.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct HubMark {
    hub: Option<String>,
}

/// Shows the table: once, or again and again on a terminal until a key ends it.
pub(crate) fn top(cx: &Cx) -> Result<()> {
    let spec = cx.agent_named(cx.args.word(0).unwrap_or(HUB))?;
    runtime(async {
        let link = connect::link(&spec, &cx.cwd, None, &connect::credentials(cx, &spec)).await?;
        let mut hub = Hub::open(link).await?;
        if cx.output.format == Format::Json {
            cx.output.json(&hub.call::<Value>("_attache/status", &json!({})).await?);
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

fn picture(status: &Status, columns: usize, lines: usize, look: Look) -> Vec<Line> {
    let mut live = Vec::new();
    if let Some(Whole { clients, agents, turns, memory }) = status.whole {
        live.push(format!("{clients} clients, {agents} agents, {turns} turns, {}", bytes(memory)));
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
fn rows(status: &Status) -> Vec<Vec<String>> {
    let word = |text: &Option<String>| text.as_deref().unwrap_or("-").replace(char::is_control, " ");
    let row = |session: &SessionStatus| {
        let details = &session.meta.attache;
        let agent = match &details.agent {
            None => "-".to_owned(),
            Some(AgentStatus { memory: Some(memory) }) => bytes(*memory),
            Some(AgentStatus { memory: None }) => "running".to_owned(),
        };
        vec![
            word(&session.session_id),
            word(&details.state),
            details.clients.to_string(),
            details.queued.to_string(),
            details.questions.to_string(),
            agent,
            bytes(details.bytes),
            word(&session.title),
        ]
    };
    let heads = HEADS.map(str::to_owned).to_vec();
    std::iter::once(heads).chain(status.sessions.iter().map(row)).collect()
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
        let initialized: Initialized = hub.call("initialize", &params).await?;
        if initialized.agent_capabilities.meta.attache.hub.is_none() {
            return Err(Failure::usage("this is no hub").hint("attache hub starts one"));
        }
        Ok(hub)
    }

    async fn status(&mut self) -> Result<Status> {
        self.call("_attache/status", &json!({})).await
    }

    async fn call<T: DeserializeOwned>(&mut self, method: &str, params: &Value) -> Result<T> {
        let answered = tokio::time::timeout(PATIENCE, self.exchange(method, params)).await;
        answered.unwrap_or_else(|_| Err(Failure::runtime("the hub does not answer")))
    }

    async fn exchange<T: DeserializeOwned>(&mut self, method: &str, params: &Value) -> Result<T> {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_status_is_read_as_far_as_it_can_be() {
        let status = json!({
            "clients": 2, "agents": 1, "turns": 0, "memory": null,
            "sessions": [
                {"sessionId": "s", "title": null, "_meta": {"attache": {
                    "state": "idle", "clients": 2, "queued": 1, "questions": 0, "bytes": 2048, "agent": {"pid": 7, "memory": null},
                }}},
                {"sessionId": "a\nb", "title": "t", "_meta": {"attache": {"state": 5, "clients": "many", "agent": null}}},
                {"sessionId": 7, "_meta": null},
            ],
        });
        let status: Status = serde_json::from_value(status).unwrap();
        assert_eq!(status.whole.as_ref().map(|whole| (whole.clients, whole.memory)), Some((2, 0)));
        let rows = rows(&status);
        assert_eq!(rows[1], ["s", "idle", "2", "1", "0", "running", &bytes(2048), "-"]);
        assert_eq!(rows[2], ["a b", "-", "0", "0", "0", "-", &bytes(0), "t"]);
        assert_eq!(rows[3], ["-", "-", "0", "0", "0", "-", &bytes(0), "-"]);
        // Other tenants get their sessions alone.
        let status: Status = serde_json::from_value(json!({"sessions": []})).unwrap();
        assert!(status.whole.is_none());
    }
}
