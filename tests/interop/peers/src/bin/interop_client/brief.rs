//! Events in one line each, as `tests/interop/README.md` describes them.

use attache::ContentBlock;
use attache::client::{ElicitationAsk, Event, PermissionAsk, RequestedInput, ToolCallChange};
use attache::wire::v1::{
    AvailableCommand, AvailableCommandInput, EmbeddedResourceResource, SessionConfigKind,
    SessionConfigOption, ToolCallContent,
};
use attache::{Patch, Result};
use serde::Serialize;
use serde_json::json;

/// The name that a value has on the wire.
pub(crate) fn word(value: impl Serialize) -> String {
    match json!(value) {
        serde_json::Value::String(word) => word,
        other => other.to_string(),
    }
}

/// An event in one line; `None` for states, which no agent of version 1 sends.
pub(crate) fn event(event: &Event) -> Result<Option<String>> {
    Ok(Some(match event {
        Event::State(_) => return Ok(None),
        Event::User(text) => format!("user:{text}"),
        Event::Text(text) => format!("text:{text}"),
        Event::Thought(text) => format!("thought:{text}"),
        Event::Content(piece) => content(&piece.block),
        Event::Plan(plan) => {
            let entries = plan.entries.iter();
            let entries: Vec<String> = entries
                .map(|entry| format!("{}={}/{}", entry.content, word(entry.priority), word(entry.status)))
                .collect();
            format!("plan:{}", entries.join(","))
        }
        Event::ToolCall(change) => tool_call(change),
        Event::Commands(commands) => {
            let names: Vec<String> = commands.iter().map(command).collect();
            format!("commands:{}", names.join(","))
        }
        Event::Mode(mode) => format!("mode:{mode}"),
        Event::ConfigOptions(list) => format!("config:{}", options(list)),
        Event::Info(info) => format!("info:{}:{}", patch(&info.title), patch(&info.updated_at)),
        Event::Usage(usage) => {
            let cost = usage.cost.as_ref().map(|cost| format!("{} {}", cost.amount, cost.currency));
            format!("usage:{}/{}:{}", usage.used, usage.size, cost.unwrap_or_default())
        }
        Event::Permission(ask) => permission(ask),
        Event::Elicitation(ask) => elicitation(ask),
        Event::ElicitationComplete(id) => format!("elicitation_complete:{id}"),
        other => format!("other:{other:?}"),
    }))
}

fn patch(value: &Patch<String>) -> String {
    match value {
        Patch::Set(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

fn content(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => format!("text:{}", text.text),
        ContentBlock::Image(image) => format!("image:{}", image.mime_type),
        ContentBlock::Audio(audio) => format!("audio:{}", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("resource_link:{}", link.name),
        ContentBlock::Resource(resource) => match &resource.resource {
            EmbeddedResourceResource::Text(text) => format!("resource:{}", text.uri),
            EmbeddedResourceResource::Blob(blob) => format!("resource:{}", blob.uri),
            _ => "resource".to_owned(),
        },
        _ => "other".to_owned(),
    }
}

fn tool_call(change: &ToolCallChange) -> String {
    let update = &change.update;
    let status = update.status.as_ref().map(word);
    let head = if change.created {
        let kind = update.kind.as_ref().map_or("other".to_owned(), word);
        let (status, title) =
            (status.unwrap_or("pending".to_owned()), update.title.clone().unwrap_or_default());
        format!("tool_call:{}:{kind}:{status}:{title}", change.id())
    } else {
        format!("tool_call_update:{}:{}", change.id(), status.unwrap_or_default())
    };
    let pieces = update.content.iter().flatten().map(|piece| match piece {
        ToolCallContent::Diff(diff) => {
            let name = diff.path.rsplit('/').next().unwrap_or_default();
            format!("diff({name}|{}|{})", diff.old_text.as_deref().unwrap_or_default(), diff.new_text)
        }
        ToolCallContent::Terminal(_) => "terminal".to_owned(),
        ToolCallContent::Content(piece) => format!("content({})", content(&piece.content)),
        _ => "other".to_owned(),
    });
    std::iter::once(head).chain(pieces).collect::<Vec<_>>().join(":")
}

fn command(command: &AvailableCommand) -> String {
    match &command.input {
        Some(AvailableCommandInput::Unstructured(input)) => format!("{}({})", command.name, input.hint),
        _ => command.name.clone(),
    }
}

pub(crate) fn options(list: &[SessionConfigOption]) -> String {
    let pairs = list.iter().map(|option| match &option.kind {
        SessionConfigKind::Select(select) => format!("{}={}", option.id, select.current_value),
        SessionConfigKind::Boolean(switch) => format!("{}={}", option.id, switch.current_value),
        _ => option.id.to_string(),
    });
    pairs.collect::<Vec<_>>().join(",")
}

fn permission(ask: &PermissionAsk) -> String {
    let options = ask.options().iter().map(|option| format!("{}/{}", option.option_id, word(option.kind)));
    format!("permission:{}:{}", ask.tool_call().tool_call_id, options.collect::<Vec<_>>().join(","))
}

fn elicitation(ask: &ElicitationAsk) -> String {
    let what = match ask.requested() {
        Some(RequestedInput::Form(schema)) => {
            let fields = schema.properties.iter();
            let mut fields: Vec<String> =
                fields.map(|(name, field)| format!("{name}/{}", word(&json!(field)["type"]))).collect();
            fields.sort();
            format!("form:{}:{}", ask.message(), fields.join(","))
        }
        Some(RequestedInput::Url { id, url, .. }) => format!("url:{}:{id} {url}", ask.message()),
        _ => "other".to_owned(),
    };
    format!("elicitation:{what}")
}
