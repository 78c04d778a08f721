//! What the model sees of an MCP server.

use std::sync::Arc;

use attache::wire::v1::{ContentBlock as Shown, ImageContent, ToolCallContent, ToolKind};
use attache_host::policy::{Effect, ToolUse};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, Tool as Offered};
use serde_json::{Value, json};

use super::server::Server;
use crate::model::{Part, ToolSpec};
use crate::modes::Mode;
use crate::tools::{Arguments, Boxed, Cx, Job, Output, Tool, head_and_tail};

/// The longest text of one answer that the model is told.
const LONGEST: usize = 60_000;
/// The longest name that every provider takes.
const NAME: usize = 64;

/// The tools of a server.
pub(super) async fn of(server: &Arc<Server>) -> Result<Vec<Arc<dyn Tool>>, String> {
    let (offered, has_resources) = server.offers().await?;
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for offered in offered {
        tools.push(Arc::new(Foreign {
            server: server.clone(),
            spec: spec(server.name(), &offered),
            offered,
        }));
    }
    if has_resources {
        tools.push(Arc::new(Resources { server: server.clone() }));
    }
    Ok(tools)
}

/// A tool of a server.
struct Foreign {
    server: Arc<Server>,
    offered: Offered,
    spec: ToolSpec,
}

impl Tool for Foreign {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Other
    }

    /// What a server says about its own tools does not count: in a mode that only looks, nothing of somebody else's runs.
    fn offered_in(&self, mode: Mode) -> bool {
        mode != Mode::Plan
    }

    fn prepare<'a>(&'a self, _: &'a Cx, arguments: &'a Arguments<'a>) -> Boxed<'a, Result<Job, String>> {
        let (server, tool) = (self.server.clone(), self.offered.name.to_string());
        let input = arguments.object().clone();
        Box::pin(async move {
            let title = format!("{}: {tool}", server.name());
            let shown = serde_json::to_string_pretty(&input).unwrap_or_default();
            let used = ToolUse {
                server: Some(server.name().to_owned()),
                name: Some(tool.clone()),
                input: Some(shown.clone()),
            };
            let job = Job::new(title, ToolKind::Other, vec![Effect::Tool(used)], move |cx, _| async move {
                let _asked = server.place().enter(cx.turn.clone());
                let result = server
                    .call(&tool, input)
                    .await
                    .map_err(|why| format!("the MCP server {}: {why}", server.name()))?;
                Ok(output(&result))
            });
            Ok(if shown == "{}" { job } else { job.showing(format!("```json\n{shown}\n```")) })
        })
    }
}

/// Reads the resources of a server.
struct Resources {
    server: Arc<Server>,
}

impl Tool for Resources {
    fn spec(&self) -> ToolSpec {
        let about =
            format!("Lists the resources of the MCP server {}, or reads one of them.", self.server.name());
        let schema = json!({
            "type": "object", "additionalProperties": false,
            "properties": { "uri": { "type": "string", "description": "Which one to read; without it they are listed" } },
        });
        ToolSpec { name: name(self.server.name(), "resources"), about, schema }
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Read
    }

    fn offered_in(&self, mode: Mode) -> bool {
        mode != Mode::Plan
    }

    fn prepare<'a>(&'a self, _: &'a Cx, arguments: &'a Arguments<'a>) -> Boxed<'a, Result<Job, String>> {
        let server = self.server.clone();
        let uri = arguments.object().get("uri").and_then(Value::as_str).map(str::to_owned);
        Box::pin(async move {
            let title = match &uri {
                Some(uri) => format!("{}: read {uri}", server.name()),
                None => format!("{}: list resources", server.name()),
            };
            let used = ToolUse {
                server: Some(server.name().to_owned()),
                name: Some("resources".to_owned()),
                input: uri.clone(),
            };
            Ok(Job::new(title, ToolKind::Read, vec![Effect::Tool(used)], move |_, _| async move {
                match uri {
                    Some(uri) => Ok(read(server.resource(&uri).await?.contents)),
                    None => Ok(list(&server.resources().await?)),
                }
            }))
        })
    }
}

fn list(resources: &[rmcp::model::Resource]) -> Output {
    let line = |resource: &rmcp::model::Resource| {
        format!("{} ({})", resource.uri, resource.description.as_deref().unwrap_or(&resource.name))
    };
    let lines: Vec<String> = resources.iter().map(line).collect();
    Output::shown(if lines.is_empty() {
        "There are none.".to_owned()
    } else {
        head_and_tail(&lines.join("\n"), LONGEST)
    })
}

fn read(contents: Vec<ResourceContents>) -> Output {
    let mut output = Output { content: Some(Vec::new()), ..Output::default() };
    contents.iter().for_each(|content| push_resource(&mut output, content));
    output
}

/// What a tool came to, for the model and for people.
fn output(result: &CallToolResult) -> Output {
    let mut output =
        Output { content: Some(Vec::new()), failed: result.is_error == Some(true), ..Output::default() };
    for block in &result.content {
        match block {
            ContentBlock::Text(text) => push_text(&mut output, &text.text),
            ContentBlock::Image(image) => push_image(&mut output, &image.mime_type, &image.data),
            ContentBlock::Resource(resource) => push_resource(&mut output, &resource.resource),
            ContentBlock::ResourceLink(link) => {
                push_text(&mut output, &format!("[{}]({})", link.name, link.uri))
            }
            // Sound has no place in a model's tool result.
            _ => push_text(&mut output, "(content of a kind that cannot be shown here)"),
        }
    }
    if let Some(structured) = &result.structured_content {
        // Servers repeat it as text; where one does not, the model still has to see it.
        if result.content.is_empty() {
            push_text(&mut output, &structured.to_string());
        }
        output.raw = Some(structured.clone());
    }
    output
}

fn push_text(output: &mut Output, text: &str) {
    let text = head_and_tail(text, LONGEST);
    output.parts.push(Part::Text(text.clone()));
    output.content.get_or_insert_default().push(ToolCallContent::from(text));
}

fn push_image(output: &mut Output, mime: &str, data: &str) {
    output.parts.push(Part::Image { mime: mime.to_owned(), data: data.to_owned() });
    let image = Shown::from(ImageContent::new(data, mime));
    output.content.get_or_insert_default().push(ToolCallContent::from(image));
}

fn push_resource(output: &mut Output, resource: &ResourceContents) {
    match resource {
        ResourceContents::TextResourceContents { text, .. } => push_text(output, text),
        ResourceContents::BlobResourceContents { mime_type: Some(mime), blob, .. }
            if mime.starts_with("image/") =>
        {
            push_image(output, mime, blob)
        }
        _ => push_text(output, "(binary content)"),
    }
}

fn spec(server: &str, offered: &Offered) -> ToolSpec {
    let about = offered.description.as_deref().or(offered.title.as_deref()).unwrap_or_default();
    ToolSpec {
        name: name(server, &offered.name),
        about: head_and_tail(about, 4000),
        schema: Value::Object((*offered.input_schema).clone()),
    }
}

/// `server_tool` in letters that every provider takes. The end is kept if it is too long: tools of one server differ there.
fn name(server: &str, tool: &str) -> String {
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
    };
    let (mut server, tool) = (plain(server), plain(tool));
    let room = NAME.saturating_sub(tool.len() + 1);
    server.truncate(room.max(8));
    let name = format!("{server}_{tool}");
    name[..name.len().min(NAME)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn names_are_short_and_plain() {
        assert_eq!(name("my server", "get.thing"), "my_server_get_thing");
        let long = name(&"s".repeat(100), &"t".repeat(100));
        assert!(long.len() <= 64 && long.contains('t'), "{long}");
        assert_eq!(name("näme", "ü"), "n_me__");
    }
}
