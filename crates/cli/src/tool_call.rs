//! A tool call and everything that is known about it.

use attache::wire::Json;
use attache::wire::v1::{
    Diff, RequestPermissionRequest, ToolCallContent, ToolCallId, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolKind,
};
use serde_json::Value;

/// All that was said about a tool call, put together (TOOL-05 to TOOL-07).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolState {
    pub(crate) id: ToolCallId,
    pub(crate) title: String,
    pub(crate) kind: ToolKind,
    pub(crate) status: ToolCallStatus,
    pub(crate) content: Vec<ToolCallContent>,
    pub(crate) locations: Vec<ToolCallLocation>,
    pub(crate) raw_input: Option<Json>,
    pub(crate) raw_output: Option<Json>,
    /// Its turn is over and nobody will say more.
    pub(crate) over: bool,
    /// A subagent does it.
    pub(crate) inner: bool,
    /// Its changes were already shown in full, when somebody was asked about them.
    pub(crate) shown: bool,
    /// The rule or mode that allowed it without a question.
    pub(crate) allowed_by: Option<String>,
}

impl ToolState {
    pub(crate) fn new(id: ToolCallId) -> ToolState {
        ToolState {
            title: String::new(),
            // TOOL-04
            kind: ToolKind::Other,
            status: ToolCallStatus::Pending,
            content: Vec::new(),
            locations: Vec::new(),
            raw_input: None,
            raw_output: None,
            over: false,
            inner: false,
            shown: false,
            allowed_by: None,
            id,
        }
    }

    /// TOOL-05, TOOL-06: what is mentioned replaces what was; the rest stays.
    pub(crate) fn merge(&mut self, update: ToolCallUpdate) {
        fn set<T>(old: &mut T, new: Option<T>) {
            if let Some(new) = new {
                *old = new;
            }
        }
        set(&mut self.title, update.title);
        set(&mut self.kind, update.kind);
        set(&mut self.status, update.status);
        set(&mut self.content, update.content);
        set(&mut self.locations, update.locations);
        if update.raw_input.is_some() {
            self.raw_input = update.raw_input;
        }
        if update.raw_output.is_some() {
            self.raw_output = update.raw_output;
        }
    }

    /// Adds everything that is known about the tool call to a permission request, so that rules do not
    /// depend on how often an agent repeats itself.
    pub(crate) fn complete(&self, request: &RequestPermissionRequest) -> RequestPermissionRequest {
        let mut request = request.clone();
        let call = &mut request.tool_call;
        call.title = Some(self.title.clone());
        call.kind = Some(self.kind);
        call.content = Some(self.content.clone());
        call.locations = Some(self.locations.clone());
        call.raw_input.clone_from(&self.raw_input);
        request
    }

    /// Returns roughly how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        let content = |content: &ToolCallContent| match content {
            ToolCallContent::Diff(diff) => {
                diff.path.len() + diff.new_text.len() + diff.old_text.as_ref().map_or(0, String::len)
            }
            ToolCallContent::Content(content) => content.content.as_text().map_or(1 << 20, str::len),
            _ => 64,
        };
        let json = |json: &Option<Json>| json.as_ref().map_or(0, |json| json.get().len());
        self.title.len()
            + self.content.iter().map(content).sum::<usize>()
            + self.locations.iter().map(|location| location.path.len() + 16).sum::<usize>()
            + json(&self.raw_input)
            + json(&self.raw_output)
    }

    /// Whether nothing more is to be expected.
    pub(crate) fn finished(&self) -> bool {
        self.over || matches!(self.status, ToolCallStatus::Completed | ToolCallStatus::Failed)
    }

    pub(crate) fn diffs(&self) -> impl Iterator<Item = &Diff> {
        self.content.iter().filter_map(|content| match content {
            ToolCallContent::Diff(diff) => Some(diff),
            _ => None,
        })
    }

    /// The terminals that it shows.
    pub(crate) fn terminals(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(|content| match content {
            ToolCallContent::Terminal(terminal) => Some(terminal.terminal_id.as_str()),
            _ => None,
        })
    }

    /// The output as one text, when the agent gives it only in raw form.
    pub(crate) fn raw_text(&self) -> Option<String> {
        let output: Value = self.raw_output.as_ref()?.parse().ok()?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        text(&output).or_else(|| {
            ["output", "stdout", "content", "error"].iter().find_map(|name| text(output.get(name)?))
        })
    }
}

/// How a kind of tool is called.
pub(crate) fn kind_name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "run",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "mode",
        _ => "tool",
    }
}
