//! A model that knows the reference solution of a task and carries it out with the tools that an
//! agent offers.
//!
//! It shows what is left if the model makes no mistake: a task that fails with the oracle is a
//! fault of the agent or of the rig.

use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use serde_json::{Value, json};

use super::gateway::{Incoming, Upstream, incoming};
use super::task::Task;

pub(super) const NAME: &str = "oracle";

/// A step of a solution.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Read(String),
    Write(String, String),
    Remove(String),
}

#[derive(Clone, Default)]
struct Solution {
    steps: Vec<Step>,
    answer: String,
}

/// The oracle's server. It ends with the process.
pub(super) struct Oracle {
    url: String,
    solution: Arc<Mutex<Solution>>,
}

impl Oracle {
    pub(super) fn start(window: u64) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let solution = Arc::new(Mutex::new(Solution::default()));
        let serving = solution.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let solution = serving.lock().unwrap_or_else(PoisonError::into_inner).clone();
                thread::spawn(move || serve(stream, &solution, window));
            }
        });
        Ok(Self { url: format!("http://{address}"), solution })
    }

    pub(super) fn upstream(&self) -> Upstream {
        Upstream { url: self.url.clone(), key: None }
    }

    /// Learns the solution of the next task.
    pub(super) fn learn(&self, task: &Task) {
        *self.solution.lock().unwrap_or_else(PoisonError::into_inner) = solution(task);
    }
}

fn solution(task: &Task) -> Solution {
    let mut steps = Vec::new();
    for (path, content) in &task.wanted {
        if task.repo.contains_key(path) {
            steps.push(Step::Read(path.clone()));
        }
        steps.push(Step::Write(path.clone(), content.clone()));
    }
    steps.extend(task.dropped.iter().cloned().map(Step::Remove));
    let answer = task.answer.trim();
    Solution { steps, answer: if answer.is_empty() { "Done." } else { answer }.to_owned() }
}

fn serve(mut stream: TcpStream, solution: &Solution, window: u64) {
    let Ok(read) = stream.try_clone() else { return };
    let Some(Incoming { path, body, .. }) = incoming(&mut BufReader::new(read)) else { return };
    let (kind, text) = match path.as_str() {
        path if path.ends_with("/chat/completions") => {
            let request: Value = serde_json::from_slice(&body).unwrap_or_default();
            reply(&request, solution)
        }
        path if path.ends_with("/models") => {
            let model =
                json!({"id": NAME, "object": "model", "owned_by": "llamacpp", "meta": {"n_ctx": window}});
            ("application/json", json!({"object": "list", "data": [model]}).to_string())
        }
        _ => ("application/json", json!({"default_generation_settings": {"n_ctx": window}}).to_string()),
    };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(text.as_bytes()));
}

/// The answer to a request, with its content type.
fn reply(request: &Value, solution: &Solution) -> (&'static str, String) {
    let messages: Vec<&Value> = request["messages"].as_array().into_iter().flatten().collect();
    let since = messages.iter().rposition(|message| message["role"] == "user").unwrap_or(0);
    let done = messages[since..].iter().filter(|message| message["role"] == "tool").count();
    let tools: Vec<&Value> =
        request["tools"].as_array().into_iter().flatten().map(|tool| &tool["function"]).collect();
    let step = solution.steps.get(done).filter(|_| !tools.is_empty());
    let mut message = json!({"role": "assistant", "content": null});
    match step {
        None => message["content"] = solution.answer.as_str().into(),
        Some(step) => {
            let (name, arguments) = call(step, &tools);
            let function = json!({"name": name, "arguments": arguments.to_string()});
            message["tool_calls"] =
                json!([{"index": 0, "id": format!("call_{done}"), "type": "function", "function": function}]);
        }
    }
    let finish = if step.is_some() { "tool_calls" } else { "stop" };
    // Four bytes are about a token.
    let usage = json!({"prompt_tokens": request.to_string().len() / 4, "completion_tokens": message.to_string().len() / 4});
    if request["stream"] != true {
        let choice = json!({"index": 0, "message": message, "finish_reason": finish});
        return (
            "application/json",
            json!({"id": "oracle", "object": "chat.completion", "choices": [choice], "usage": usage})
                .to_string(),
        );
    }
    let chunk = |choices: Value| json!({"id": "oracle", "object": "chat.completion.chunk", "model": NAME, "choices": choices});
    let first = chunk(json!([{"index": 0, "delta": message, "finish_reason": null}]));
    let mut last = chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}]));
    last["usage"] = usage;
    ("text/event-stream", format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n"))
}

/// The call for a step, with the names that the agent's tools have.
fn call(step: &Step, tools: &[&Value]) -> (String, Value) {
    let find = |words: &[&str]| {
        let name =
            |tool: &&&Value| words.iter().any(|word| tool["name"].as_str().is_some_and(|name| name == *word));
        tools.iter().find(name).copied().cloned().unwrap_or_default()
    };
    let property = |tool: &Value, word: &str| {
        let names = tool["parameters"]["properties"].as_object().into_iter().flat_map(|names| names.keys());
        let mut names = names.filter(|name| name.to_lowercase().contains(word));
        names.next().cloned().unwrap_or_else(|| word.to_owned())
    };
    let tool = match step {
        Step::Read(_) => find(&["read", "read_file"]),
        Step::Write(..) => find(&["write", "write_file"]),
        Step::Remove(_) => find(&["run", "bash", "run_shell_command"]),
    };
    let mut arguments = json!({});
    match step {
        Step::Read(path) => arguments[property(&tool, "path")] = path.as_str().into(),
        Step::Write(path, content) => {
            arguments[property(&tool, "path")] = path.as_str().into();
            arguments[property(&tool, "content")] = content.as_str().into();
        }
        Step::Remove(path) => {
            arguments[property(&tool, "command")] = format!("rm '{path}'").into();
            // Some agents want a reason with every command.
            if tool["parameters"]["required"]
                .as_array()
                .is_some_and(|names| names.contains(&json!("description")))
            {
                arguments["description"] = "Removes a file".into();
            }
        }
    }
    (tool["name"].as_str().unwrap_or("missing").to_owned(), arguments)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tool(name: &str, properties: &[&str]) -> Value {
        let properties: serde_json::Map<_, _> =
            properties.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        json!({"function": {"name": name, "parameters": {"properties": properties}}})
    }

    #[test]
    fn steps_follow_each_other_with_the_names_of_the_agent() {
        let mut task = Task { answer: "It is 7.\n".to_owned(), ..Task::default() };
        task.repo.insert("a".to_owned(), "old".to_owned());
        task.wanted.insert("a".to_owned(), "new".to_owned());
        task.dropped.push("b".to_owned());
        let solution = solution(&task);
        let tools = [
            tool("read", &["filePath"]),
            tool("write", &["content", "filePath"]),
            tool("bash", &["command"]),
        ];
        let mut messages = vec![json!({"role": "user", "content": "go"})];
        let mut seen = Vec::new();
        for _ in 0..4 {
            let request = json!({"messages": messages, "tools": tools});
            let reply: Value = serde_json::from_str(&reply(&request, &solution).1).unwrap();
            let message = &reply["choices"][0]["message"];
            let function = &message["tool_calls"][0]["function"];
            seen.push(
                format!("{} {}{}", function["name"], function["arguments"], message["content"])
                    .replace(['"', '\\'], ""),
            );
            messages.push(json!({"role": "tool", "content": ""}));
        }
        assert_eq!(
            seen,
            [
                "read {filePath:a}null",
                "write {content:new,filePath:a}null",
                "bash {command:rm 'b'}null",
                "null nullIt is 7."
            ]
        );
    }
}
