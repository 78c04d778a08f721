//! A scripted agent. The text of a prompt says what it does.

use std::sync::Arc;

use attache_conn::{FrameReader, FrameWriter, Link};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What all processes of an agent did, in order.
#[derive(Clone, Default)]
pub(crate) struct Record(Arc<Mutex<Vec<String>>>, Arc<Notify>);

impl Record {
    pub(crate) fn push(&self, what: impl Into<String>) {
        self.0.lock().push(what.into());
        self.1.notify_waiters();
    }

    /// Waits for this many events that begin with a word.
    pub(crate) async fn until(&self, word: &str, count: usize) {
        loop {
            let more = self.1.notified();
            tokio::pin!(more);
            more.as_mut().enable();
            if self.of(word).len() >= count {
                return;
            }
            more.await;
        }
    }

    /// The events that begin with a word.
    pub(crate) fn of(&self, word: &str) -> Vec<String> {
        let events = self.0.lock();
        let rest = events.iter().filter_map(|event| event.strip_prefix(word)?.strip_prefix(' '));
        rest.map(str::to_owned).collect()
    }
}

/// Abilities of the agent.
#[derive(Clone, Copy)]
pub(crate) struct Abilities {
    pub(crate) load: bool,
    pub(crate) resume: bool,
}

/// Starts an agent and returns the link to it.
pub(crate) fn start(record: &Record, abilities: Abilities) -> Link {
    let (near, far) = Link::pair();
    record.push("start -");
    let (reader, writer) = far.split();
    let agent = Agent { record: record.clone(), abilities, reader, writer, next_ask: 100 };
    tokio::spawn(agent.run());
    near
}

struct Agent {
    record: Record,
    abilities: Abilities,
    reader: FrameReader,
    writer: FrameWriter,
    next_ask: i64,
}

/// A config option with a value.
fn option(value: &Value) -> Value {
    let values = json!([{"value": "fast", "name": "Fast"}, {"value": "good", "name": "Good"}]);
    json!({"id": "speed", "name": "Speed", "type": "select", "currentValue": value, "options": values})
}

/// The agent leaves.
struct Exit;

type Step = Result<(), Exit>;

impl Agent {
    async fn run(mut self) {
        while let Some(message) = self.read().await {
            if self.handle(message).await.is_err() {
                return;
            }
        }
    }

    async fn read(&mut self) -> Option<Value> {
        let line = self.reader.next().await.ok()??;
        Some(serde_json::from_slice(line).unwrap())
    }

    async fn send(&mut self, message: Value) -> Step {
        self.writer.send(message.to_string().as_bytes()).await.map_err(|_| Exit)
    }

    async fn respond(&mut self, id: &Value, result: Value) -> Step {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result})).await
    }

    async fn say(&mut self, text: &str) -> Step {
        let update =
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        self.update(update).await
    }

    async fn update(&mut self, update: Value) -> Step {
        self.send(json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}))
            .await
    }

    async fn handle(&mut self, message: Value) -> Step {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            Some("initialize") => {
                self.record.push(format!("offered {}", params["clientCapabilities"]["terminal"]));
                if params["clientCapabilities"]["elicitation"]["form"].is_object() {
                    self.record.push("forms offered");
                }
                let mut capabilities =
                    json!({"loadSession": self.abilities.load, "promptCapabilities": {"image": true}});
                if self.abilities.resume {
                    capabilities["sessionCapabilities"] = json!({"resume": {}, "fork": {}});
                }
                let info = json!({"name": "scripted", "version": "1"});
                let result =
                    json!({"protocolVersion": 1, "agentCapabilities": capabilities, "agentInfo": info});
                self.respond(id, result).await
            }
            Some("session/new") => {
                let modes = json!({"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]});
                let mut result = json!({"sessionId": "s", "modes": modes});
                if params["_meta"]["options"] == true {
                    result["configOptions"] = json!([option(&json!("fast"))]);
                }
                self.respond(id, result).await
            }
            Some(method @ ("session/load" | "session/resume")) => {
                self.record.push(format!("reopen {method}"));
                if method == "session/load" {
                    self.say("replayed by the agent").await?;
                    self.update(json!({"sessionUpdate": "usage_update", "used": 1, "size": 2})).await?;
                }
                self.respond(id, json!({})).await
            }
            Some("authenticate") => Err(Exit),
            Some("session/set_mode") => self.respond(id, json!({})).await,
            Some("session/set_config_option") => {
                self.respond(id, json!({"configOptions": [option(&params["value"])]})).await
            }
            Some("session/prompt") => {
                let text = params["prompt"][0]["text"].as_str().unwrap_or_default().to_owned();
                self.record.push(format!("prompt {text}"));
                let reason = self.turn(&text).await?;
                self.respond(id, json!({"stopReason": reason})).await
            }
            Some("session/cancel") => {
                self.record.push("cancel late");
                Ok(())
            }
            Some(method) if !id.is_null() => {
                let error = json!({"code": -32601, "message": format!("method not found: {method}")});
                self.send(json!({"jsonrpc": "2.0", "id": id, "error": error})).await
            }
            Some(method) => {
                self.record.push(format!("notification {method}"));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Plays a turn and returns its stop reason.
    async fn turn(&mut self, text: &str) -> Result<&'static str, Exit> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "count" => {
                for number in 1..=rest.parse::<u32>().unwrap() {
                    self.say(&number.to_string()).await?;
                }
            }
            "many" => {
                for number in 1..=20 {
                    self.say(&format!("{rest} {number}")).await?;
                }
            }
            "ask" => {
                let answer = self.ask(rest).await?;
                self.say(&format!("answer {answer}")).await?;
            }
            "wait" => {
                self.say("waiting").await?;
                while let Some(message) = self.read().await {
                    if message["method"] == "session/cancel" {
                        self.record.push("cancel -");
                        return Ok("cancelled");
                    }
                }
                return Err(Exit);
            }
            "edit" => {
                let diff = json!({"type": "diff", "path": "/a", "oldText": "1\n", "newText": "2\n"});
                let call = json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Edit", "kind": "edit", "status": "pending"});
                self.update(call).await?;
                self.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed", "content": [diff]}))
                    .await?;
                let entry = json!({"content": "one", "priority": "high", "status": "completed"});
                self.update(json!({"sessionUpdate": "plan", "entries": [entry]})).await?;
                self.update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "code"})).await?;
                self.say("done").await?;
            }
            "read" => {
                let read = self.call("fs/read_text_file", json!({"sessionId": "s", "path": rest})).await?;
                let text = read["result"]["content"].as_str().unwrap_or("refused").to_owned();
                self.say(&text).await?;
            }
            "write" => {
                let params = json!({"sessionId": "s", "path": rest, "content": "written"});
                let written = self.call("fs/write_text_file", params).await?;
                self.say(if written["error"].is_null() { "written" } else { "refused" }).await?;
            }
            "run" => {
                let params = json!({"sessionId": "s", "command": "sh", "args": ["-c", rest]});
                let created = self.call("terminal/create", params).await?;
                let terminal = json!({"sessionId": "s", "terminalId": created["result"]["terminalId"]});
                self.call("terminal/wait_for_exit", terminal.clone()).await?;
                let output = self.call("terminal/output", terminal.clone()).await?;
                self.call("terminal/release", terminal).await?;
                let text = output["result"]["output"].as_str().unwrap_or("refused").trim().to_owned();
                self.say(&text).await?;
            }
            // Asks for a permission to write, and writes.
            "edit-file" => {
                let diff = json!({"type": "diff", "path": rest, "oldText": null, "newText": "written"});
                let call = json!({"toolCallId": "t", "title": "Edit", "kind": "edit", "content": [diff]});
                let options = json!([
                    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
                    {"optionId": "no", "name": "No", "kind": "reject_once"},
                ]);
                let params = json!({"sessionId": "s", "toolCall": call, "options": options});
                let answer = self.call("session/request_permission", params).await?;
                let option = answer["result"]["outcome"]["optionId"].as_str().unwrap_or("none").to_owned();
                self.record.push(format!("answered {option}"));
                let params = json!({"sessionId": "s", "path": rest, "content": "written"});
                let written = self.call("fs/write_text_file", params).await?;
                self.say(if written["error"].is_null() { "written" } else { "refused" }).await?;
            }
            // Asks for input with a form.
            "form" => {
                let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                let params =
                    json!({"sessionId": "s", "mode": "form", "message": rest, "requestedSchema": schema});
                let answer = self.call("elicitation/create", params).await?;
                self.record.push(format!("answered {}", answer["result"]));
                self.say(answer["result"]["action"].as_str().unwrap_or("refused")).await?;
            }
            // Messages that name no session.
            "note" => {
                for number in 0..rest.parse::<u32>().unwrap() {
                    self.send(json!({"jsonrpc": "2.0", "method": "_note", "params": {"number": number}}))
                        .await?;
                }
                self.say("noted").await?;
            }
            "die" => {
                self.say("last words").await?;
                return Err(Exit);
            }
            _ => self.say(text).await?,
        }
        Ok("end_turn")
    }

    /// Sends a request and returns the response.
    async fn call(&mut self, method: &str, params: Value) -> Result<Value, Exit> {
        let own = self.next_ask;
        self.next_ask += 1;
        self.send(json!({"jsonrpc": "2.0", "id": own, "method": method, "params": params})).await?;
        loop {
            let message = self.read().await.ok_or(Exit)?;
            if message["id"] == own && message["method"].is_null() {
                return Ok(message);
            }
        }
    }

    /// Asks for a permission, and returns the chosen option or the outcome.
    async fn ask(&mut self, title: &str) -> Result<String, Exit> {
        let own = self.next_ask;
        self.next_ask += 1;
        let options = json!([
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]);
        let params =
            json!({"sessionId": "s", "toolCall": {"toolCallId": "t", "title": title}, "options": options});
        self.send(
            json!({"jsonrpc": "2.0", "id": own, "method": "session/request_permission", "params": params}),
        )
        .await?;
        loop {
            let message = self.read().await.ok_or(Exit)?;
            if message["id"] == own && message["method"].is_null() {
                let outcome = &message["result"]["outcome"];
                let answer = outcome["optionId"]
                    .as_str()
                    .or(outcome["outcome"].as_str())
                    .unwrap_or("error")
                    .to_owned();
                self.record.push(format!("answered {answer}"));
                return Ok(answer);
            }
        }
    }
}
