//! The prompt, converted for the model.

use attache::wire::v1::{EmbeddedResource, EmbeddedResourceResource};
use attache::{ContentBlock, Error, Prompt, Result};

use crate::model::Part;
use crate::state::SessionState;
use crate::text::clip_marked;
use crate::tools::ToolContext;
use attache_http::proxy::percent_decode;

/// The most bytes of an embedded resource.
const MAX_RESOURCE: usize = 256 << 10;

/// Refuses content that the model does not accept. The agent announces its
/// capabilities before a model is chosen, so this is checked here.
// PROMPT-02, PROMPT-04
pub(super) fn check(session: &SessionState, prompt: &Prompt) -> Result<()> {
    let Some(model) = session.model() else { return Ok(()) };
    let info = model.info();
    for block in prompt.blocks() {
        let refused = match block {
            ContentBlock::Image(_) if !info.images => "images",
            ContentBlock::Audio(_) if !info.audio => "audio",
            _ => continue,
        };
        return Err(Error::invalid_params(format!(
            "{} does not accept {refused}; choose another model",
            info.name
        )));
    }
    Ok(())
}

/// Text and links always; the model reads linked files itself.
// PROMPT-03
pub(super) fn parts(cx: &ToolContext, prompt: &Prompt) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for block in prompt.blocks() {
        parts.push(match block {
            ContentBlock::Text(text) => Part::Text(text.text.clone()),
            ContentBlock::Image(image) => {
                Part::Image { mime: image.mime_type.clone(), data: image.data.clone() }
            }
            ContentBlock::Audio(audio) => {
                Part::Audio { mime: audio.mime_type.clone(), data: audio.data.clone() }
            }
            ContentBlock::ResourceLink(link) => {
                let (name, target) = (link.title.as_ref().unwrap_or(&link.name), shown_uri(cx, &link.uri));
                Part::Text(match *name == target {
                    true => format!("[The user refers to {target}]"),
                    false => format!("[The user refers to {name}: {target}]"),
                })
            }
            ContentBlock::Resource(resource) => resource_part(cx, resource),
            _ => return Err(Error::invalid_params("unknown kind of content block")),
        });
    }
    // Providers refuse an empty message.
    if parts.is_empty() {
        parts.push(Part::Text("(the user sent an empty message)".to_owned()));
    }
    Ok(parts)
}

fn resource_part(cx: &ToolContext, resource: &EmbeddedResource) -> Part {
    match &resource.resource {
        EmbeddedResourceResource::Text(resource) => {
            let text = clip_marked(&resource.text, MAX_RESOURCE, "\n[… cut]");
            let name = shown_uri(cx, &resource.uri);
            // What the user includes does not have to be read again.
            if let Some(path) = file_path(&resource.uri).and_then(|path| cx.resolve(&path).ok()) {
                cx.session.workspace.mark_seen(&path, Some(&resource.text));
            }
            Part::Text(format!("[The user includes {name}]\n{text}\n[End of {name}]"))
        }
        EmbeddedResourceResource::Blob(blob) => match &blob.mime_type {
            Some(mime) if mime.starts_with("image/") && cx.session.accepts_images() => {
                Part::Image { mime: mime.clone(), data: blob.blob.clone() }
            }
            _ => Part::Text(format!("[The user includes {}, which is not text]", shown_uri(cx, &blob.uri))),
        },
        _ => Part::Text("[The user includes something that cannot be read]".to_owned()),
    }
}

/// A file URI as a path; any other URI as it is.
fn shown_uri(cx: &ToolContext, uri: &str) -> String {
    let path = file_path(uri).and_then(|path| cx.resolve(&path).ok());
    path.map_or_else(|| uri.to_owned(), |path| cx.short(&path))
}

/// The path of a file URI, without its fragment and query.
fn file_path(uri: &str) -> Option<String> {
    let path = uri.strip_prefix("file://")?;
    let path = path.split(['#', '?']).next().unwrap_or(path);
    Some(String::from_utf8_lossy(&percent_decode(path)).into_owned())
}

/// Replaces the typed command with its prompt; other parts stay.
pub(super) fn replace_text(parts: &mut Vec<Part>, text: String) {
    match parts.iter_mut().find(|part| matches!(part, Part::Text(_))) {
        Some(part) => *part = Part::Text(text),
        None => parts.insert(0, Part::Text(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_uris_are_paths() {
        assert_eq!(file_path("file:///a%20b/c.rs#L3").as_deref(), Some("/a b/c.rs"));
        assert_eq!(file_path("https://a/b"), None);
    }
}
