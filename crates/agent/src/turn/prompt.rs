//! What the user says, as the model is told it.

use attache::wire::v1::{EmbeddedResource, EmbeddedResourceResource, ResourceLink};
use attache::{ContentBlock, Error, Prompt, Result};

use crate::model::Part;
use crate::session::Live;
use crate::tools::{Cx, clip};

/// The most of a resource that is included.
const MOST: usize = 256 << 10;

/// PROMPT-02, PROMPT-04: pictures and sound only if the model takes them. The agent says what it takes before a model is
/// chosen, so this is found out here.
pub(super) fn check(live: &Live, prompt: &Prompt) -> Result<()> {
    let Some(model) = live.model() else { return Ok(()) };
    let info = model.info();
    for block in prompt.blocks() {
        let refused = match block {
            ContentBlock::Image(_) if !info.images => "pictures",
            ContentBlock::Audio(_) if !info.audio => "sound",
            _ => continue,
        };
        return Err(Error::invalid_params(format!("{} takes no {refused}; choose another model", info.name)));
    }
    Ok(())
}

/// PROMPT-03: text and links always; links to files of the session are left to the model to read.
pub(super) async fn parts(cx: &Cx, prompt: &Prompt) -> Result<Vec<Part>> {
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
            ContentBlock::ResourceLink(link) => Part::Text(told_link(cx, link)),
            ContentBlock::Resource(resource) => told_resource(cx, resource),
            _ => return Err(Error::invalid_params("a block of this kind is not known")),
        });
    }
    // Providers refuse an empty message.
    if parts.is_empty() {
        parts.push(Part::Text("(the user sent an empty message)".to_owned()));
    }
    Ok(parts)
}

fn told_link(cx: &Cx, link: &ResourceLink) -> String {
    let name = link.title.as_deref().unwrap_or(&link.name);
    let place = match link.uri.starts_with("file://") {
        true => cx.place(&path_of(&link.uri)).map_or_else(|_| link.uri.clone(), |place| cx.short(&place)),
        false => link.uri.clone(),
    };
    match name == place {
        true => format!("[The user refers to {place}]"),
        false => format!("[The user refers to {name}: {place}]"),
    }
}

fn told_resource(cx: &Cx, resource: &EmbeddedResource) -> Part {
    match &resource.resource {
        EmbeddedResourceResource::Text(resource) => {
            let (text, cut) = clip(&resource.text, MOST);
            let name = shown_uri(cx, &resource.uri);
            let more = if cut { "\n[… cut]" } else { "" };
            Part::Text(format!("[The user includes {name}]\n{text}{more}\n[End of {name}]"))
        }
        EmbeddedResourceResource::Blob(blob) => match &blob.mime_type {
            Some(mime) if mime.starts_with("image/") && cx.live.takes_images() => {
                Part::Image { mime: mime.clone(), data: blob.blob.clone() }
            }
            _ => Part::Text(format!("[The user includes {}, which is not text]", shown_uri(cx, &blob.uri))),
        },
        _ => Part::Text("[The user includes something that cannot be read]".to_owned()),
    }
}

fn shown_uri(cx: &Cx, uri: &str) -> String {
    match uri.starts_with("file://") {
        true => cx.place(&path_of(uri)).map_or_else(|_| uri.to_owned(), |place| cx.short(&place)),
        false => uri.to_owned(),
    }
}

/// The path of a file URI: without its scheme and fragment, and with its escapes undone.
fn path_of(uri: &str) -> String {
    let path = uri.strip_prefix("file://").unwrap_or(uri);
    let path = path.split(['#', '?']).next().unwrap_or(path);
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [byte, tail @ ..] = rest {
        let hex = |digit: u8| (digit as char).to_digit(16).map(|digit| digit as u8);
        match (byte, tail) {
            (b'%', [a, b, more @ ..]) if hex(*a).is_some() && hex(*b).is_some() => {
                bytes.push(hex(*a).unwrap_or_default() << 4 | hex(*b).unwrap_or_default());
                rest = more;
            }
            _ => {
                bytes.push(*byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Puts what a command stands for in the place of what was typed; everything else stays.
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
        assert_eq!(path_of("file:///a%20b/c.rs#L3"), "/a b/c.rs");
        assert_eq!(path_of("file:///100%"), "/100%");
    }
}
