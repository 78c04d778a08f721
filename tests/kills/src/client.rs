//! A client that survives itself: it comes back where its log ends, and sends open prompts again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use attache_conn::{FrameReader, FrameWriter, Link};
use serde_json::{Value, json};

use crate::agent::Task;
use crate::random::Random;
use crate::view::Recorder;

/// How often a client decides what to do next.
const TICK: Duration = Duration::from_millis(20);
/// The pause between attempts to connect.
const PAUSE: Duration = Duration::from_millis(5);
/// A hub that says nothing for this long to a client that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Files of a world that clients share with the campaign.
pub(crate) struct Files {
    directory: PathBuf,
}

impl Files {
    pub(crate) fn of(directory: &Path) -> Files {
        Files { directory: directory.to_owned() }
    }

    /// The address of the hub's server, which changes with each start.
    pub(crate) fn url(&self) -> PathBuf {
        self.directory.join("url")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("hub.sock")
    }

    /// While it exists clients begin nothing new.
    pub(crate) fn drain(&self) -> PathBuf {
        self.directory.join("drain")
    }

    pub(crate) fn agents(&self) -> PathBuf {
        self.directory.join("agents.log")
    }

    pub(crate) fn client(&self, number: usize) -> PathBuf {
        self.directory.join(format!("client{number}.log"))
    }
}

/// Why a connection ended.
enum End {
    /// The hub is gone, or has closed it.
    Lost,
    /// A law is broken.
    Broken(String),
}

impl From<String> for End {
    fn from(error: String) -> End {
        End::Broken(error)
    }
}

/// `kills client DIRECTORY NUMBER SEED`
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let [directory, number, seed] = args else {
        return Err("usage: kills client DIRECTORY NUMBER SEED".to_owned());
    };
    let files = Files::of(Path::new(directory));
    let number: usize = number.parse().map_err(|_| "the number is not a number")?;
    let seed: u64 = seed.parse().map_err(|_| "the seed is not a number")?;
    let recorder = Recorder::open(&files.client(number))?;
    let random = Random::new(seed);
    let mut client = Client { files, number, random, recorder, open_questions: Vec::new(), next_id: 0 };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(client.live())
}

struct Client {
    files: Files,
    number: usize,
    random: Random,
    recorder: Recorder,
    /// Requests for an answer: the id of the request and the question.
    open_questions: Vec<(Value, String)>,
    next_id: i64,
}

/// An open connection.
struct Connection {
    reader: FrameReader,
    writer: FrameWriter,
    /// Prompts by the ids of their requests on this connection.
    prompts: Vec<(i64, String)>,
}

/// Connects over the Unix socket or over a WebSocket.
async fn connect(files: &Files, over_socket: bool) -> Option<Link> {
    if over_socket {
        return Link::unix(files.socket()).await.ok();
    }
    let url = std::fs::read_to_string(files.url()).ok()?;
    let url = format!("ws{}", url.trim().strip_prefix("http")?);
    let options = attache_http::client::remote::Options::default();
    attache_http::client::remote::connect(&url, &options).await.ok()
}

impl Client {
    /// Lives until everything is done after the campaign has asked for that.
    async fn live(&mut self) -> Result<(), String> {
        let since = std::time::Instant::now();
        loop {
            let Some(link) = connect(&self.files, self.number.is_multiple_of(2)).await else {
                if since.elapsed() > PATIENCE * 3 {
                    return Err("the hub cannot be reached".to_owned());
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let (reader, writer) = link.split();
            let mut connection = Connection { reader, writer, prompts: Vec::new() };
            self.open_questions.clear();
            match self.converse(&mut connection).await {
                Ok(()) => return Ok(()),
                Err(End::Lost) => tokio::time::sleep(PAUSE).await,
                Err(End::Broken(error)) => return Err(error),
            }
        }
    }

    async fn converse(&mut self, connection: &mut Connection) -> Result<(), End> {
        let capabilities = json!({"_meta": {"attache": {}}});
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        self.call(connection, "initialize", params).await?;
        let sessions: Vec<String> = self.recorder.view.sessions.keys().cloned().collect();
        for session in &sessions {
            let Some(view) = self.recorder.view.sessions.get(session) else { continue };
            let meta = json!({"attache": {"after": format!("{}.{}", view.epoch, view.seq), "strict": true}});
            let params = json!({"sessionId": session, "cwd": "/", "mcpServers": [], "_meta": meta});
            let resumed = self.call(connection, "session/resume", params).await?;
            let Some(at) = resumed["result"]["_meta"]["attache"]["at"].as_str() else {
                return Err(End::Broken(format!("the session was not resumed: {resumed}")));
            };
            self.recorder.set(session, at)?;
        }
        let open: Vec<String> = self.open_prompts();
        for prompt in open {
            self.send_prompt(connection, &prompt).await?;
        }
        let mut tick = tokio::time::interval(TICK);
        let mut heard = std::time::Instant::now();
        loop {
            tokio::select! {
                message = next(&mut connection.reader) => {
                    heard = std::time::Instant::now();
                    self.handle(connection, &message?)?;
                }
                _ = tick.tick() => {
                    let is_draining = self.files.drain().exists();
                    self.answer(connection, is_draining).await?;
                    if self.open_prompts().is_empty() {
                        if is_draining {
                            return Ok(());
                        }
                        self.start_prompt(connection, &sessions).await?;
                    } else if heard.elapsed() > PATIENCE {
                        let open = self.open_prompts();
                        return Err(End::Broken(format!("no answer to {open:?}")));
                    } else if self.random.percent(2) {
                        self.cancel(connection).await?;
                    }
                }
            }
        }
    }

    fn open_prompts(&self) -> Vec<String> {
        let prompts = self.recorder.view.prompts.iter();
        prompts.filter(|(_, prompt)| prompt.response.is_none()).map(|(id, _)| id.clone()).collect()
    }

    async fn send(&self, connection: &mut Connection, message: &Value) -> Result<(), End> {
        connection.writer.send(message.to_string().as_bytes()).await.map_err(|_| End::Lost)
    }

    async fn request(
        &mut self,
        connection: &mut Connection,
        method: &str,
        params: Value,
    ) -> Result<i64, End> {
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.send(connection, &message).await?;
        Ok(self.next_id)
    }

    async fn call(&mut self, connection: &mut Connection, method: &str, params: Value) -> Result<Value, End> {
        let id = self.request(connection, method, params).await?;
        loop {
            let message = tokio::time::timeout(PATIENCE, next(&mut connection.reader)).await;
            let message = message.map_err(|_| End::Broken(format!("no answer to {method}")))??;
            if message["id"] == id && message["method"].is_null() {
                return Ok(message);
            }
            self.handle(connection, &message)?;
        }
    }

    fn handle(&mut self, connection: &mut Connection, message: &Value) -> Result<(), End> {
        self.recorder.see(message)?;
        match message["method"].as_str() {
            Some("session/request_permission") => {
                let title = message["params"]["toolCall"]["title"].as_str().unwrap_or_default();
                self.open_questions.push((message["id"].clone(), title.to_owned()));
            }
            Some("$/cancel_request") => {
                let withdrawn = &message["params"]["requestId"];
                self.open_questions.retain(|(id, _)| id != withdrawn);
            }
            Some(_) => {}
            None => {
                let Some(at) = connection.prompts.iter().position(|(id, _)| message["id"] == *id) else {
                    return Ok(());
                };
                let (_, prompt) = connection.prompts.remove(at);
                let error = &message["error"];
                if !error.is_null() && error["data"]["attache"]["interrupted"] != true {
                    return Err(End::Broken(format!("the prompt {prompt} failed: {error}")));
                }
                let response = json!({"result": message["result"], "error": error});
                self.recorder.record(&json!({"event": "response", "id": prompt, "response": response}))?;
            }
        }
        Ok(())
    }

    async fn start_prompt(&mut self, connection: &mut Connection, sessions: &[String]) -> Result<(), End> {
        let Some(session) = sessions.get(self.random.below(sessions.len() as u64) as usize) else {
            return Err(End::Broken("there are no sessions".to_owned()));
        };
        let id = format!("c{}p{}", self.number, self.recorder.view.prompts.len() + 1);
        let task = Task { id: id.clone(), chunks: 1 + self.random.below(30), asks: self.random.percent(30) };
        let event = json!({"event": "prompt", "id": id, "session": session, "text": task.text()});
        self.recorder.record(&event)?;
        self.send_prompt(connection, &id).await
    }

    async fn send_prompt(&mut self, connection: &mut Connection, id: &str) -> Result<(), End> {
        let Some(prompt) = self.recorder.view.prompts.get(id).cloned() else { return Ok(()) };
        let params = json!({
            "sessionId": prompt.session,
            "prompt": [{"type": "text", "text": prompt.text}],
            "_meta": {"attache": {"prompt": id}},
        });
        let request = self.request(connection, "session/prompt", params).await?;
        connection.prompts.push((request, id.to_owned()));
        Ok(())
    }

    /// Cancels the turn of a session.
    async fn cancel(&mut self, connection: &mut Connection) -> Result<(), End> {
        let Some(id) = self.open_prompts().pop() else { return Ok(()) };
        let Some(prompt) = self.recorder.view.prompts.get(&id) else { return Ok(()) };
        let params = json!({"sessionId": prompt.session});
        let message = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params});
        self.send(connection, &message).await
    }

    /// Answers a question, often.
    async fn answer(&mut self, connection: &mut Connection, at_once: bool) -> Result<(), End> {
        if !at_once && !self.random.percent(50) {
            return Ok(());
        }
        let Some((id, question)) = self.open_questions.pop() else { return Ok(()) };
        let answer = if self.random.percent(50) { "yes" } else { "no" };
        self.recorder.record(&json!({"event": "answer", "question": question, "answer": answer}))?;
        let result = json!({"outcome": {"outcome": "selected", "optionId": answer}});
        self.send(connection, &json!({"jsonrpc": "2.0", "id": id, "result": result})).await
    }
}

async fn next(reader: &mut FrameReader) -> Result<Value, End> {
    match reader.next().await {
        Ok(Some(line)) => {
            serde_json::from_slice(line).map_err(|error| End::Broken(format!("a line is no JSON: {error}")))
        }
        Ok(None) | Err(_) => Err(End::Lost),
    }
}

/// Creates sessions and writes their beginning into the logs of all clients.
pub(crate) async fn create_sessions(files: &Files, cwd: &Path, clients: usize) -> Result<(), String> {
    let mut speaker = Speaker::connect(files).await?;
    for _ in 0..2 {
        let created = speaker.call("session/new", json!({"cwd": cwd, "mcpServers": []})).await?;
        let result = &created["result"];
        let (Some(session), Some(at)) =
            (result["sessionId"].as_str(), result["_meta"]["attache"]["at"].as_str())
        else {
            return Err(format!("no session: {created}"));
        };
        for number in 0..clients {
            Recorder::open(&files.client(number))?.set(session, at)?;
        }
    }
    Ok(())
}

/// Loads the whole history of sessions.
pub(crate) async fn load(files: &Files, sessions: &[String]) -> Result<Recorder, String> {
    let mut speaker = Speaker::connect(files).await?;
    for session in sessions {
        speaker.recorder.set(session, "0.0")?;
        let params = json!({"sessionId": session, "cwd": "/", "mcpServers": []});
        let loaded = speaker.call("session/load", params).await?;
        if loaded["result"].is_null() {
            return Err(format!("the session cannot be loaded: {loaded}"));
        }
    }
    Ok(speaker.recorder)
}

/// A client of the campaign itself.
struct Speaker {
    connection: Connection,
    recorder: Recorder,
    next_id: i64,
}

impl Speaker {
    async fn connect(files: &Files) -> Result<Speaker, String> {
        let link = connect(files, true).await.ok_or("the hub cannot be reached")?;
        let (reader, writer) = link.split();
        let connection = Connection { reader, writer, prompts: Vec::new() };
        let mut speaker = Speaker { connection, recorder: Recorder::new(), next_id: 0 };
        let capabilities = json!({"_meta": {"attache": {}}});
        speaker.call("initialize", json!({"protocolVersion": 1, "clientCapabilities": capabilities})).await?;
        Ok(speaker)
    }

    async fn call(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        let sent = self.connection.writer.send(message.to_string().as_bytes()).await;
        sent.map_err(|error| error.to_string())?;
        loop {
            let message = tokio::time::timeout(PATIENCE, next(&mut self.connection.reader)).await;
            match message.map_err(|_| format!("no answer to {method}"))? {
                Ok(message) if message["id"] == self.next_id && message["method"].is_null() => {
                    return Ok(message);
                }
                Ok(message) => self.recorder.see(&message)?,
                Err(End::Lost) => return Err("the hub closed the connection".to_owned()),
                Err(End::Broken(error)) => return Err(error),
            }
        }
    }
}
