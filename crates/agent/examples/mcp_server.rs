//! An MCP server for tests, by hand: it answers what it is asked and misbehaves on demand.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::io::{BufRead as _, Write as _};

use serde_json::{Value, json};

fn main() {
    let mut lines = std::io::stdin().lock().lines();
    while let Some(Ok(line)) = lines.next() {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { continue };
        let result = match method {
            "initialize" => json!({
                "protocolVersion": message["params"]["protocolVersion"], "serverInfo": { "name": "hand", "version": "1" },
                "capabilities": { "tools": {}, "resources": {} },
            }),
            "tools/list" => tools(),
            "resources/list" => {
                json!({ "resources": [{ "uri": "mem://one", "name": "one", "description": "the first" }] })
            }
            "resources/read" => {
                json!({ "contents": [{ "uri": "mem://one", "mimeType": "text/plain", "text": "what is in one" }] })
            }
            "tools/call" => {
                let arguments = &message["params"]["arguments"];
                match message["params"]["name"].as_str().unwrap() {
                    "echo" => text(arguments["text"].as_str().unwrap_or_default()),
                    "picture" => {
                        json!({ "content": [{ "type": "image", "mimeType": "image/png", "data": "aGk=" }] })
                    }
                    "fail" => {
                        json!({ "content": [{ "type": "text", "text": "it went wrong" }], "isError": true })
                    }
                    "key" => text(&std::env::var("TEST_API_KEY").unwrap_or_else(|_| "no key here".into())),
                    "die" => {
                        eprintln!("goodbye, cruel world");
                        std::process::exit(1);
                    }
                    "ask" => {
                        say(&json!({
                            "jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
                            "params": { "message": "Who are you?", "requestedSchema": {
                                "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"],
                            } },
                        }));
                        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
                        text(&answer["result"].to_string())
                    }
                    _ => json!({}),
                }
            }
            _ => {
                say(
                    &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "no such method" } }),
                );
                continue;
            }
        };
        say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }
}

fn tools() -> Value {
    let tool = |name: &str| json!({ "name": name, "description": name, "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true } });
    let tools: Vec<Value> = ["echo", "picture", "fail", "key", "die", "ask"].into_iter().map(tool).collect();
    json!({ "tools": tools })
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn say(message: &Value) {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{message}").and_then(|()| stdout.flush()).unwrap();
}
