//! The tools: `read_file`, `write_file` and `run_command`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attache::client::Terminal as _;
use attache::wire::v1::{CreateTerminalRequest, ReadTextFileRequest, SessionId, WriteTextFileRequest};
use attache_host::files::{FileLimits, Files};
use attache_host::policy::{Answer, Question};
use attache_host::terminals::PtyTerminals;
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::client_services::ClientServices;

/// The most bytes of a file that one call returns.
const LARGEST_READ: u64 = 1 << 20;
/// The output of a command that is kept unless the call names another limit, and the largest limit.
const DEFAULT_OUTPUT: u64 = 64 << 10;
const LARGEST_OUTPUT: u64 = 1 << 20;
/// The time limit of a command in seconds unless the call names another, and the longest one.
const DEFAULT_TIME: u64 = 120;
const LONGEST_TIME: u64 = 3_600;

/// Who answers the questions of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// The user of the program that runs the session.
    User,
    /// The user of the MCP client, if it can show forms.
    Client,
}

/// The tools of a server. Clones share the session.
#[derive(Clone)]
pub(crate) struct Toolbox {
    services: ClientServices,
    roots: Vec<PathBuf>,
    asking: Asking,
    fs: bool,
    terminal: bool,
    session: Arc<Mutex<Option<SessionId>>>,
}

/// The result of a call.
#[derive(Debug)]
pub(super) struct ToolResult {
    text: String,
    structured: Option<Value>,
    failed: bool,
}

impl ToolResult {
    fn text(text: String) -> ToolResult {
        ToolResult { text, structured: None, failed: false }
    }

    pub(super) fn failure(text: impl ToString) -> ToolResult {
        ToolResult { text: text.to_string(), structured: None, failed: true }
    }

    /// Adds a sentence if the call failed.
    pub(super) fn with_hint(mut self, hint: &str) -> ToolResult {
        if self.failed {
            self.text = format!("{}\n{hint}", self.text);
        }
        self
    }

    /// The result as it is sent.
    pub(super) fn into_value(self) -> Value {
        let mut value = json!({ "content": [{ "type": "text", "text": self.text }], "isError": self.failed });
        if let Some(structured) = self.structured {
            value["structuredContent"] = structured;
        }
        value
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadFile {
    path: String,
    line: Option<u32>,
    limit: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteFile {
    path: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunCommand {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    cwd: Option<String>,
    timeout_seconds: Option<u64>,
    output_limit: Option<u64>,
}

impl Toolbox {
    /// Creates all tools, for a session with these directories. The first one is the working
    /// directory.
    pub(crate) fn new(services: ClientServices, roots: Vec<PathBuf>, asking: Asking) -> Toolbox {
        Toolbox { services, roots, asking, fs: true, terminal: true, session: Arc::default() }
    }

    /// Leaves out the tools for files, or the one for commands.
    #[must_use]
    pub(crate) fn only(mut self, fs: bool, terminal: bool) -> Toolbox {
        (self.fs, self.terminal) = (fs, terminal);
        self
    }

    /// Sets the session, for which answers of the user are remembered. Its id is known after the
    /// agent has got the server.
    pub(crate) fn set_session(&self, session: SessionId) {
        *self.session.lock() = Some(session);
    }

    pub(super) fn asking(&self) -> Asking {
        self.asking
    }

    fn session(&self) -> Option<SessionId> {
        self.session.lock().clone()
    }

    /// The definitions of the tools, as in `tools/list`.
    pub(super) fn definitions(&self) -> Vec<Value> {
        let path =
            json!({ "type": "string", "description": "Absolute, or relative to the working directory" });
        let mut tools = Vec::new();
        if self.fs {
            tools.push(json!({
                "name": "read_file",
                "title": "Read a file",
                "description": "Returns a text file, or some of its lines. Files over 1 MiB need `line` and `limit`.",
                "inputSchema": object(json!({
                    "path": path,
                    "line": { "type": "integer", "minimum": 1, "description": "The first line to return" },
                    "limit": { "type": "integer", "minimum": 1, "description": "How many lines to return" },
                }), &["path"]),
                "annotations": { "readOnlyHint": true, "openWorldHint": false },
            }));
            tools.push(json!({
                "name": "write_file",
                "title": "Write a file",
                "description": "Creates a text file or replaces its whole content.",
                "inputSchema": object(json!({
                    "path": path,
                    "content": { "type": "string", "description": "The new content" },
                }), &["path", "content"]),
                "annotations": { "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false },
            }));
        }
        if self.terminal {
            tools.push(json!({
                "name": "run_command",
                "title": "Run a command",
                "description": "Runs a command to its end and returns its output and exit status.",
                "inputSchema": object(json!({
                    "command": { "type": "string", "description": "A program, or a command line for the shell" },
                    "args": { "type": "array", "items": { "type": "string" }, "description": "Arguments of the program" },
                    "cwd": path,
                    "timeout_seconds": {
                        "type": "integer", "minimum": 1, "maximum": LONGEST_TIME,
                        "description": format!("The command is ended after this time ({DEFAULT_TIME})"),
                    },
                    "output_limit": {
                        "type": "integer", "minimum": 0, "maximum": LARGEST_OUTPUT,
                        "description": format!("Bytes of output to return; the beginning is left out ({DEFAULT_OUTPUT})"),
                    },
                }), &["command"]),
                "outputSchema": object(json!({
                    "output": { "type": "string" },
                    "truncated": { "type": "boolean", "description": "Whether the beginning of the output is left out" },
                    "exitCode": { "type": ["integer", "null"] },
                    "signal": { "type": ["string", "null"], "description": "The signal that ended the command" },
                    "timedOut": { "type": "boolean" },
                }), &["output", "truncated", "exitCode", "signal", "timedOut"]),
                "annotations": { "readOnlyHint": false, "destructiveHint": true, "openWorldHint": true },
            }));
        }
        tools
    }

    /// Whether there is a tool of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        match name {
            "read_file" | "write_file" => self.fs,
            "run_command" => self.terminal,
            _ => false,
        }
    }

    /// Calls a tool. `ask` answers questions if [`Asking::Client`]; a command ends when `closed`
    /// resolves.
    pub(super) async fn call<F, Fut>(
        &self,
        name: &str,
        arguments: &Value,
        ask: F,
        closed: impl Future<Output = ()>,
    ) -> ToolResult
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        let (files, terminals) = match self.asking {
            Asking::User => self.services.provide(),
            Asking::Client => self.services.provide_asking(ask),
        };
        let result = match name {
            "read_file" => self.read_file(files, arguments).await,
            "write_file" => self.write_file(files, arguments).await,
            _ => self.run_command(terminals, arguments, closed).await,
        };
        result.unwrap_or_else(ToolResult::failure)
    }

    async fn read_file(&self, files: Files, arguments: &Value) -> Result<ToolResult, String> {
        let ReadFile { path, line, limit } = decode(arguments)?;
        let mut request = ReadTextFileRequest::new(SessionId::from(""), self.absolute(&path));
        (request.line, request.limit) = (line, limit);
        let files = files.limits(FileLimits { read: LARGEST_READ, ..FileLimits::default() });
        let text = files.read_in(self.session().as_ref(), &self.roots, request).await;
        text.map(ToolResult::text).map_err(|error| error.to_string())
    }

    async fn write_file(&self, files: Files, arguments: &Value) -> Result<ToolResult, String> {
        let WriteFile { path, content } = decode(arguments)?;
        let bytes = content.len();
        let request = WriteTextFileRequest::new(SessionId::from(""), self.absolute(&path), content);
        let written = files.write_in(self.session().as_ref(), &self.roots, request).await;
        written
            .map(|()| ToolResult::text(format!("wrote {bytes} bytes to {path}")))
            .map_err(|error| error.to_string())
    }

    async fn run_command(
        &self,
        terminals: PtyTerminals,
        arguments: &Value,
        closed: impl Future<Output = ()>,
    ) -> Result<ToolResult, String> {
        let call: RunCommand = decode(arguments)?;
        let mut request = CreateTerminalRequest::new(SessionId::from(""), call.command);
        request.args = (!call.args.is_empty()).then_some(call.args);
        request.cwd = call.cwd.map(|cwd| self.absolute(&cwd));
        request.output_byte_limit = Some(call.output_limit.unwrap_or(DEFAULT_OUTPUT).min(LARGEST_OUTPUT));
        let time = Duration::from_secs(call.timeout_seconds.unwrap_or(DEFAULT_TIME).clamp(1, LONGEST_TIME));
        let fail = |error: attache::Error| error.to_string();
        let terminal =
            terminals.create_in(self.session().as_ref(), &self.roots, request).await.map_err(fail)?;
        let timed_out = tokio::select! {
            _ = terminal.wait_for_exit() => false,
            () = tokio::time::sleep(time) => true,
            () = closed => return Err("the connection was closed".to_owned()),
        };
        if timed_out {
            terminal.kill().await.map_err(fail)?;
        }
        let output = terminal.output().await.map_err(fail)?;
        let status = output.exit_status.unwrap_or_default();
        // A terminal ends its lines with both characters.
        let text = output.output.replace("\r\n", "\n");
        let end = match (timed_out, status.exit_code, &status.signal) {
            (true, ..) => format!("ended after {} s (time limit)", time.as_secs()),
            (_, Some(code), _) => format!("exit code {code}"),
            (_, None, Some(signal)) => format!("ended by {signal}"),
            (_, None, None) => "ended".to_owned(),
        };
        let cut = if output.truncated { "[the beginning is left out]\n" } else { "" };
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        Ok(ToolResult {
            text: format!("{cut}{text}{gap}[{end}]"),
            structured: Some(json!({
                "output": text,
                "truncated": output.truncated,
                "exitCode": status.exit_code,
                "signal": status.signal,
                "timedOut": timed_out,
            })),
            failed: false,
        })
    }

    /// Resolves a path against the working directory. Whether it may be used is the jail's
    /// decision.
    fn absolute(&self, path: &str) -> String {
        let base = self.roots.first().map_or(Path::new("/"), PathBuf::as_path);
        base.join(path).to_string_lossy().into_owned()
    }
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn decode<T: DeserializeOwned>(arguments: &Value) -> Result<T, String> {
    T::deserialize(arguments).map_err(|error| format!("invalid arguments: {error}"))
}
