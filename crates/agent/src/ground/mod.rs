//! Where tools act: the files and terminals that the client lends if it does, else those of this machine.
//!
//! Whatever lies below the session's roots is reached through the client's `fs/*` if it offers them, so that unsaved text in
//! an editor counts, and else through [`attache_host`]'s jail, which does not let a path leave the roots. What lies
//! outside is never given to the client, which would refuse it (FS-15); it is reached through a jail of its own, and
//! only after somebody allowed just that path.
//!
//! Read this file, then `local.rs` (this machine), then `commands.rs` (terminals).

mod commands;
mod local;

use std::path::{Path, PathBuf};

use attache::agent::{DetachedTurn, Turn};
use attache_host::policy::{FilePath, real_path};

pub(crate) use commands::{Ended, Running};

/// The most text that one read gives; more does not fit into a conversation anyway.
pub(crate) const MOST_TEXT: usize = 256 << 10;

/// The session's directories.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    /// The working directory first.
    roots: Vec<PathBuf>,
    /// The same, free of links.
    real: Vec<PathBuf>,
}

/// What a path stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The absolute path as it was named, free of dots.
    pub(crate) named: PathBuf,
    /// Where it really leads, as far as anything is there.
    pub(crate) real: PathBuf,
    /// Whether that is below one of the roots.
    pub(crate) inside: bool,
}

impl Place {
    /// The path for the permission engine.
    pub(crate) fn path(&self) -> FilePath {
        FilePath::new(&self.named, &self.real)
    }
}

impl Ground {
    pub(crate) fn new(cwd: PathBuf, more: Vec<PathBuf>) -> Self {
        let roots: Vec<PathBuf> = std::iter::once(cwd).chain(more).collect();
        let real = roots.iter().map(|root| real_path(root)).collect();
        Ground { roots, real }
    }

    pub(crate) fn cwd(&self) -> &Path {
        self.roots.first().map_or(Path::new("/"), PathBuf::as_path)
    }

    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Finds out where a path of the model leads. Nothing is opened.
    pub(crate) fn place(&self, path: &str) -> Result<Place, String> {
        if path.is_empty() {
            return Err("the path is empty".to_owned());
        }
        if path.contains('\0') {
            return Err("the path holds a zero byte".to_owned());
        }
        let path = FilePath::resolve(path, self.cwd());
        let inside = path.is_inside(&self.real);
        Ok(Place { named: path.named().to_owned(), real: path.real().to_owned(), inside })
    }

    /// The path as people like to read it: relative to the working directory where that is shorter.
    pub(crate) fn short(&self, path: &Path) -> String {
        let relative = path.strip_prefix(self.cwd()).or_else(|_| match self.real.first() {
            Some(root) => path.strip_prefix(root),
            None => path.strip_prefix(path),
        });
        match relative {
            Ok(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
            Ok(relative) => relative.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }

    /// Text from line `line` on, at most `limit` lines. FS-01: through the client if it lends its files.
    pub(crate) async fn read(
        &self,
        turn: &DetachedTurn,
        place: &Place,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, String> {
        match lent_reader(turn.turn(), place) {
            Some(files) => {
                let read = files.read_lines(&place.named, line, limit).await;
                let text = read.map_err(|error| told(&self.short(&place.named), error))?;
                // FS-13: some editors say that what is not there is empty, and a model would believe it.
                if text.is_empty() && !local::exists(self, place).await? {
                    return Err(format!("no such file: {}", self.short(&place.named)));
                }
                Ok(text)
            }
            None => local::read(self, place, line, limit).await,
        }
    }

    /// The whole text of a file that is to be changed, `None` if there is no such file. It is read from where it will be written
    /// to: an unsaved buffer that cannot be written through the client must not end up on the disk.
    pub(crate) async fn whole(&self, turn: &DetachedTurn, place: &Place) -> Result<Option<String>, String> {
        if !local::exists(self, place).await? && !is_lent(turn.turn(), place) {
            return Ok(None);
        }
        if !is_lent(turn.turn(), place) {
            return local::read(self, place, None, None).await.map(Some);
        }
        let on_disk = local::exists(self, place).await?;
        match self.read(turn, place, None, None).await {
            Ok(text) if text.is_empty() && !on_disk => Ok(None),
            Ok(text) => Ok(Some(text)),
            Err(_) if !on_disk => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Replaces a file's text, or makes the file. FS-02: through the client only if it lends writing too.
    pub(crate) async fn write(&self, turn: &DetachedTurn, place: &Place, text: &str) -> Result<(), String> {
        match turn.turn().write_files() {
            Some(files) if is_lent(turn.turn(), place) => {
                let written = files.write(&place.named, text).await;
                written.map_err(|error| told(&self.short(&place.named), error))
            }
            _ => local::write(self, place, text).await,
        }
    }

    /// The bytes on the disk; the client has no way to lend those.
    pub(crate) async fn bytes(&self, place: &Place, limit: u64) -> Result<Vec<u8>, String> {
        local::bytes(self, place, limit).await
    }

    pub(crate) async fn remove(&self, place: &Place) -> Result<(), String> {
        local::remove(self, place).await
    }

    pub(crate) async fn rename(&self, from: &Place, to: &Place) -> Result<(), String> {
        local::rename(self, from, to).await
    }

    /// Whether something is there, and if so whether it is a directory.
    pub(crate) fn is_dir(place: &Place) -> bool {
        place.real.is_dir()
    }
}

/// Reading needs only that the client lends it.
fn lent_reader(turn: Turn<'_>, place: &Place) -> Option<attache::agent::FileReader> {
    if place.inside { turn.read_files() } else { None }
}

/// Whether a file is both read and written through the client.
fn is_lent(turn: Turn<'_>, place: &Place) -> bool {
    place.inside && turn.read_files().is_some() && turn.write_files().is_some()
}

/// What a client's refusal means to the model.
fn told(path: &str, error: attache::Error) -> String {
    match error {
        attache::Error::Refused(error) if error.message.contains(path) => error.message,
        attache::Error::Refused(error) => format!("{path}: {}", error.message),
        error => format!("{path}: {error}"),
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_link_that_leads_out_is_outside_also_when_nothing_is_there() {
        // shows ROOT-17, ROOT-18
        let base = std::env::temp_dir().join(format!("attache-ground-{}", std::process::id()));
        let root = base.join("root");
        std::fs::create_dir_all(root.join("src")).unwrap();
        std::os::unix::fs::symlink(base.join("nowhere"), root.join("out")).unwrap();
        std::os::unix::fs::symlink("circle", root.join("circle")).unwrap();
        std::os::unix::fs::symlink("src", root.join("in")).unwrap();
        let ground = Ground::new(root.clone(), Vec::new());
        let inside = |path: &str| ground.place(path).unwrap().inside;
        assert!(inside("src/new/file.rs") && inside(".") && inside("in/x") && inside("src/../src"));
        assert!(
            !inside("out")
                && !inside("out/x")
                && !inside("circle")
                && !inside("../x")
                && !inside("/etc/passwd")
        );
        assert!(!inside("in/../../x"));
        assert_eq!(ground.short(&root.join("src/a.rs")), "src/a.rs");
        assert!(ground.place("").is_err() && ground.place("a\0b").is_err());
        std::fs::remove_dir_all(&base).unwrap();
    }
}
