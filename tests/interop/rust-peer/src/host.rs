//! What this client offers the agent: files, terminals, answers; and the record of what the
//! sessions have shown.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard};

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::*;
use agent_client_protocol::{Agent, Error, Result};
use interop_rust_peer::missing;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::sync::{Notify, watch};

/// How the next permission question is answered.
#[derive(Clone, Default)]
pub enum Permission {
    #[default]
    Allow,
    Reject,
    /// Cancels the turn first.
    Cancel,
}

struct Terminal {
    output: Arc<Mutex<Vec<u8>>>,
    status: watch::Receiver<Option<TerminalExitStatus>>,
    kill: Arc<Notify>,
}

#[derive(Default)]
struct State {
    seen: HashMap<String, Vec<String>>,
    permission: Permission,
    elicitation: Value,
    terminals: HashMap<TerminalId, Terminal>,
    made: usize,
}

#[derive(Clone, Default)]
pub struct Host {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

impl Host {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn record(&self, session: &str, line: String) {
        self.lock().seen.entry(session.to_owned()).or_default().push(line);
        self.changed.notify_waiters();
    }

    pub fn log(&self, session: &str) -> Vec<String> {
        self.lock().seen.get(session).cloned().unwrap_or_default()
    }

    /// Waits until the record of a session satisfies the condition.
    pub async fn until(&self, session: &str, condition: impl Fn(&[String]) -> bool) {
        loop {
            let changed = self.changed.notified();
            if condition(&self.log(session)) {
                return;
            }
            changed.await;
        }
    }

    pub fn answer_permission(&self, answer: Permission) {
        self.lock().permission = answer;
    }

    pub fn answer_elicitation(&self, answer: Value) {
        self.lock().elicitation = answer;
    }

    pub fn open_terminals(&self) -> usize {
        self.lock().terminals.len()
    }

    pub fn permission(
        &self,
        agent: &ConnectionTo<Agent>,
        request: RequestPermissionRequest,
    ) -> Result<RequestPermissionResponse> {
        let options: Vec<String> = request
            .options
            .iter()
            .map(|o| format!("{}/{}", o.option_id.0, json!(o.kind).as_str().unwrap_or("?")))
            .collect();
        let line = format!("permission:{}:{}", request.tool_call.tool_call_id.0, options.join(","));
        self.record(&request.session_id.0, line);
        let chosen =
            |id: &str| RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(id.to_owned()));
        let answer = self.lock().permission.clone();
        Ok(RequestPermissionResponse::new(match answer {
            Permission::Allow => chosen("allow"),
            Permission::Reject => chosen("reject"),
            Permission::Cancel => {
                agent.send_notification(CancelNotification::new(request.session_id))?;
                RequestPermissionOutcome::Cancelled
            }
        }))
    }

    pub fn elicitation(&self, request: &CreateElicitationRequest) -> Result<CreateElicitationResponse> {
        let raw = serde_json::to_value(request)?;
        let word = |key: &str| raw[key].as_str().unwrap_or("?").to_owned();
        let what = match raw["requestedSchema"]["properties"].as_object() {
            Some(properties) => {
                let mut names: Vec<String> = properties
                    .iter()
                    .map(|(name, schema)| format!("{name}/{}", schema["type"].as_str().unwrap_or("?")))
                    .collect();
                names.sort();
                names.join(",")
            }
            None => format!("{} {}", word("elicitationId"), word("url")),
        };
        let line = format!("elicitation:{}:{}:{what}", word("mode"), request.message);
        self.record(&word("sessionId"), line);
        Ok(serde_json::from_value(self.lock().elicitation.clone())?)
    }

    pub fn read(&self, request: &ReadTextFileRequest) -> Result<ReadTextFileResponse> {
        let text = std::fs::read_to_string(&request.path).map_err(|_| missing(request.path.display()))?;
        let start = request.line.unwrap_or(1).saturating_sub(1) as usize;
        let limit = request.limit.map_or(usize::MAX, |n| n as usize);
        let lines: Vec<&str> = text.split('\n').skip(start).take(limit).collect();
        Ok(ReadTextFileResponse::new(lines.join("\n")))
    }

    pub fn write(&self, request: &WriteTextFileRequest) -> Result<WriteTextFileResponse> {
        std::fs::write(&request.path, &request.content).map_err(Error::into_internal_error)?;
        Ok(WriteTextFileResponse::new())
    }

    pub fn create(&self, request: &CreateTerminalRequest) -> Result<CreateTerminalResponse> {
        let mut command = tokio::process::Command::new(&request.command);
        command.args(&request.args).envs(request.env.iter().map(|e| (&e.name, &e.value)));
        if let Some(cwd) = &request.cwd {
            command.current_dir(cwd);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
        let mut child = command.spawn().map_err(Error::into_internal_error)?;
        let mut stdout = child.stdout.take().ok_or_else(Error::internal_error)?;
        let output = Arc::new(Mutex::new(Vec::new()));
        let kill = Arc::new(Notify::new());
        let (tell, status) = watch::channel(None);
        let (sink, stop) = (output.clone(), kill.clone());
        tokio::spawn(async move {
            let mut part = [0; 4096];
            loop {
                tokio::select! {
                    () = stop.notified() => { let _ = child.start_kill(); }
                    read = stdout.read(&mut part) => match read {
                        Ok(n) if n > 0 => sink.lock().unwrap().extend_from_slice(&part[..n]),
                        _ => break,
                    },
                }
            }
            let mut exit = TerminalExitStatus::new();
            match child.wait().await.ok().and_then(|s| s.code()) {
                Some(code) => exit = exit.exit_code(code as u32),
                None => exit = exit.signal("SIGKILL".to_owned()),
            }
            let _ = tell.send(Some(exit));
        });
        let mut state = self.lock();
        state.made += 1;
        let id = TerminalId::new(format!("term-{}", state.made));
        state.terminals.insert(id.clone(), Terminal { output, status, kill });
        Ok(CreateTerminalResponse::new(id))
    }

    fn terminal<T>(&self, id: &TerminalId, look: impl FnOnce(&Terminal) -> T) -> Result<T> {
        let state = self.lock();
        state.terminals.get(id).map(look).ok_or_else(|| missing(&id.0))
    }

    pub fn output(&self, request: &TerminalOutputRequest) -> Result<TerminalOutputResponse> {
        self.terminal(&request.terminal_id, |t| {
            let output = String::from_utf8_lossy(&t.output.lock().unwrap()).into_owned();
            let status = t.status.borrow().clone();
            TerminalOutputResponse::new(output, false).exit_status(status)
        })
    }

    pub async fn wait(&self, request: &WaitForTerminalExitRequest) -> Result<WaitForTerminalExitResponse> {
        let mut status = self.terminal(&request.terminal_id, |t| t.status.clone())?;
        let exit = status.wait_for(Option::is_some).await.map_err(Error::into_internal_error)?.clone();
        Ok(WaitForTerminalExitResponse::new(exit.unwrap_or_default()))
    }

    pub fn kill(&self, id: &TerminalId) -> Result<()> {
        self.terminal(id, |t| t.kill.notify_one())
    }

    pub fn release(&self, id: &TerminalId) -> Result<()> {
        self.kill(id)?;
        self.lock().terminals.remove(id);
        Ok(())
    }
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("?")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn content(c: &Value) -> String {
    match word(c, "type") {
        "text" => format!("text:{}", word(c, "text")),
        "resource" => format!("resource:{}", word(&c["resource"], "uri")),
        "resource_link" => format!("resource_link:{}", word(c, "name")),
        other => format!("{other}:{}", word(c, "mimeType")),
    }
}

fn tool_content(c: &Value) -> String {
    match word(c, "type") {
        "diff" => {
            let path = Path::new(word(c, "path"));
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            format!("diff({name}|{}|{})", word(c, "oldText"), word(c, "newText"))
        }
        "terminal" => "terminal".into(),
        _ => format!("content({})", content(&c["content"])),
    }
}

pub fn options(items: &Value) -> String {
    let pairs: Vec<String> =
        list(items).map(|o| format!("{}={}", word(o, "id"), word(o, "currentValue"))).collect();
    pairs.join(",")
}

/// One update in one line.
pub fn brief(u: &Value) -> String {
    let with_content = |head: String| {
        let parts: Vec<String> = std::iter::once(head).chain(list(&u["content"]).map(tool_content)).collect();
        parts.join(":")
    };
    // A typed tool call that is pending or of kind other leaves the field out.
    let or = |key: &str, default: &'static str| u[key].as_str().unwrap_or(default).to_owned();
    match word(u, "sessionUpdate") {
        "user_message_chunk" => format!("user:{}", word(&u["content"], "text")),
        "agent_message_chunk" => content(&u["content"]),
        "agent_thought_chunk" => format!("thought:{}", word(&u["content"], "text")),
        "plan" => {
            let entries: Vec<String> = list(&u["entries"])
                .map(|e| format!("{}={}/{}", word(e, "content"), word(e, "priority"), word(e, "status")))
                .collect();
            format!("plan:{}", entries.join(","))
        }
        "tool_call" => with_content(format!(
            "tool_call:{}:{}:{}:{}",
            word(u, "toolCallId"),
            or("kind", "other"),
            or("status", "pending"),
            word(u, "title")
        )),
        "tool_call_update" => {
            with_content(format!("tool_call_update:{}:{}", word(u, "toolCallId"), word(u, "status")))
        }
        "available_commands_update" => {
            let names: Vec<String> = list(&u["availableCommands"])
                .map(|c| match c["input"]["hint"].as_str() {
                    Some(hint) => format!("{}({hint})", word(c, "name")),
                    None => word(c, "name").to_owned(),
                })
                .collect();
            format!("commands:{}", names.join(","))
        }
        "current_mode_update" => format!("mode:{}", word(u, "currentModeId")),
        "config_option_update" => format!("config:{}", options(&u["configOptions"])),
        "session_info_update" => format!("info:{}:{}", word(u, "title"), word(u, "updatedAt")),
        "usage_update" => {
            let cost = &u["cost"];
            format!("usage:{}/{}:{} {}", u["used"], u["size"], cost["amount"], word(cost, "currency"))
        }
        other => format!("other:{other}"),
    }
}
