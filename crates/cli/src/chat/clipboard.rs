//! Pictures from the clipboard and from the desktop.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use attache_conn::private;

/// The largest picture.
const MAX_PICTURE: u64 = 16 << 20;
/// How long pasted pictures are kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Endings of files that are attached when they are dropped on the terminal.
const PICTURES: &[&str] = &["png", "jpg", "jpeg", "gif", "webp"];

/// Programs that print the picture in the clipboard, with the variable that says whether they can
/// work here.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("WAYLAND_DISPLAY", &["wl-paste", "--no-newline", "--type", "image/png"]),
    ("DISPLAY", &["xclip", "-selection", "clipboard", "-target", "image/png", "-out"]),
    ("HOME", &["pngpaste", "-"]),
];

/// Stores the picture of the clipboard as a file that only this user can read.
///
/// # Errors
/// A text for the user.
pub(super) fn paste(directory: &Path) -> Result<PathBuf, String> {
    let picture = picture()?;
    let write = || -> io::Result<PathBuf> {
        private::create_directory(directory)?;
        forget_old(directory);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let path = directory.join(format!("paste-{}.png", now.as_millis()));
        io::Write::write_all(&mut private::create(&path)?, &picture)?;
        Ok(path)
    };
    write().map_err(|error| format!("the picture cannot be stored: {error}"))
}

fn picture() -> Result<Vec<u8>, String> {
    let mut found = false;
    for (variable, line) in PROGRAMS {
        let Some((program, args)) = line.split_first() else { continue };
        if std::env::var_os(variable).is_none_or(|value| value.is_empty()) {
            continue;
        }
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else { continue };
        found = true;
        let mut bytes = Vec::new();
        let read = child.stdout.take().map(|out| out.take(MAX_PICTURE + 1).read_to_end(&mut bytes));
        // It may still be writing if there was too much.
        let _ = child.kill();
        let _ = child.wait();
        if bytes.len() as u64 > MAX_PICTURE {
            return Err("the picture in the clipboard is larger than 16 MiB".to_owned());
        }
        if matches!(read, Some(Ok(_))) && bytes.starts_with(b"\x89PNG") {
            return Ok(bytes);
        }
    }
    Err(match found {
        true => "no picture in the clipboard".to_owned(),
        false => "pictures are pasted with wl-paste, xclip or pngpaste; none of them works here".to_owned(),
    })
}

fn forget_old(directory: &Path) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let age = entry.metadata().ok().and_then(|found| found.modified().ok()?.elapsed().ok());
        if age.is_some_and(|age| age > KEPT) {
            // It is tried again the next time.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The mention of a picture whose path was pasted, as terminals do when a file is dropped on them.
pub(super) fn dropped(text: &str) -> Option<String> {
    let text = text.trim();
    if text.contains('\n') || text.len() > 4096 {
        return None;
    }
    let quoted = ['\'', '"'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    let plain = match quoted {
        Some(path) => path.to_owned(),
        None => text.replace("\\ ", " ").replace("\\(", "(").replace("\\)", ")"),
    };
    let path = Path::new(plain.strip_prefix("file://").unwrap_or(&plain));
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    let is_picture = path.is_absolute() && PICTURES.contains(&ending.as_str()) && path.is_file();
    is_picture.then(|| mention(path))
}

/// The mention of a file as the line takes it.
pub(super) fn mention(path: &Path) -> String {
    format!("@\"{}\" ", path.display())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_pictures_that_exist_are_dropped() {
        let dir = private::TempDir::new("dropped").unwrap();
        let path = dir.path().join("a picture.png");
        std::fs::write(&path, "x").unwrap();
        let name = path.display().to_string();
        let wanted = Some(format!("@\"{name}\" "));
        assert_eq!(dropped(&format!("'{name}'")), wanted);
        assert_eq!(dropped(&format!("{}\n", name.replace(' ', "\\ "))), wanted);
        assert_eq!(dropped(&format!("file://{name}")), wanted);
        assert_eq!(dropped(&format!("see {name}")), None);
        assert_eq!(dropped(&name.replace("png", "txt")), None);
        assert_eq!(dropped("a.png"), None);
    }
}
