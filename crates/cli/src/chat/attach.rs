//! `@path` in a prompt: attaches the file in the best form that the agent supports.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::output::count;
use attache::Prompt;
use attache::wire::v1::{EmbeddedResource, PromptCapabilities, ResourceLink, TextResourceContents};
use attache_term::editor::complete::resolve;
use base64::prelude::{BASE64_STANDARD, Engine as _};

/// Texts above this are linked, not included.
const TEXT: u64 = 256 << 10;
/// Pictures and sound above this are linked, not included.
const MEDIA: u64 = 16 << 20;

/// A prompt with its files.
pub(crate) struct Attached {
    pub(crate) prompt: Prompt,
    /// A description of each attachment for the user.
    pub(crate) notes: Vec<String>,
    /// Mentioned names that are no files.
    pub(crate) missing: Vec<String>,
}

/// Builds a prompt from typed text. The text stays unchanged; each mentioned file is attached once.
pub(crate) fn prompt(text: &str, cwd: &Path, can: &PromptCapabilities) -> Attached {
    let mut prompt = Prompt::from(text);
    let (mut notes, mut missing) = (Vec::new(), Vec::new());
    let mut seen: Vec<PathBuf> = Vec::new();
    for name in mentions(text) {
        let Some((name, path)) = find(&name, cwd) else {
            missing.push(name);
            continue;
        };
        if seen.contains(&path) {
            continue;
        }
        seen.push(path.clone());
        let (next, how) = attach(prompt, &name, &path, can);
        prompt = next;
        notes.push(format!("{name} ({how})"));
    }
    Attached { prompt, notes, missing }
}

/// Returns the words after each `@` that begins a word.
fn mentions(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == '@' && (before.is_whitespace() || "([{<\"'".contains(before)) {
            let rest = text.get(at + 1..).unwrap_or_default();
            let name = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next(),
                None => rest.split(char::is_whitespace).next(),
            };
            found.extend(name.filter(|name| !name.is_empty()).map(str::to_owned));
        }
        before = c;
    }
    found
}

/// Finds the named file. A full stop after a name belongs to the sentence.
fn find(name: &str, cwd: &Path) -> Option<(String, PathBuf)> {
    let shorter = name.trim_end_matches([',', '.', ';', ':', '!', '?', ')', ']', '}', '>', '"', '\'']);
    [name, shorter].into_iter().filter(|name| !name.is_empty()).find_map(|name| {
        let path = resolve(name, cwd);
        fs::metadata(&path).is_ok_and(|meta| meta.is_file() || meta.is_dir()).then(|| (name.to_owned(), path))
    })
}

fn attach(prompt: Prompt, name: &str, path: &Path, can: &PromptCapabilities) -> (Prompt, String) {
    let size = fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|meta| meta.len());
    let start = beginning(path);
    let mime = mime_type(path, &start);
    // CONT-02, PROMPT-02: only kinds that the agent supports.
    if let Some(mime) = mime.filter(|_| size.is_some_and(|size| size <= MEDIA)) {
        let image = mime.starts_with("image/") && can.image;
        let audio = mime.starts_with("audio/") && can.audio;
        if (image || audio)
            && let Ok(bytes) = fs::read(path)
        {
            let data = BASE64_STANDARD.encode(&bytes);
            return match image {
                true => (prompt.image(data, mime), "image".to_owned()),
                false => (prompt.audio(data, mime), "sound".to_owned()),
            };
        }
    }
    if can.embedded_context
        && mime.is_none()
        && size.is_some_and(|size| size <= TEXT)
        && let Ok(text) = fs::read_to_string(path)
    {
        let lines = text.lines().count();
        let resource = EmbeddedResource::new(TextResourceContents::new(uri(path), text));
        return (prompt.with(resource), count(lines as u64, "line"));
    }
    let why = match mime {
        Some(_) if size.is_some_and(|size| size > MEDIA) => " only: it is too large",
        Some(mime) if mime.starts_with("image/") => " only: the agent takes no pictures",
        Some(_) => " only: the agent takes no sound",
        None => "",
    };
    let mut link = ResourceLink::new(name, uri(path));
    link.size = size.and_then(|size| i64::try_from(size).ok());
    link.mime_type = mime.map(str::to_owned);
    (prompt.with(link), format!("link{why}"))
}

fn beginning(path: &Path) -> Vec<u8> {
    let mut start = Vec::new();
    // Opening a FIFO would wait for a writer; only regular files are read.
    if fs::metadata(path).is_ok_and(|meta| meta.is_file())
        && let Ok(file) = fs::File::open(path)
    {
        let _ = file.take(16).read_to_end(&mut start);
    }
    start
}

/// Detects images by content and audio by name.
fn mime_type(path: &Path, start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', ..] => return Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => return Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => return Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => return Some("image/webp"),
        _ => {}
    }
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "wav" => Some("audio/wav"),
        "mp3" => Some("audio/mpeg"),
        "ogg" => Some("audio/ogg"),
        "flac" => Some("audio/flac"),
        _ => None,
    }
}

/// Returns the `file://` address of a path.
pub(crate) fn uri(path: &Path) -> String {
    let mut out = String::from("file://");
    let path = path.to_string_lossy().replace('\\', "/");
    if !path.starts_with('/') {
        out.push('/');
    }
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b':' => {
                out.push(byte.into())
            }
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use attache::wire::v1::ContentBlock;

    use super::*;

    #[test]
    fn mentions_begin_words() {
        assert_eq!(mentions("see @a.rs, me@home.org (@b) @\"c d.txt\" @"), ["a.rs,", "b)", "c d.txt"]);
    }

    #[test]
    fn files_go_along_in_the_form_that_the_agent_takes() {
        let dir = std::env::temp_dir().join(format!("attache-attach-{}", std::process::id()));
        fs::create_dir_all(dir.join("sub dir")).unwrap();
        fs::write(dir.join("a.rs"), "fn a() {}\n").unwrap();
        fs::write(dir.join("sub dir/p.png"), b"\x89PNG\r\n\x1a\nrest").unwrap();
        fs::write(dir.join("bin"), [0xff, 0xfe, 0x00]).unwrap();
        let text = "Look at @a.rs. and @a.rs and @\"sub dir/p.png\" and @bin and @gone";

        let mut can = PromptCapabilities::new();
        let Attached { prompt, notes, missing } = super::prompt(text, &dir, &can);
        assert_eq!(missing, ["gone"]);
        assert_eq!(notes[1], "sub dir/p.png (link only: the agent takes no pictures)");
        let kinds = |prompt: &Prompt| -> Vec<&'static str> {
            let kind = |block: &ContentBlock| match block {
                ContentBlock::Text(_) => "text",
                ContentBlock::Image(_) => "image",
                ContentBlock::Resource(_) => "resource",
                ContentBlock::ResourceLink(_) => "link",
                _ => "other",
            };
            prompt.blocks().iter().map(kind).collect()
        };
        assert_eq!(kinds(&prompt), ["text", "link", "link", "link"]);
        assert_eq!(prompt.text(), text);

        can.image = true;
        can.embedded_context = true;
        let Attached { prompt, notes, .. } = super::prompt(text, &dir, &can);
        assert_eq!(kinds(&prompt), ["text", "resource", "image", "link"]);
        assert_eq!(notes, ["a.rs (1 line)", "sub dir/p.png (image)", "bin (link)"]);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn addresses_are_escaped() {
        assert_eq!(uri(Path::new("/a b/ü#.rs")), "file:///a%20b/%C3%BC%23.rs");
    }
}
