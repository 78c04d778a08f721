//! Tools of MCP servers, as the model sees them.

use std::sync::Arc;

use attache::agent::ToolContent;
use attache::wire::v1::{ContentBlock as Shown, ImageContent, ToolKind};
use attache_host::policy::{Effect, ToolUse};
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents, Tool as Offered};
use serde_json::Value;

use super::limits::{
    DESCRIPTION_BYTES, RESULT_IMAGE_BYTES, RESULT_IMAGES, RESULT_PARTS, RESULT_TEXT_BYTES, SCHEMA_BYTES,
    STRUCTURED_BYTES, TOOL_NAME_BYTES,
};
use super::server::{PagedList, Server};
use crate::model::{Part, ToolSpec};
use crate::text::{clip, head_and_tail};
use crate::tools::{
    AnyTool, Arguments, Availability, Job, Output, Result, Tool, ToolContext, ToolInfo, text,
};

/// The longest name that every provider accepts.
const MAX_NAME: usize = 64;

/// The tools of a server, and messages about those that were left out.
pub(super) async fn of(server: &Arc<Server>) -> Result<(Vec<Arc<dyn AnyTool>>, Vec<String>), String> {
    let (offered, has_resources) = server.tools().await?;
    let mut tools: Vec<Arc<dyn AnyTool>> = Vec::new();
    let mut left_out = Vec::from_iter(offered.cut);
    for offered in offered.entries {
        match spec(server.name(), &offered) {
            Ok(spec) => {
                let name = offered.name.to_string();
                tools.push(Arc::new(McpTool { server: server.clone(), spec, name }));
            }
            Err(why) => left_out.push(why),
        }
    }
    if has_resources {
        tools.push(Arc::new(ResourceTool { server: server.clone() }));
    }
    Ok((tools, left_out))
}

/// A tool of a server.
struct McpTool {
    server: Arc<Server>,
    /// The server's name for it.
    name: String,
    spec: ToolSpec,
}

impl Tool for McpTool {
    /// A server's description of its own tools is not trusted, so none counts as read-only.
    fn info(&self) -> ToolInfo {
        let (kind, availability) = (ToolKind::Other, Availability::NotInPlanMode);
        ToolInfo { spec: self.spec.clone(), kind, availability, is_reported: true }
    }

    async fn prepare(&self, _: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let (server, tool) = (self.server.clone(), self.name.clone());
        let input = arguments.object().clone();
        let title = format!("{}: {tool}", server.name());
        let shown = serde_json::to_string_pretty(&input).unwrap_or_default();
        let used = ToolUse {
            server: Some(server.name().to_owned()),
            name: Some(tool.clone()),
            input: Some(shown.clone()),
        };
        let job = Job::new(title, vec![Effect::Tool(used)], move |cx, _| async move {
            let _call = server.calls().enter(cx.turn.clone());
            let result = server
                .call(&tool, input)
                .await
                .map_err(|why| format!("the MCP server {}: {why}", server.name()))?;
            Ok(output(&result))
        });
        Ok(if shown == "{}" { job } else { job.content(format!("```json\n{shown}\n```")) })
    }
}

/// The tool that lists and reads the resources of a server.
struct ResourceTool {
    server: Arc<Server>,
}

impl Tool for ResourceTool {
    fn info(&self) -> ToolInfo {
        let server = self.server.name();
        let about = format!("Lists the resources of the MCP server {server}, or reads one of them.");
        let uri = ("uri", text("the one to read; default: list them"), false);
        let info = ToolInfo::new(ToolKind::Read, &name(server, "resources"), &about, &[uri]);
        ToolInfo { availability: Availability::NotInPlanMode, ..info }
    }

    async fn prepare(&self, _: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let server = self.server.clone();
        let uri = arguments.object().get("uri").and_then(Value::as_str).map(str::to_owned);
        let title = match &uri {
            Some(uri) => format!("{}: read {uri}", server.name()),
            None => format!("{}: list resources", server.name()),
        };
        let used = ToolUse {
            server: Some(server.name().to_owned()),
            name: Some("resources".to_owned()),
            input: uri.clone(),
        };
        Ok(Job::new(title, vec![Effect::Tool(used)], move |_, _| async move {
            match uri {
                Some(uri) => Ok(read(server.resource(&uri).await?.contents)),
                None => Ok(list(&server.resources().await?)),
            }
        }))
    }
}

fn list(resources: &PagedList<Resource>) -> Output {
    let line = |resource: &Resource| {
        format!("{} ({})", resource.uri, resource.description.as_deref().unwrap_or(&resource.name))
    };
    let mut lines: Vec<String> = resources.entries.iter().map(line).collect();
    lines.extend(resources.cut.iter().map(|why| format!("[{why}]")));
    Output::visible(if lines.is_empty() {
        "no resources".to_owned()
    } else {
        head_and_tail(&lines.join("\n"), RESULT_TEXT_BYTES)
    })
}

fn read(contents: Vec<ResourceContents>) -> Output {
    let mut result = ToolResult::default();
    contents.iter().for_each(|content| result.push_resource(content));
    result.finish()
}

/// The result of a call.
fn output(called: &CallToolResult) -> Output {
    let mut result = ToolResult::default();
    for block in &called.content {
        match block {
            ContentBlock::Text(text) => result.push_text(&text.text),
            ContentBlock::Image(image) => result.push_image(&image.mime_type, &image.data),
            ContentBlock::Resource(resource) => result.push_resource(&resource.resource),
            ContentBlock::ResourceLink(link) => result.push_text(&format!("[{}]({})", link.name, link.uri)),
            // Models accept no audio in results.
            _ => result.push_text("(content of a kind that cannot be shown here)"),
        }
    }
    if let Some(structured) = &called.structured_content {
        let text = structured.to_string();
        // Most servers repeat it as text; if one does not, the model still needs it.
        if called.content.is_empty() {
            result.push_text(&text);
        }
        if text.len() <= STRUCTURED_BYTES {
            result.output.raw = Some(structured.clone());
        }
    }
    result.output.failed = called.is_error == Some(true);
    result.finish()
}

/// The content of a result, up to the limits.
struct ToolResult {
    output: Output,
    text_bytes: usize,
    images: usize,
    image_bytes: usize,
    left_out: usize,
}

impl Default for ToolResult {
    fn default() -> Self {
        let output = Output { content: Some(Vec::new()), ..Output::default() };
        ToolResult { output, text_bytes: 0, images: 0, image_bytes: 0, left_out: 0 }
    }
}

impl ToolResult {
    fn push_text(&mut self, text: &str) {
        let room = RESULT_TEXT_BYTES.saturating_sub(self.text_bytes);
        if self.output.parts.len() >= RESULT_PARTS || (room == 0 && !text.is_empty()) {
            self.left_out += 1;
            return;
        }
        let text = head_and_tail(text, room);
        self.text_bytes += text.len();
        self.put_text(text);
    }

    fn put_text(&mut self, text: String) {
        self.output.parts.push(Part::Text(text.clone()));
        self.output.content.get_or_insert_default().push(ToolContent::from(text));
    }

    fn push_image(&mut self, mime: &str, data: &str) {
        if self.output.parts.len() >= RESULT_PARTS
            || self.images >= RESULT_IMAGES
            || self.image_bytes.saturating_add(data.len()) > RESULT_IMAGE_BYTES
        {
            self.left_out += 1;
            return;
        }
        self.images += 1;
        self.image_bytes += data.len();
        self.output.parts.push(Part::Image { mime: mime.to_owned(), data: data.to_owned() });
        let image = Shown::from(ImageContent::new(data, mime));
        self.output.content.get_or_insert_default().push(ToolContent::from(image));
    }

    fn push_resource(&mut self, resource: &ResourceContents) {
        match resource {
            ResourceContents::TextResourceContents { text, .. } => self.push_text(text),
            ResourceContents::BlobResourceContents { mime_type: Some(mime), blob, .. }
                if mime.starts_with("image/") =>
            {
                self.push_image(mime, blob);
            }
            _ => self.push_text("(binary content)"),
        }
    }

    fn finish(mut self) -> Output {
        if self.left_out > 0 {
            self.put_text(format!(
                "[{} more parts of the result are left out: it is too large]",
                self.left_out
            ));
        }
        self.output
    }
}

/// A tool's description for the model, or why it is left out.
fn spec(server: &str, offered: &Offered) -> Result<ToolSpec, String> {
    let shown = || clip(&offered.name, 80).0.to_owned();
    if offered.name.is_empty() || offered.name.len() > TOOL_NAME_BYTES {
        return Err(format!("its tool `{}` is left out: its name has {} bytes", shown(), offered.name.len()));
    }
    let schema = Value::Object((*offered.input_schema).clone());
    let size = schema.to_string().len();
    if size > SCHEMA_BYTES {
        let most = SCHEMA_BYTES >> 10;
        return Err(format!("its tool `{}` is left out: its schema is larger than {most} KiB", shown()));
    }
    let about = offered.description.as_deref().or(offered.title.as_deref()).unwrap_or_default();
    Ok(ToolSpec { name: name(server, &offered.name), about: head_and_tail(about, DESCRIPTION_BYTES), schema })
}

/// `server_tool` in characters that every provider accepts. If it is too long, the server's name is
/// cut, because its tools differ at the end.
fn name(server: &str, tool: &str) -> String {
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
    };
    let (mut server, tool) = (plain(server), plain(tool));
    let room = MAX_NAME.saturating_sub(tool.len() + 1);
    server.truncate(room.max(8));
    let name = format!("{server}_{tool}");
    name[..name.len().min(MAX_NAME)].to_owned()
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
