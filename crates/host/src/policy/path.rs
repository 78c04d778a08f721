//! Paths as effects name them.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// A path: as it was named, and where it leads.
///
/// Rules that deny look at both; everything else looks at where it leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilePath {
    named: PathBuf,
    real: PathBuf,
}

impl FilePath {
    /// The path `path`, relative to `base`. The file system is read, nothing is opened.
    pub fn resolve(path: impl AsRef<Path>, base: &Path) -> Self {
        let path = path.as_ref();
        let address = path.to_str().and_then(|path| path.strip_prefix("file://"));
        let named = without_dots(&base.join(address.map_or(path, Path::new)));
        let real = real_path(&named);
        FilePath { named, real }
    }

    /// A path that is known to be free of links and dots, such as one that the jail has walked.
    pub fn from_real(real: impl Into<PathBuf>) -> Self {
        let real = real.into();
        FilePath { named: real.clone(), real }
    }

    /// A path as named by a peer, with the place where it leads.
    pub fn new(named: impl Into<PathBuf>, real: impl Into<PathBuf>) -> Self {
        FilePath { named: named.into(), real: real.into() }
    }

    /// The absolute path as it was named, without `.` and `..`.
    pub fn named(&self) -> &Path {
        &self.named
    }

    /// Where it leads, as far as anything exists there.
    pub fn real(&self) -> &Path {
        &self.real
    }

    /// Whether it leads to a place below one of `roots`, which are free of links.
    pub fn is_inside(&self, roots: &[PathBuf]) -> bool {
        roots.iter().any(|root| self.real.starts_with(root))
    }
}

/// Removes `.` and `..` by name.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(clean.pop()),
            other => clean.push(other),
        }
    }
    clean
}

/// Follows every link of a path. The part that does not exist stays as it is; a dangling link
/// counts as its target, because that is where a write through it would land.
pub fn real_path(path: &Path) -> PathBuf {
    follow(path, MOST_LINKS)
}

/// As many links as Linux follows.
const MOST_LINKS: usize = 40;

fn follow(path: &Path, links: usize) -> PathBuf {
    // A loop of links leads outside of every directory.
    let Some(links) = links.checked_sub(1) else { return PathBuf::from("/") };
    let mut missing: Vec<&OsStr> = Vec::new();
    let join =
        |start: PathBuf, missing: &[&OsStr]| missing.iter().rev().fold(start, |path, name| path.join(name));
    let mut existing = path;
    loop {
        if let Ok(real) = existing.canonicalize() {
            return join(real, &missing);
        }
        if let Ok(target) = existing.read_link() {
            let target = without_dots(&existing.parent().unwrap_or(existing).join(target));
            return follow(&join(target, &missing), links);
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                existing = parent;
            }
            _ => return path.to_owned(),
        }
    }
}
