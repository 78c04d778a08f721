//! What the model can do.
//!
//! A tool turns arguments into a [`Job`]: its title, its effects (for the permission engine), what it shows beforehand (a diff, a
//! command), and the work itself, which does exactly these effects. Whether the work is done is decided elsewhere
//! (`turn/calls.rs`), for all tools alike; a tool cannot run itself. So tools of MCP servers are added as they are.
//!
//! Read `read.rs` as the smallest example, `edit.rs` as one that changes something, `run.rs` as one with live output.

mod arguments;
mod clip;
mod edit;
mod fetch;
mod find;
mod html;
mod patch;
mod place;
mod plan;
mod read;
mod run;
mod search;
mod write;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use attache::agent::{DetachedTurn, Tool as Call};
use attache::wire::v1::{ToolCallContent, ToolCallLocation, ToolCallUpdate, ToolKind};
use attache_host::policy::Effect;
use serde_json::{Map, Value};

pub(crate) use arguments::Arguments;
pub(crate) use clip::{clip, head_and_tail};

use crate::ground::Place;
use crate::model::{Part, ToolSpec};
use crate::modes::Mode;
use crate::session::Live;

pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that the model can call.
pub(crate) trait Tool: Send + Sync {
    /// What the model is told about it.
    fn spec(&self) -> ToolSpec;

    /// What sort of tool it is, before its arguments are known.
    fn kind(&self) -> ToolKind;

    /// Whether it only looks: then it may run beside others.
    fn only_looks(&self) -> bool {
        matches!(self.kind(), ToolKind::Read | ToolKind::Search | ToolKind::Fetch | ToolKind::Think)
    }

    /// Whether the model is offered it in this mode. In plan mode nothing is changed.
    fn offered_in(&self, mode: Mode) -> bool {
        let changes = matches!(self.kind(), ToolKind::Edit | ToolKind::Delete | ToolKind::Move);
        mode != Mode::Plan || !changes
    }

    /// Whether it is reported as a tool call; what shows itself in another way is not.
    fn is_reported(&self) -> bool {
        true
    }

    /// Reads the arguments and says what would be done. An error is told to the model.
    fn prepare<'a>(&'a self, cx: &'a Cx, arguments: &'a Arguments<'a>) -> Boxed<'a, Result<Job, String>>;
}

/// What tools act with: the session and its present turn.
#[derive(Clone)]
pub(crate) struct Cx {
    pub(crate) live: Arc<Live>,
    pub(crate) turn: DetachedTurn,
}

impl Cx {
    /// Where a path leads.
    pub(crate) fn place(&self, path: &str) -> Result<Place, String> {
        self.live.ground.place(path)
    }

    pub(crate) fn short(&self, place: &Place) -> String {
        self.live.ground.short(&place.named)
    }
}

/// Something that is about to be done.
pub(crate) struct Job {
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    /// What the work does. Empty for a tool that acts on the conversation only.
    pub(crate) effects: Vec<Effect>,
    /// TOOL-18: the files it touches.
    pub(crate) locations: Vec<ToolCallLocation>,
    /// What it shows beforehand.
    pub(crate) content: Vec<ToolCallContent>,
    pub(crate) work: Work,
    /// Whether the work notices by itself that the turn is cancelled and cleans up before it ends. Other work is dropped.
    pub(crate) finishes: bool,
}

/// The result of a call whose turn was cancelled, for the model.
pub(crate) const CANCELLED: &str = "cancelled by the user";

pub(crate) type Work = Box<dyn FnOnce(Cx, Progress) -> Boxed<'static, Result<Output, String>> + Send>;

impl Job {
    /// A job that does `work`.
    pub(crate) fn new<F, Fut>(title: impl Into<String>, kind: ToolKind, effects: Vec<Effect>, work: F) -> Self
    where
        F: FnOnce(Cx, Progress) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Output, String>> + Send + 'static,
    {
        Job {
            title: title.into(),
            kind,
            effects,
            locations: Vec::new(),
            content: Vec::new(),
            work: Box::new(move |cx, progress| Box::pin(work(cx, progress))),
            finishes: false,
        }
    }

    /// Lets the work end by itself when the turn is cancelled.
    pub(crate) fn finishing(mut self) -> Self {
        self.finishes = true;
        self
    }

    /// A file it touches.
    pub(crate) fn at(mut self, place: &Place, line: Option<u32>) -> Self {
        self.locations.push(location(place, line));
        self
    }

    /// What it shows beforehand.
    pub(crate) fn showing(mut self, content: impl Into<ToolCallContent>) -> Self {
        self.content.push(content.into());
        self
    }
}

pub(crate) fn location(place: &Place, line: Option<u32>) -> ToolCallLocation {
    ToolCallLocation::new(place.named.to_string_lossy().into_owned()).line(line)
}

/// What a tool came to.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// What the model is told.
    pub(crate) parts: Vec<Part>,
    /// What the client shows; `None` keeps what is shown already.
    pub(crate) content: Option<Vec<ToolCallContent>>,
    pub(crate) locations: Option<Vec<ToolCallLocation>>,
    /// TOOL-19: for programs.
    pub(crate) raw: Option<Value>,
    /// It ran, and what it ran failed.
    pub(crate) failed: bool,
}

impl Output {
    /// Text for the model that people need not see.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Output { parts: vec![Part::Text(text.into())], ..Output::default() }
    }

    /// Text for the model and for people.
    pub(crate) fn shown(text: impl Into<String>) -> Self {
        let text = text.into();
        Output { content: Some(vec![text.clone().into()]), ..Output::text(text) }
    }

    /// The text that the model is told.
    pub(crate) fn told(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    pub(crate) fn raw(mut self, raw: Value) -> Self {
        self.raw = Some(raw);
        self
    }
}

/// A tool call that runs, to report how far it is.
#[derive(Clone)]
pub(crate) struct Progress {
    pub(crate) call: Option<Arc<Call>>,
    pub(crate) live: Arc<Live>,
}

impl Progress {
    /// Replaces what the call shows (TOOL-06). It cannot fail: a client that has gone is noticed elsewhere.
    pub(crate) async fn show(&self, content: Vec<ToolCallContent>) {
        if let Some(call) = &self.call {
            let change: ToolCallUpdate = call.change().content(content);
            let _ = self.live.voice.change(call, change).await;
        }
    }
}

/// The tools of a session, each with what the model is told about it.
#[derive(Clone, Default)]
pub(crate) struct ToolBox(Vec<(ToolSpec, Arc<dyn Tool>)>);

impl ToolBox {
    /// The tools that every session has.
    pub(crate) fn usual() -> Self {
        let usual: [Arc<dyn Tool>; 12] = [
            Arc::new(read::Read),
            Arc::new(place::List),
            Arc::new(find::Find),
            Arc::new(search::Search),
            Arc::new(edit::Edit),
            Arc::new(write::Write),
            Arc::new(run::RunCommand),
            Arc::new(fetch::Fetch),
            Arc::new(place::Move),
            Arc::new(place::Delete),
            Arc::new(plan::Plan),
            Arc::new(plan::LeavePlanMode),
        ];
        let mut tools = ToolBox::default();
        tools.add(usual);
        tools
    }

    /// Adds tools. One whose name is taken is left out: nobody may pass for another.
    pub(crate) fn add(&mut self, more: impl IntoIterator<Item = Arc<dyn Tool>>) {
        for tool in more {
            let spec = tool.spec();
            if self.get(&spec.name).is_none() {
                self.0.push((spec, tool));
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.0.iter().find(|(spec, _)| spec.name == name).map(|(_, tool)| tool)
    }

    /// What the model is offered.
    pub(crate) fn specs(&self, mode: Mode) -> Vec<ToolSpec> {
        self.0.iter().filter(|(_, tool)| tool.offered_in(mode)).map(|(spec, _)| spec.clone()).collect()
    }
}

/// A tool's description, from its name, its text and the members of its arguments: name, schema, whether it is required.
pub(crate) fn spec(name: &str, about: &str, members: &[(&str, Value, bool)]) -> ToolSpec {
    let properties: Map<String, Value> =
        members.iter().map(|(name, schema, _)| ((*name).to_owned(), schema.clone())).collect();
    let required: Vec<&str> =
        members.iter().filter(|(_, _, required)| *required).map(|(name, ..)| *name).collect();
    let schema = serde_json::json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    ToolSpec { name: name.to_owned(), about: about.to_owned(), schema }
}

/// A member that is a text.
pub(crate) fn text(about: &str) -> Value {
    serde_json::json!({"type": "string", "description": about})
}

/// A member that is a whole number.
pub(crate) fn number(about: &str) -> Value {
    serde_json::json!({"type": "integer", "minimum": 1, "description": about})
}

/// A member that is true or false.
pub(crate) fn flag(about: &str) -> Value {
    serde_json::json!({"type": "boolean", "description": about})
}
