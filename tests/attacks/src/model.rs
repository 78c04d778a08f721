//! A hostile language model: a server that answers every request with the next step of a script.

use std::collections::HashMap;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::web::{Reply, Server};
use crate::world::World;

/// One answer of the model.
#[derive(Clone)]
pub(crate) enum Step {
    Say(String),
    /// Calls of tools: names and arguments.
    Call(Vec<(String, Value)>),
}

/// A call of one tool.
pub(crate) fn call(tool: &str, arguments: Value) -> Step {
    Step::Call(vec![(tool.to_owned(), arguments)])
}

/// A command line.
pub(crate) fn run(command: &str) -> Step {
    call("run", json!({ "command": command, "timeout": 3 }))
}

pub(crate) struct Model {
    server: Server,
}

impl Model {
    /// A model that plays these steps, one for each request, and then says that it is done.
    pub(crate) fn start(steps: Vec<Step>) -> Model {
        let next = Mutex::new((0, steps.into_iter()));
        let server = Server::start(move |request| {
            if !request.target.starts_with("POST") {
                return Reply::new("application/json", r#"{"object":"list","data":[{"id":"attack"}]}"#);
            }
            let mut next = next.lock().unwrap();
            let step = next.1.next().unwrap_or(Step::Say("done".to_owned()));
            let number = next.0;
            next.0 += 1;
            Reply::new("text/event-stream", events(&step, number))
        });
        Model { server }
    }

    /// The surroundings in which the program uses this model.
    pub(crate) fn serves<'a>(&self, world: World<'a>) -> World<'a> {
        world.with("OPENAI_BASE_URL", self.url())
    }

    /// The address of the API.
    pub(crate) fn url(&self) -> String {
        self.server.url("/v1")
    }

    /// Everything that was sent to the model.
    pub(crate) fn received(&self) -> String {
        self.server.requests().into_iter().map(|request| request.body).collect::<Vec<_>>().join("\n")
    }

    /// The system prompt of the first request.
    pub(crate) fn system(&self) -> String {
        let requests = self.server.requests();
        let first = requests.iter().find(|request| request.target.starts_with("POST"));
        let body: Value =
            first.and_then(|request| serde_json::from_str(&request.body).ok()).unwrap_or_default();
        let message = &body["messages"][0]["content"];
        message
            .as_str()
            .map_or_else(|| message[0]["text"].as_str().unwrap_or_default().to_owned(), str::to_owned)
    }

    /// The results of the first call of each step, as the model got them. The last request has all
    /// of them, unless the agent shortened the conversation.
    pub(crate) fn results(&self) -> Results {
        let mut results = HashMap::new();
        let steps = self.server.requests().len();
        for request in self.server.requests().iter().rev() {
            let body: Value = serde_json::from_str(&request.body).unwrap_or_default();
            for message in body["messages"].as_array().into_iter().flatten() {
                let Some(id) = message["tool_call_id"].as_str() else { continue };
                let content = &message["content"];
                let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
                results.entry(id.to_owned()).or_insert(text);
            }
            if results.len() + 2 >= steps {
                break;
            }
        }
        Results(results)
    }

    /// The result of the call of a step.
    pub(crate) fn result(&self, step: usize) -> Option<String> {
        self.results().of(step)
    }
}

/// Results of calls, by their ids.
pub(crate) struct Results(HashMap<String, String>);

impl Results {
    pub(crate) fn of(&self, step: usize) -> Option<String> {
        self.0.get(&format!("call-{step}-0")).cloned()
    }
}

fn events(step: &Step, number: usize) -> String {
    let (delta, reason) = match step {
        Step::Say(text) => (json!({ "content": text }), "stop"),
        Step::Call(calls) => {
            let call = |(at, (name, arguments)): (usize, &(String, Value))| {
                let function = json!({ "name": name, "arguments": arguments.to_string() });
                json!({ "index": at, "id": format!("call-{number}-{at}"), "type": "function", "function": function })
            };
            let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
            (json!({ "tool_calls": calls }), "tool_calls")
        }
    };
    let first = json!({ "choices": [{ "index": 0, "delta": delta }] });
    let last = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] });
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 1, "completion_tokens": 1 } });
    format!("data: {first}\n\ndata: {last}\n\ndata: {usage}\n\ndata: [DONE]\n\n")
}
