//! A client of protocol version 2 on the official Rust SDK: `client_v2 -- AGENT ARGS…`. Runs its
//! checks against our agent for the scenarios and prints one line for each: `ok NAME`, or `not ok
//! NAME: WHY`.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v2::schema::*;
use agent_client_protocol::v2::{ConnectionTo, Responder};
use agent_client_protocol::{AcpAgent, Agent, Client, Error, Result};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, channel};

/// Holds what must be so.
macro_rules! check {
    ($condition:expr, $($seen:tt)+) => {
        if !$condition {
            return Err(Error::internal_error().data(json!(format!("{}: {}", stringify!($condition), format!($($seen)+)))));
        }
    };
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_json::from_value(value).map_err(Error::into_internal_error)
}

/// The option that the client chooses, by its kind; `None` cancels the question.
type Answer = Arc<Mutex<Option<&'static str>>>;

struct Checks {
    connection: ConnectionTo<Agent>,
    updates: tokio::sync::Mutex<Receiver<(String, Value)>>,
    answer: Answer,
    asked: Arc<Mutex<Value>>,
    cwd: String,
    /// Whether the agent has sessions; without them nothing else is asked of it.
    has_sessions: AtomicBool,
}

/// What came of one prompt.
struct Turn {
    response: Value,
    updates: Vec<Value>,
}

impl Turn {
    fn said(&self) -> String {
        let chunks = self.updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
        chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    fn kinds(&self) -> Vec<&str> {
        let kind = |update: &'_ Value| if update["state"].is_string() { "state" } else { "sessionUpdate" };
        self.updates.iter().filter_map(|update| update[kind(update)].as_str()).collect()
    }

    fn stop(&self) -> &Value {
        self.updates.last().map_or(&Value::Null, |idle| &idle["stopReason"])
    }

    fn find(&self, kind: &str) -> Vec<&Value> {
        self.updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
    }
}

impl Checks {
    async fn request<R>(&self, params: Value) -> Result<Value>
    where
        R: DeserializeOwned + agent_client_protocol::JsonRpcRequest,
        R::Response: serde::Serialize + Send,
    {
        let response = self.connection.send_request(typed::<R>(params)?).block_task().await?;
        Ok(serde_json::to_value(response)?)
    }

    async fn open(&self) -> Result<String> {
        let opened = self.request::<NewSessionRequest>(json!({"cwd": self.cwd})).await?;
        Ok(opened["sessionId"].as_str().unwrap_or_default().to_owned())
    }

    /// The updates of a session until it is idle with a stop reason.
    async fn until_idle(&self, session: &str, mut during: impl FnMut(&Value)) -> Result<Vec<Value>> {
        let mut updates = Vec::new();
        let mut receiver = self.updates.lock().await;
        loop {
            let next = receiver.recv().await;
            let (of, update) =
                next.ok_or_else(|| Error::internal_error().data(json!("the agent has gone")))?;
            if of != session {
                continue;
            }
            during(&update);
            let idle = update["state"] == "idle" && update["stopReason"].is_string();
            updates.push(update);
            if idle {
                return Ok(updates);
            }
        }
    }

    async fn turn(&self, session: &str, text: &str) -> Result<Turn> {
        self.turn_with(session, text, |_| {}).await
    }

    async fn turn_with(&self, session: &str, text: &str, during: impl FnMut(&Value)) -> Result<Turn> {
        let response = self.prompt(session, text);
        let (response, updates) = tokio::join!(response, self.until_idle(session, during));
        Ok(Turn { response: response?, updates: updates? })
    }

    async fn prompt(&self, session: &str, text: &str) -> Result<Value> {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request::<PromptRequest>(json!({"sessionId": session, "prompt": prompt})).await
    }

    fn cancel(&self, session: &str) -> Result<()> {
        self.connection.send_notification(CancelSessionNotification::new(session.to_owned()))
    }

    async fn initialize(&self) -> Result<()> {
        let info = Implementation::new("interop-client-v2", "1");
        let hello = self.connection.send_request(InitializeRequest::new(ProtocolVersion::V2, info));
        let hello = serde_json::to_value(hello.block_task().await?)?;
        self.has_sessions.store(hello["capabilities"]["session"].is_object(), Ordering::Relaxed);
        check!(hello["protocolVersion"] == 2, "{hello}");
        check!(hello["info"]["name"] == "interop-agent", "{hello}");
        check!(hello["capabilities"]["session"].is_object(), "{hello}");
        Ok(())
    }

    async fn login(&self) -> Result<()> {
        let refused = self.open().await;
        check!(refused.as_ref().is_err_and(|error| i32::from(error.code) == -32000), "{refused:?}");
        self.request::<LoginAuthRequest>(json!({"methodId": "pass"})).await?;
        Ok(())
    }

    async fn stream(&self) -> Result<()> {
        let turn = self.turn(&self.open().await?, "stream 20").await?;
        check!(turn.kinds().starts_with(&["user_message", "running"]), "{:?}", turn.kinds());
        check!(turn.updates[0]["messageId"] == turn.response["messageId"], "{}", turn.response);
        let expected: String = (0..20).map(|i| format!("{i}:é\u{2028}😀;")).collect();
        check!(turn.said() == expected, "{}", turn.said());
        check!(turn.stop() == "end_turn", "{}", turn.stop());
        Ok(())
    }

    async fn replaced_message(&self) -> Result<()> {
        let turn = self.turn(&self.open().await?, "replace").await?;
        let (chunks, whole) = (turn.find("agent_message_chunk"), turn.find("agent_message"));
        check!(chunks.len() == 1 && whole.len() == 1, "{:?}", turn.kinds());
        check!(whole[0]["messageId"] == chunks[0]["messageId"], "{}", whole[0]);
        check!(whole[0]["content"][0]["text"] == "final", "{}", whole[0]);
        Ok(())
    }

    async fn edit(&self, kind: &'static str, said: &str, expected: &str) -> Result<()> {
        let path = format!("{}/draft.txt", self.cwd);
        std::fs::write(&path, "one\ntwo\n").map_err(Error::into_internal_error)?;
        *self.answer.lock().unwrap() = Some(kind);
        let turn = self.turn(&self.open().await?, &format!("edit {path}")).await?;
        let file = std::fs::read_to_string(&path).map_err(Error::into_internal_error)?;
        check!(file == expected, "{file}");
        check!(turn.said() == said, "{}", turn.said());
        check!(turn.kinds().contains(&"requires_action"), "{:?}", turn.kinds());
        let asked = self.asked.lock().unwrap().clone();
        check!(asked["subject"]["type"] == "tool_call", "{asked}");
        let diff = &asked["subject"]["toolCall"]["content"][0];
        check!(diff["changes"][0]["operation"] == "modify", "{asked}");
        let patch = diff["patch"]["text"].as_str().unwrap_or_default();
        check!(patch.contains("-two\n+TWO\n"), "{patch}");
        Ok(())
    }

    async fn edit_granted(&self) -> Result<()> {
        self.edit("allow_once", "applied", "one\nTWO\n").await
    }

    async fn edit_denied(&self) -> Result<()> {
        self.edit("reject_once", "denied", "one\ntwo\n").await
    }

    async fn terminal(&self) -> Result<()> {
        let turn = self.turn(&self.open().await?, "run").await?;
        let pieces: Vec<_> =
            turn.find("terminal_output_chunk").iter().map(|chunk| chunk["data"].clone()).collect();
        check!(pieces == [json!("aMM="), json!("pAo=")], "{pieces:?}");
        let changes = turn.find("terminal_update");
        check!(changes.len() == 2 && changes[1]["exitStatus"]["exitCode"] == 3, "{changes:?}");
        let shown = turn.find("tool_call_content_chunk");
        check!(
            shown.len() == 1 && shown[0]["content"]["terminalId"] == changes[0]["terminalId"],
            "{shown:?}"
        );
        Ok(())
    }

    async fn cancel_a_turn(&self) -> Result<()> {
        let session = self.open().await?;
        let mut ticks = 0;
        let turn = self.turn_with(&session, "forever", |update| {
            ticks += usize::from(update["sessionUpdate"] == "agent_message_chunk");
            if ticks == 2 {
                let _ = self.cancel(&session);
            }
        });
        let turn = turn.await?;
        check!(turn.stop() == "cancelled", "{}", turn.stop());
        check!(self.turn(&session, "say again").await?.said() == "again", "");
        Ok(())
    }

    async fn queue(&self) -> Result<()> {
        let session = self.open().await?;
        let prompts = async {
            tokio::join!(
                self.prompt(&session, "say one"),
                self.prompt(&session, "say two"),
                self.prompt(&session, "say three")
            )
        };
        let updates = async {
            let mut updates = Vec::new();
            for _ in 0..3 {
                updates.extend(self.until_idle(&session, |_| {}).await?);
            }
            Ok::<_, Error>(updates)
        };
        let ((one, two, three), updates) = tokio::join!(prompts, updates);
        let turn = Turn { response: json!([one?, two?, three?]), updates: updates? };
        check!(turn.said() == "onetwothree", "{}", turn.said());
        Ok(())
    }

    async fn background(&self) -> Result<()> {
        let session = self.open().await?;
        let turn = self.turn(&session, "background").await?;
        let work = json!([{"type": "tool_call", "toolCallId": "bg-1"}]);
        let idle = turn.updates.last().unwrap_or(&Value::Null);
        check!(idle["background"] == work, "{idle}");
        // A cancel does not touch it.
        self.cancel(&session)?;
        let turn = self.turn(&session, "say still").await?;
        let idle = turn.updates.last().unwrap_or(&Value::Null);
        check!(idle["background"] == work, "{idle}");
        let turn = self.turn(&session, "finish").await?;
        let idle = turn.updates.last().unwrap_or(&Value::Null);
        check!(idle["background"] == json!([]), "{idle}");
        Ok(())
    }

    async fn resume_with_replay(&self) -> Result<()> {
        let session = self.open().await?;
        self.turn(&session, "say remember").await?;
        self.request::<CloseSessionRequest>(json!({"sessionId": session})).await?;
        let replay = json!({"sessionId": session, "cwd": self.cwd, "replayFrom": {"type": "start"}});
        self.request::<ResumeSessionRequest>(replay).await?;
        let turn = self.turn(&session, "say again").await?;
        check!(turn.said() == "rememberagain", "{:?}", turn.updates);
        let unknown = json!({"sessionId": session, "cwd": self.cwd, "replayFrom": {"type": "_x"}});
        let refused = self.request::<ResumeSessionRequest>(unknown).await;
        check!(refused.as_ref().is_err_and(|error| i32::from(error.code) == -32602), "{refused:?}");
        Ok(())
    }

    /// Runs one check. Returns whether it holds.
    async fn run(&self, name: &str, check: impl Future<Output = Result<()>>) -> bool {
        match tokio::time::timeout(Duration::from_secs(20), check).await {
            Ok(Ok(())) => {
                println!("ok {name}");
                true
            }
            Ok(Err(error)) => {
                println!("not ok {name}: {}", serde_json::to_string(&error).unwrap_or_default());
                false
            }
            Err(_) => {
                println!("not ok {name}: timed out");
                false
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let cut = args.iter().position(|arg| arg == "--").ok_or("usage: client_v2 -- AGENT ARGS…")?;
    let agent = AcpAgent::from_args(args[cut + 1..].to_vec())?;
    let cwd = std::env::current_dir()?.to_string_lossy().into_owned();
    let (sender, updates) = channel(10_000);
    let (answer, asked) = (Answer::default(), Arc::<Mutex<Value>>::default());
    let (answering, asking) = (answer.clone(), asked.clone());
    let mut failed = false;
    let result = &mut failed;
    Client
        .v2()
        .name("interop-client-v2")
        .on_receive_notification(
            async move |update: UpdateSessionNotification, _: ConnectionTo<Agent>| {
                let update = serde_json::to_value(&update)?;
                let session = update["sessionId"].as_str().unwrap_or_default().to_owned();
                let _ = sender.send((session, update["update"].clone())).await;
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest,
                        responder: Responder<RequestPermissionResponse>,
                        _: ConnectionTo<Agent>| {
                let request = serde_json::to_value(&request)?;
                let kind = *answering.lock().unwrap();
                let options = request["options"].as_array().cloned().unwrap_or_default();
                let chosen =
                    options.iter().find(|option| Some(option["kind"].as_str().unwrap_or("")) == kind);
                let outcome = match chosen {
                    Some(option) => json!({"outcome": "selected", "optionId": option["optionId"]}),
                    None => json!({"outcome": "cancelled"}),
                };
                *asking.lock().unwrap() = request;
                responder.respond(typed(json!({"outcome": outcome}))?)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(agent, async move |connection: ConnectionTo<Agent>| {
            let updates = tokio::sync::Mutex::new(updates);
            let has_sessions = AtomicBool::new(false);
            let checks = Checks { connection, updates, answer, asked, cwd, has_sessions };
            let mut ok = checks.run("initialize", checks.initialize()).await;
            if !checks.has_sessions.load(Ordering::Relaxed) {
                *result = true;
                return Ok(());
            }
            ok &= checks.run("login", checks.login()).await;
            ok &= checks.run("stream", checks.stream()).await;
            ok &= checks.run("replaced_message", checks.replaced_message()).await;
            ok &= checks.run("edit_granted", checks.edit_granted()).await;
            ok &= checks.run("edit_denied", checks.edit_denied()).await;
            ok &= checks.run("terminal", checks.terminal()).await;
            ok &= checks.run("cancel", checks.cancel_a_turn()).await;
            ok &= checks.run("queue", checks.queue()).await;
            ok &= checks.run("background", checks.background()).await;
            ok &= checks.run("resume_with_replay", checks.resume_with_replay()).await;
            *result = !ok;
            Ok(())
        })
        .await?;
    if failed { Err("some checks failed".into()) } else { Ok(()) }
}
