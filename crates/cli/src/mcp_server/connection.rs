//! Serves one MCP client.
//!
//! Requests are read in order and calls of tools run beside each other. At the end of the input
//! commands are ended and open questions are answered no, so that every call ends and the server
//! with it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use attache_conn::{FrameReader, FrameWriter, Link};
use attache_host::policy::{Answer, Question};
use attache_rpc::{ErrorObject, Frame, Id, code};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::protocol::{self, ClientCapabilities, Era};
use super::question;
use super::tools::{Asking, ToolResult, Toolbox};

/// The longest message of a client, in bytes.
const LONGEST_MESSAGE: usize = 16 << 20;
/// The levels of objects and arrays in a message.
const DEPTH: usize = 64;
/// Calls at a time, those included that wait for the user.
const CALLS: usize = 16;
/// Messages that may wait for a client that does not read.
const QUEUED: usize = 16;
/// How long a client that has closed its side may leave responses unread.
const DRAIN_TIME: Duration = Duration::from_secs(2);

const NO_FORMS: &str = "the user cannot be asked, because the MCP client does not support elicitation; to allow it, set \
     `permissions` or `permission_policy` in the settings of attache";

/// Serves a client until it closes its side.
///
/// # Errors
/// If the input cannot be read.
pub(crate) async fn serve(link: Link, tools: Toolbox) -> io::Result<()> {
    let (reader, writer) = link.split();
    let (out, messages) = mpsc::channel(QUEUED);
    let (closing, closed) = watch::channel(false);
    let writing = tokio::spawn(write(writer, messages));
    let connection = Arc::new(Connection { tools, out, closed, state: Mutex::default() });
    let mut tasks = JoinSet::new();
    let ended = read(reader.with_limit(LONGEST_MESSAGE), &connection, &mut tasks).await;
    let _ = closing.send(true);
    connection.state.lock().close();
    while tasks.join_next().await.is_some() {}
    drop(connection);
    let _ = tokio::time::timeout(DRAIN_TIME, writing).await;
    ended
}

async fn write(mut writer: FrameWriter, mut messages: mpsc::Receiver<String>) {
    while let Some(message) = messages.recv().await {
        if writer.send(message.as_bytes()).await.is_err() {
            return;
        }
    }
    let _ = writer.close().await;
}

async fn read(
    mut reader: FrameReader,
    connection: &Arc<Connection>,
    tasks: &mut JoinSet<()>,
) -> io::Result<()> {
    loop {
        let received = reader.next().await;
        // Calls that have ended do not count.
        while tasks.try_join_next().is_some() {}
        let line = match received {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let why = format!("the message is longer than {} MiB", LONGEST_MESSAGE >> 20);
                if connection.take(Frame::parse_head(reader.head(), &why), tasks).await.is_err() {
                    return Ok(());
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        if connection.take(Frame::parse(line, DEPTH), tasks).await.is_err() {
            return Ok(());
        }
    }
}

/// The client does not read any more.
struct ClientGone;

struct Connection {
    tools: Toolbox,
    out: mpsc::Sender<String>,
    /// Whether the client has closed its side.
    closed: watch::Receiver<bool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The client's capabilities, if it began with `initialize`.
    handshake: Option<ClientCapabilities>,
    /// The requests whose calls run.
    running: HashMap<Id, (Arc<Call>, AbortHandle)>,
    /// The calls that wait for a second request with the answer of the user, the oldest first.
    suspended: VecDeque<Suspended>,
    /// Our questions to a client that began with `initialize`.
    questions: HashMap<i64, oneshot::Sender<Value>>,
    /// The number of the last question.
    last_question: i64,
    is_closed: bool,
}

impl State {
    /// Withdraws all questions.
    fn close(&mut self) {
        self.is_closed = true;
        self.suspended.clear();
        self.questions.clear();
    }
}

/// A call of a tool.
struct Call {
    name: String,
    arguments: Value,
    era: Era,
    client: ClientCapabilities,
    /// The request that gets the response; `None` while the call waits for the second one.
    request: Mutex<Option<Id>>,
    /// Whether a question could not be asked.
    unasked: AtomicBool,
}

/// A call that waits for the answer of the user.
struct Suspended {
    state: String,
    form: Value,
    call: Arc<Call>,
    task: Option<AbortHandle>,
    reply: oneshot::Sender<Value>,
}

impl Connection {
    async fn take(self: &Arc<Self>, frame: Frame<'_>, tasks: &mut JoinSet<()>) -> Result<(), ClientGone> {
        match frame {
            Frame::Request { id, method, params } => {
                let params = params.map_or(Value::Null, |params| decode(params.get()));
                self.request(id, &method, params, tasks).await
            }
            Frame::Notification { method, params } => {
                if let ("notifications/cancelled", Some(params)) = (&*method, params) {
                    self.cancel(&decode(params.get()));
                }
                Ok(())
            }
            Frame::Response { id, outcome } => {
                if let Id::Int(number) = id {
                    let question = self.state.lock().questions.remove(&number);
                    let result = outcome.map_or(Value::Null, |result| decode(result.get()));
                    let _ = question.map(|question| question.send(result));
                }
                Ok(())
            }
            Frame::Malformed(malformed) => match malformed.answer {
                Some((id, error)) => self.send(protocol::error(&id, &error)).await,
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    async fn request(
        self: &Arc<Self>,
        id: Id,
        method: &str,
        params: Value,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), ClientGone> {
        let response = match self.handle(&id, method, params, tasks) {
            Ok(Some((era, result))) => protocol::response(&id, era, result),
            Ok(None) => return Ok(()),
            Err(error) => protocol::error(&id, &error),
        };
        self.send(response).await
    }

    /// Returns the result of a request, or `None` if its call has been started.
    fn handle(
        self: &Arc<Self>,
        id: &Id,
        method: &str,
        params: Value,
        tasks: &mut JoinSet<()>,
    ) -> Result<Option<(Era, Value)>, ErrorObject> {
        if *id == Id::Null {
            return Err(ErrorObject::invalid_request("the id of a request is a string or an integer"));
        }
        let known = matches!(method, "initialize" | "ping" | "server/discover" | "tools/list" | "tools/call");
        if !known {
            return Err(ErrorObject::method_not_found(method));
        }
        let mut state = self.state.lock();
        if method == "initialize" {
            let (result, client) = protocol::initialize(&params)?;
            state.handshake = Some(client);
            return Ok(Some((Era::Handshake, result)));
        }
        // Clients of older revisions may ping before anything else.
        if method == "ping" && params["_meta"].get("io.modelcontextprotocol/protocolVersion").is_none() {
            return Ok(Some((Era::Handshake, json!({}))));
        }
        let (era, client) = protocol::era(&params, state.handshake)?;
        match (method, era) {
            ("server/discover", Era::Stateless) => Ok(Some((era, protocol::discovery()))),
            ("tools/list", _) => Ok(Some((era, protocol::tool_list(era, self.tools.definitions())))),
            ("tools/call", _) if params.get("requestState").is_some() => resume(&mut state, id, era, &params),
            ("tools/call", _) => self.start(&mut state, id, era, client, params, tasks).map(|()| None),
            _ => Err(ErrorObject::method_not_found(method)),
        }
    }

    /// Starts the call of a tool.
    fn start(
        self: &Arc<Self>,
        state: &mut State,
        id: &Id,
        era: Era,
        client: ClientCapabilities,
        mut params: Value,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), ErrorObject> {
        let Some(name) = params["name"].as_str().map(str::to_owned) else {
            return Err(ErrorObject::invalid_params("`name` is missing"));
        };
        if !self.tools.has(&name) {
            return Err(ErrorObject::invalid_params(format!("there is no tool `{name}`")));
        }
        let arguments = match params["arguments"].take() {
            Value::Null => json!({}),
            arguments @ Value::Object(_) => arguments,
            _ => return Err(ErrorObject::invalid_params("`arguments` is not an object")),
        };
        if state.running.contains_key(id) {
            return Err(ErrorObject::invalid_request("a request with this id is in progress"));
        }
        // A client that never answers its questions must not block other calls for ever.
        if tasks.len() >= CALLS && state.suspended.pop_front().is_none() {
            let text = format!("{CALLS} calls are in progress; wait for one of them");
            return Err(ErrorObject::new(code::INTERNAL_ERROR, text));
        }
        let call = Arc::new(Call {
            name,
            arguments,
            era,
            client,
            request: Mutex::new(Some(id.clone())),
            unasked: AtomicBool::new(false),
        });
        let task = tasks.spawn(self.clone().run(call.clone()));
        state.running.insert(id.clone(), (call, task));
        Ok(())
    }

    async fn run(self: Arc<Self>, call: Arc<Call>) {
        let ask = {
            let (connection, call) = (self.clone(), call.clone());
            move |question| {
                let (connection, call) = (connection.clone(), call.clone());
                async move { connection.ask(&call, &question).await }
            }
        };
        let mut closed = self.closed.clone();
        let closed = async move {
            let _ = closed.wait_for(|closed| *closed).await;
        };
        let mut result = self.tools.call(&call.name, &call.arguments, ask, closed).await;
        if call.unasked.load(Ordering::Relaxed) {
            result = ToolResult::with_hint(result, NO_FORMS);
        }
        // Without a request the client has given up on the call.
        let Some(request) = call.request.lock().take() else { return };
        self.state.lock().running.remove(&request);
        let _ = self.send(protocol::response(&request, call.era, result.into_value())).await;
    }

    /// Asks the user of the client. No answer is a no.
    async fn ask(&self, call: &Arc<Call>, question: &Question) -> Answer {
        debug_assert_eq!(self.tools.asking(), Asking::Client);
        if !call.client.forms {
            call.unasked.store(true, Ordering::Relaxed);
            return Answer::Unanswered;
        }
        let form = question::form(question);
        let (reply, answered) = oneshot::channel();
        let (message, _open) = match call.era {
            Era::Handshake => match self.elicit(form, reply) {
                Some((message, open)) => (message, Some(open)),
                None => return Answer::Unanswered,
            },
            Era::Stateless => match self.suspend(call, form, reply) {
                Some(message) => (message, None),
                None => return Answer::Unanswered,
            },
        };
        if self.send(message).await.is_err() {
            return Answer::Unanswered;
        }
        answered.await.map_or(Answer::Unanswered, |result| question::answer(&result))
    }

    /// The request that shows a form to the user.
    fn elicit(&self, form: Value, reply: oneshot::Sender<Value>) -> Option<(String, OpenQuestion<'_>)> {
        let mut state = self.state.lock();
        if state.is_closed {
            return None;
        }
        state.last_question += 1;
        let number = state.last_question;
        state.questions.insert(number, reply);
        let request =
            json!({ "jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": form });
        Some((request.to_string(), OpenQuestion { connection: self, number }))
    }

    /// Ends the request of a call with a question. Its answer arrives with a second request.
    fn suspend(&self, call: &Arc<Call>, form: Value, reply: oneshot::Sender<Value>) -> Option<String> {
        let request = call.request.lock().take()?;
        let mut state = self.state.lock();
        let task = state.running.remove(&request).map(|(_, task)| task);
        if state.is_closed {
            // The refusal is the response of this request.
            *call.request.lock() = Some(request);
            return None;
        }
        state.last_question += 1;
        let token = format!("question-{}", state.last_question);
        let response = protocol::response(&request, call.era, protocol::input_required(&form, &token));
        state.suspended.push_back(Suspended { state: token, form, call: call.clone(), task, reply });
        Some(response)
    }

    /// Ends a call whose request the client has cancelled. It gets no response.
    fn cancel(&self, params: &Value) {
        let id = match &params["requestId"] {
            Value::String(id) => Id::Str(id.as_str().into()),
            Value::Number(id) => match id.as_i64() {
                Some(id) => Id::Int(id),
                None => return,
            },
            _ => return,
        };
        let running = self.state.lock().running.remove(&id);
        if let Some((call, task)) = running {
            call.request.lock().take();
            task.abort();
        }
    }

    async fn send(&self, message: String) -> Result<(), ClientGone> {
        self.out.send(message).await.map_err(|_| ClientGone)
    }
}

/// A question that is withdrawn if its call ends before the answer.
struct OpenQuestion<'a> {
    connection: &'a Connection,
    number: i64,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let is_open = self.connection.state.lock().questions.remove(&self.number).is_some();
        if is_open {
            let params = json!({ "requestId": self.number, "reason": "the call was cancelled" });
            let message = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
            // A client that does not read has not seen the question either.
            let _ = self.connection.out.try_send(message.to_string());
        }
    }
}

/// Continues a suspended call with the answer of the user.
fn resume(state: &mut State, id: &Id, era: Era, params: &Value) -> Result<Option<(Era, Value)>, ErrorObject> {
    let token = params["requestState"].as_str();
    let at = state.suspended.iter().position(|waiting| Some(waiting.state.as_str()) == token);
    let Some(waiting) = at.and_then(|at| state.suspended.remove(at)) else {
        return Err(ErrorObject::invalid_params("`requestState` is unknown or was used before"));
    };
    let no_arguments = json!({});
    let arguments = params.get("arguments").unwrap_or(&no_arguments);
    if params["name"] != waiting.call.name.as_str() || *arguments != waiting.call.arguments {
        return Err(ErrorObject::invalid_params("`requestState` belongs to another call"));
    }
    let Some(answer) = params["inputResponses"].get(protocol::QUESTION).cloned() else {
        let result = protocol::input_required(&waiting.form, &waiting.state);
        state.suspended.push_back(waiting);
        return Ok(Some((era, result)));
    };
    *waiting.call.request.lock() = Some(id.clone());
    if let Some(task) = waiting.task {
        state.running.insert(id.clone(), (waiting.call, task));
    }
    let _ = waiting.reply.send(answer);
    Ok(None)
}

fn decode(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}
