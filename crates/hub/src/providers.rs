//! The providers of a running agent: its requests for files and terminals, and who answers them.
//!
//! The providers of `attache-host` serve a client of the SDK. So each agent gets such a client
//! beside its clients: the agent's requests for files and terminals are passed to it as lines over
//! a link in memory, and its responses go back to the agent. When the agent ends, the link is
//! dropped, and with it everything that the agent had opened.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use attache::client::{Client, ReadFiles, RequestContext};
use attache::wire::v1::ReadTextFileRequest;
use attache::{Error, Link, Result};
use attache_conn::rpc::{Frame, code};
use attache_conn::{FrameReader, FrameWriter};
use attache_host::files::Files;
use attache_host::policy::{Answer, Guard, Question};
use attache_host::terminals::PtyTerminals;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::debug;

use crate::agent::AgentWriter;
use crate::entry::Opened;
use crate::message::{self, DEPTH, Outcome};
use crate::provision::{Provision, chosen, roots};

/// Requests of an agent that wait for the providers.
const REQUESTS: usize = 1024;

/// The answer of a client; `None` if there is none.
pub(crate) type Answering = Pin<Box<dyn Future<Output = Option<Outcome>> + Send>>;

/// The clients of a session, as its providers need them.
pub(crate) trait Clients: Send + Sync + 'static {
    /// The id of the session that clients use.
    fn session(&self) -> &str;
    /// Asks those who may answer for a permission.
    fn ask(&self, params: Box<RawValue>) -> Answering;
    /// Asks an editor for the text of a file.
    fn read_buffer(&self, params: Value) -> Answering;
}

/// Whether a request of an agent is for the providers.
pub(crate) fn is_provided(method: &str) -> bool {
    method.starts_with("fs/") || method.starts_with("terminal/")
}

/// The providers of a running agent.
pub(crate) struct Providers {
    requests: mpsc::Sender<Vec<u8>>,
    task: JoinHandle<()>,
}

impl Providers {
    /// Starts the providers of an agent, whose responses go to `agent`.
    pub(crate) fn start(
        provision: &Provision,
        clients: Arc<dyn Clients>,
        opened: Opened,
        agent: AgentWriter,
    ) -> Providers {
        let (requests, waiting) = mpsc::channel(REQUESTS);
        let client = client(provision, clients);
        let task = tokio::spawn(async move {
            let (near, far) = Link::pair();
            let (reader, writer) = far.split();
            tokio::select! {
                () = serve(client, near, &opened) => {}
                () = relay(reader, writer, &opened, waiting, agent) => {}
            }
        });
        Providers { requests, task }
    }

    /// Passes a line of the agent on. `false` if too many wait.
    pub(crate) fn send(&self, line: &[u8]) -> bool {
        self.requests.try_send(line.to_owned()).is_ok()
    }
}

impl Drop for Providers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Files, with the buffers of editors, and terminals under the policy.
fn client(provision: &Provision, clients: Arc<dyn Clients>) -> Client {
    let asked = Arc::clone(&clients);
    let guard = Guard::new(Arc::clone(provision.policy()));
    let guard = guard.on_ask(move |question| ask(Arc::clone(&asked), question));
    let terminals = match provision.own_terminals() {
        Some(terminals) => terminals.clone().with_guard(guard.clone()),
        None => PtyTerminals::new(guard.clone()),
    };
    let files = Files::new(guard);
    let buffers = Buffers { files: files.clone(), clients };
    Client::new().read_files(buffers).write_files(files).terminals(terminals)
}

/// Opens the session of the agent in the client, and keeps it.
async fn serve(client: Client, link: Link, opened: &Opened) {
    let mut roots = roots(&opened.params).into_iter();
    let Some(cwd) = roots.next() else { return };
    let Ok(agent) = client.connect(link).await else { return };
    match agent.new_session(cwd).additional_directories(roots).await {
        Ok(session) => {
            std::future::pending::<()>().await;
            drop(session);
        }
        Err(error) => debug!(%error, "nothing is provided to the agent"),
    }
}

/// Stands for the agent in front of the client.
async fn relay(
    mut reader: FrameReader,
    mut writer: FrameWriter,
    opened: &Opened,
    mut requests: mpsc::Receiver<Vec<u8>>,
    agent: AgentWriter,
) {
    let mut is_open = false;
    loop {
        tokio::select! {
            line = reader.next() => {
                let Ok(Some(line)) = line else { return };
                let answer = match Frame::parse(line, DEPTH) {
                    Frame::Response { .. } => {
                        agent.send_later([line, b"\n"].concat()).await;
                        continue;
                    }
                    Frame::Request { id, method, .. } => {
                        let result = match &*method {
                            "initialize" => json!({
                                "protocolVersion": 1,
                                "agentCapabilities": {"sessionCapabilities": {"additionalDirectories": {}}},
                            }),
                            _ => json!({"sessionId": opened.agent_session}),
                        };
                        is_open |= method == "session/new";
                        message::response(&id, &Outcome::result(&result))
                    }
                    _ => continue,
                };
                if writer.send(answer.trim_ascii_end()).await.is_err() {
                    return;
                }
            }
            Some(line) = requests.recv(), if is_open => {
                if writer.send(&line).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Asks the clients of a session about something that the agent does without asking.
async fn ask(clients: Arc<dyn Clients>, question: Question) -> Answer {
    let title = match (&question.title, question.effects.first()) {
        (Some(title), _) => title.clone(),
        (None, Some(effect)) => effect.to_string(),
        (None, None) => return Answer::Unanswered,
    };
    let notes: Vec<Value> = question
        .effects
        .iter()
        .map(ToString::to_string)
        .chain(question.notes.iter().cloned())
        .map(|text| json!({"type": "content", "content": {"type": "text", "text": text}}))
        .collect();
    let params = json!({
        "sessionId": clients.session(),
        "toolCall": {"toolCallId": "attache-provision", "title": title, "content": notes},
        "options": [
            {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
            {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
        ],
    });
    let asked = clients.ask(message::raw(&params));
    drop(clients);
    match asked.await {
        Some(outcome) if chosen(&outcome).as_deref() == Some("allow") => Answer::Once,
        Some(_) => Answer::Reject,
        None => Answer::Unanswered,
    }
}

/// Files, whose unsaved text in an attached editor counts.
struct Buffers {
    files: Files,
    clients: Arc<dyn Clients>,
}

impl ReadFiles for Buffers {
    async fn read(&self, cx: RequestContext, request: ReadTextFileRequest) -> Result<String> {
        // The file is read in any case: what is outside of the session or denied is refused,
        // whatever an editor would say.
        let stored = ReadFiles::read(&self.files, cx, request.clone()).await;
        match stored {
            Err(error) if !is_missing(&error) => Err(error),
            stored => match self.of_editor(&request).await {
                Some(text) => Ok(text),
                None => stored,
            },
        }
    }
}

fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Refused(refusal) if refusal.code == code::RESOURCE_NOT_FOUND)
}

impl Buffers {
    async fn of_editor(&self, request: &ReadTextFileRequest) -> Option<String> {
        #[derive(Deserialize)]
        struct Text {
            content: String,
        }
        let mut params = serde_json::to_value(request).ok()?;
        params["sessionId"] = json!(self.clients.session());
        let outcome = self.clients.read_buffer(params).await?;
        let Outcome::Result(result) = outcome else { return None };
        serde_json::from_str::<Text>(result.get()).ok().map(|text| text.content)
    }
}
