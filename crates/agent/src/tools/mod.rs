//! Tools that the model can call.
//!
//! A tool turns arguments into a [`Job`]: a title, the effects for the permission engine, content
//! to show beforehand (a diff, a command), and the work itself, which has exactly these effects.
//! `turn/tool_calls.rs` asks for permission and runs the job, for all tools alike, so tools of MCP
//! servers need no special case.
//!
//! Each file is named after its tool. Read `read.rs` as the smallest example, `edit.rs` as one with
//! changes, `run.rs` as one with live output.

mod aliases;
mod arguments;
mod background;
mod backup;
mod delete;
mod edit;
mod fetch;
mod glob;
mod html;
mod list;
mod live_output;
mod missing;
mod move_file;
mod network;
mod patch;
pub(crate) mod permission;
mod plan;
mod protected;
mod read;
mod run;
mod search;
mod skill;
mod write;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use attache::agent::{DetachedTurn, Tool as Call, ToolContent};
use attache::wire::v1::{ToolCallLocation, ToolKind};
use attache_host::policy::Effect;
use serde_json::{Map, Value, json};

pub(crate) use aliases::resolve as resolve_aliases;
pub(crate) use arguments::Arguments;
use background::BackgroundCommands;

use crate::model::{ModelInfo, Part, ToolCall, ToolSpec};
use crate::modes::Mode;
use crate::state::SessionState;
use crate::workspace::WorkspacePath;

pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A tool that the model can call.
pub(crate) trait Tool: Send + Sync {
    fn info(&self) -> ToolInfo;

    /// Whether the model is offered it now.
    fn is_offered(&self) -> bool {
        true
    }

    /// Reads the arguments and describes the work.
    fn prepare(
        &self,
        cx: &ToolContext,
        arguments: &Arguments<'_>,
    ) -> impl Future<Output = Result<Job>> + Send;
}

/// [`Tool`] as an object.
pub(crate) trait AnyTool: Send + Sync {
    fn info(&self) -> ToolInfo;
    fn is_offered(&self) -> bool;
    fn prepare<'a>(&'a self, cx: &'a ToolContext, arguments: &'a Arguments<'a>) -> Boxed<'a, Result<Job>>;
}

impl<T: Tool> AnyTool for T {
    fn info(&self) -> ToolInfo {
        Tool::info(self)
    }

    fn is_offered(&self) -> bool {
        Tool::is_offered(self)
    }

    fn prepare<'a>(&'a self, cx: &'a ToolContext, arguments: &'a Arguments<'a>) -> Boxed<'a, Result<Job>> {
        Box::pin(Tool::prepare(self, cx, arguments))
    }
}

/// Properties of a tool.
pub(crate) struct ToolInfo {
    /// The description for the model.
    pub(crate) spec: ToolSpec,
    pub(crate) kind: ToolKind,
    pub(crate) availability: Availability,
    /// Whether calls are reported as tool calls. The plan is reported as a plan.
    pub(crate) is_reported: bool,
}

/// The modes in which the model is offered a tool.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Availability {
    Always,
    NotInPlanMode,
    OnlyInPlanMode,
}

impl ToolInfo {
    /// From a name, a text for the model and arguments: name, schema, whether it is required.
    pub(crate) fn new(kind: ToolKind, name: &str, about: &str, arguments: &[(&str, Value, bool)]) -> Self {
        let spec = ToolSpec { name: name.to_owned(), about: about.to_owned(), schema: object(arguments) };
        // In plan mode nothing is changed.
        let availability = match kind {
            ToolKind::Edit | ToolKind::Delete | ToolKind::Move => Availability::NotInPlanMode,
            _ => Availability::Always,
        };
        ToolInfo { spec, kind, availability, is_reported: true }
    }

    /// Whether the tool has no side effects: then it may run beside others.
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self.kind, ToolKind::Read | ToolKind::Search | ToolKind::Fetch | ToolKind::Think)
    }

    pub(crate) fn is_available_in(&self, mode: Mode) -> bool {
        match self.availability {
            Availability::Always => true,
            Availability::NotInPlanMode => mode != Mode::Plan,
            Availability::OnlyInPlanMode => mode == Mode::Plan,
        }
    }
}

/// The session and the turn that a tool runs in.
#[derive(Clone)]
pub(crate) struct ToolContext {
    pub(crate) session: Arc<SessionState>,
    pub(crate) turn: DetachedTurn,
    /// More variables for commands.
    pub(crate) command_env: Arc<[(String, String)]>,
    /// The most bytes of the result of one call.
    pub(crate) result_limit: usize,
}

impl ToolContext {
    pub(crate) fn resolve(&self, path: &str) -> Result<WorkspacePath> {
        Ok(self.session.workspace.resolve(path)?)
    }

    pub(crate) fn short(&self, path: &WorkspacePath) -> String {
        self.session.workspace.short(&path.named)
    }

    /// Whether the model is offered all tools, so that a hint may name them.
    pub(crate) fn offers_all_tools(&self) -> bool {
        !self.session.model().is_some_and(|model| model.info().has_small_window())
    }
}

pub(crate) type Result<T, E = ToolError> = std::result::Result<T, E>;

/// Why a tool call failed. The text is for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolError {
    /// The user did not allow it.
    Denied,
    /// The turn was cancelled.
    Cancelled,
    Failed(String),
    /// It failed, and the same call may succeed now.
    Again(String),
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ToolError::Denied => "the user did not allow this",
            ToolError::Cancelled => "cancelled by the user",
            ToolError::Failed(text) | ToolError::Again(text) => text,
        })
    }
}

impl From<String> for ToolError {
    fn from(text: String) -> Self {
        ToolError::Failed(text)
    }
}

impl From<&str> for ToolError {
    fn from(text: &str) -> Self {
        ToolError::Failed(text.to_owned())
    }
}

impl From<attache::Error> for ToolError {
    fn from(error: attache::Error) -> Self {
        match error {
            attache::Error::Cancelled => ToolError::Cancelled,
            error => ToolError::Failed(error.to_string()),
        }
    }
}

/// A prepared call.
pub(crate) struct Job {
    pub(crate) title: String,
    /// Effects of the work. Empty for a tool that acts on the conversation only.
    pub(crate) effects: Vec<Effect>,
    /// Files that it touches.
    // TOOL-18
    pub(crate) locations: Vec<ToolCallLocation>,
    /// Content to show beforehand.
    pub(crate) content: Vec<ToolContent>,
    pub(crate) work: Work,
    /// Whether the work watches for cancellation itself and cleans up. Other work is dropped.
    pub(crate) handles_cancel: bool,
}

pub(crate) type Work = Box<dyn FnOnce(ToolContext, Progress) -> Boxed<'static, Result<Output>> + Send>;

impl Job {
    pub(crate) fn new<F, Fut>(title: impl Into<String>, effects: Vec<Effect>, work: F) -> Self
    where
        F: FnOnce(ToolContext, Progress) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Output>> + Send + 'static,
    {
        Job {
            title: title.into(),
            effects,
            locations: Vec::new(),
            content: Vec::new(),
            work: Box::new(move |cx, progress| Box::pin(work(cx, progress))),
            handles_cancel: false,
        }
    }

    /// Adds a file that the work touches.
    pub(crate) fn location(mut self, path: &WorkspacePath, line: Option<u32>) -> Self {
        self.locations.push(location(path, line));
        self
    }

    /// Adds content to show beforehand.
    pub(crate) fn content(mut self, content: impl Into<ToolContent>) -> Self {
        self.content.push(content.into());
        self
    }
}

pub(crate) fn location(path: &WorkspacePath, line: Option<u32>) -> ToolCallLocation {
    ToolCallLocation::new(path.named.to_string_lossy().into_owned()).line(line)
}

/// The result of a tool.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// The result for the model.
    pub(crate) parts: Vec<Part>,
    /// Content for the client; `None` keeps what the call shows already.
    pub(crate) content: Option<Vec<ToolContent>>,
    /// Content for clients of version 2 in the place of `content`, which is stored; empty if the
    /// call shows it already.
    pub(crate) content_v2: Option<Vec<ToolContent>>,
    pub(crate) locations: Option<Vec<ToolCallLocation>>,
    /// Output for programs.
    // TOOL-19
    pub(crate) raw: Option<Value>,
    /// Whether the tool ran and reports a failure.
    pub(crate) failed: bool,
}

impl Output {
    /// Text for the model only.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Output { parts: vec![Part::Text(text.into())], ..Output::default() }
    }

    /// Text for the model and the client.
    pub(crate) fn visible(text: impl Into<String>) -> Self {
        let text = text.into();
        Output { content: Some(vec![text.clone().into()]), ..Output::text(text) }
    }

    /// Text for the model, which clients of version 2 see as a change of a file.
    pub(crate) fn changed(text: impl Into<String>, edit: attache::Edit) -> Self {
        Output { content_v2: Some(vec![edit.into()]), ..Output::visible(text) }
    }
}

/// Joins lines of a result, or returns `empty` if there are none. Lines beyond `limit` are counted.
fn limited_lines(lines: &[String], limit: usize, empty: &str, hint: &str) -> String {
    let mut text = match lines.is_empty() {
        true => empty.to_owned(),
        false => lines[..lines.len().min(limit)].join("\n"),
    };
    if lines.len() > limit {
        text.push_str(&format!("\n(and {} more; {hint})", lines.len() - limit));
    }
    text
}

/// Reports the progress of a running tool call.
#[derive(Clone)]
pub(crate) struct Progress {
    pub(crate) call: Option<Arc<Call>>,
    pub(crate) session: Arc<SessionState>,
}

impl Progress {
    /// Replaces the content of the call. A client that has gone is noticed elsewhere.
    // TOOL-06
    pub(crate) async fn show(&self, content: Vec<ToolContent>) {
        if let Some(call) = &self.call {
            let _ = self.session.reporter.update_tool(call, call.change().content(content)).await;
        }
    }
}

/// The tools of a session.
#[derive(Default)]
pub(crate) struct Toolbox {
    tools: Vec<(ToolInfo, Arc<dyn AnyTool>)>,
    background: Arc<BackgroundCommands>,
}

impl Toolbox {
    /// The agent's own tools for a session.
    pub(crate) fn builtin(session: &SessionState) -> Self {
        let mut tools = Toolbox::default();
        let background = tools.background.clone();
        tools.add([
            Arc::new(read::Read) as Arc<dyn AnyTool>,
            Arc::new(list::List),
            Arc::new(glob::Glob),
            Arc::new(search::Search),
            Arc::new(edit::Edit),
            Arc::new(write::Write),
            Arc::new(run::Run::new(background.clone())),
            Arc::new(background::Output(background.clone())),
            Arc::new(background::Stop(background)),
            Arc::new(fetch::Fetch),
            Arc::new(move_file::Move),
            Arc::new(delete::Delete),
            Arc::new(plan::Plan),
            Arc::new(plan::LeavePlanMode),
        ]);
        if !session.skills.is_empty() {
            tools.add([Arc::new(skill::Skill) as Arc<dyn AnyTool>]);
        }
        tools
    }

    /// The tools of subagents.
    pub(crate) fn read_only() -> Self {
        let mut tools = Toolbox::default();
        tools.add([
            Arc::new(read::Read) as Arc<dyn AnyTool>,
            Arc::new(list::List),
            Arc::new(glob::Glob),
            Arc::new(search::Search),
        ]);
        tools
    }

    /// Adds tools. One whose name is taken is left out, so that no server can replace a tool.
    pub(crate) fn add(&mut self, tools: impl IntoIterator<Item = Arc<dyn AnyTool>>) {
        for tool in tools {
            let info = tool.info();
            if self.get(&info.spec.name).is_none() {
                self.tools.push((info, tool));
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&(ToolInfo, Arc<dyn AnyTool>)> {
        self.tools.iter().find(|(info, _)| info.spec.name == name)
    }

    /// Gives the arguments of a call the names that its tool has for them.
    pub(crate) fn resolve_aliases(&self, call: &mut ToolCall) {
        if let Some((info, _)) = self.get(&call.name) {
            aliases::resolve(&mut call.arguments, &info.spec.schema);
        }
    }

    /// The descriptions of the tools that a model is offered. With a small window there are fewer,
    /// with fewer arguments.
    pub(crate) fn specs(&self, mode: Mode, model: Option<&ModelInfo>) -> Vec<ToolSpec> {
        let available =
            self.tools.iter().filter(|(info, tool)| info.is_available_in(mode) && tool.is_offered());
        let mut specs: Vec<ToolSpec> = available.map(|(info, _)| info.spec.clone()).collect();
        if model.is_some_and(ModelInfo::has_small_window) {
            specs.retain(|spec| !LEFT_OUT_IF_SMALL.contains(&spec.name.as_str()));
            specs.iter_mut().for_each(shorten);
        }
        specs
    }

    /// Ends the background commands of the session.
    pub(crate) async fn close(&self) {
        self.background.close().await;
    }
}

/// Tools that models with a small window are not offered: `run` can do the same, or they need room.
const LEFT_OUT_IF_SMALL: [&str; 6] = ["glob", "fetch", "move", "delete", "plan", "task"];

/// Leaves out arguments of our own tools that small models rarely need, and names of tools that
/// they are not offered. The arguments work if a model knows them.
fn shorten(spec: &mut ToolSpec) {
    if let Some(at) = spec.about.find(" To find files by name use `glob`.") {
        spec.about.truncate(at);
    }
    let names: &[&str] = match spec.name.as_str() {
        "run" => &["cwd", "background", "outside_sandbox"],
        _ => return,
    };
    if let Some(properties) = spec.schema["properties"].as_object_mut() {
        names.iter().for_each(|name| drop(properties.remove(*name)));
    }
}

/// The schema of an object with these members: name, schema, whether it is required.
fn object(members: &[(&str, Value, bool)]) -> Value {
    let properties: Map<String, Value> =
        members.iter().map(|(name, schema, _)| ((*name).to_owned(), schema.clone())).collect();
    let required: Vec<&str> =
        members.iter().filter(|(_, _, required)| *required).map(|(name, ..)| *name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// The schema of a string.
pub(crate) fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

/// The schema of a positive integer.
fn number(about: &str) -> Value {
    json!({"type": "integer", "minimum": 1, "description": about})
}

/// The schema of a boolean.
fn flag(about: &str) -> Value {
    json!({"type": "boolean", "description": about})
}
