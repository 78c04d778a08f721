//! The files of a workspace at one moment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use attache_host::files::Jail;
use attache_host::project_files::{self, EntryKind};

use super::state::{State, changed_at, look, stamp};

/// Bounds of a survey. Of files beyond them the change is noticed, but their content is not kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) entries: usize,
    pub(crate) file_bytes: u64,
    pub(crate) total_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { entries: 50_000, file_bytes: 2 << 20, total_bytes: 64 << 20 }
    }
}

/// A file that was changed less than this before a survey may change again without another time.
pub(super) const UNSETTLED: Duration = Duration::from_secs(2);

/// A path of a survey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) state: State,
    /// `None` if the file has to be read again the next time.
    pub(crate) stamp: Option<String>,
    /// When it was changed last.
    pub(crate) changed: SystemTime,
}

/// A list of a workspace.
#[derive(Debug, Clone)]
pub(crate) struct Survey {
    pub(crate) paths: BTreeMap<PathBuf, Known>,
    /// Whether it contains everything. In an incomplete one a path that is not there may exist.
    pub(crate) complete: bool,
}

impl Default for Survey {
    fn default() -> Self {
        Survey { paths: BTreeMap::new(), complete: true }
    }
}

/// Looks at everything below the roots. Files as in `last` are not read; `keep` stores the content
/// of others and returns whether it could.
pub(crate) fn survey(
    roots: &[PathBuf],
    jail: &Jail,
    last: &BTreeMap<PathBuf, Known>,
    limits: Limits,
    mut keep: impl FnMut(&str, &[u8]) -> bool,
) -> Survey {
    let began = SystemTime::now();
    let mut taken = Survey::default();
    let mut total: u64 = 0;
    for entry in roots.iter().flat_map(|root| project_files::entries(root)) {
        if taken.paths.len() >= limits.entries {
            taken.complete = false;
            break;
        }
        // It was removed since it was listed.
        let Ok(metadata) = entry.path.symlink_metadata() else { continue };
        let changed = changed_at(&metadata);
        let settled = changed + UNSETTLED < began;
        let known = |state| Known { state, stamp: None, changed };
        let found = match entry.kind {
            EntryKind::Directory => known(State::Directory),
            EntryKind::Link => known(look(jail, &entry.path, 0).0),
            EntryKind::File => {
                let stamp = stamp(&metadata);
                let fits = metadata.len() <= limits.file_bytes
                    && total.saturating_add(metadata.len()) <= limits.total_bytes;
                let same = last.get(&entry.path).filter(|last| last.stamp.as_ref() == Some(&stamp));
                match same {
                    Some(last) if last.state.hash().is_some() => {
                        total = total.saturating_add(metadata.len());
                        last.clone()
                    }
                    Some(last) if !fits => last.clone(),
                    _ => {
                        let limit = if fits { limits.file_bytes } else { 0 };
                        let (state, content) = look(jail, &entry.path, limit);
                        let kept = match (&state, &content) {
                            (State::File { hash, .. }, Some(content)) => {
                                total = total.saturating_add(content.len() as u64);
                                keep(hash, content)
                            }
                            _ => true,
                        };
                        let state = if kept { state } else { State::Unread(stamp.clone()) };
                        Known { state, stamp: settled.then_some(stamp), changed }
                    }
                }
            }
        };
        taken.paths.insert(entry.path, found);
    }
    taken
}

/// The number of directories above a path that a survey does not have.
pub(crate) fn new_directories(roots: &[PathBuf], before: &Survey, path: &Path) -> u32 {
    let inside =
        |directory: &&Path| roots.iter().any(|root| directory.starts_with(root) && *directory != root);
    let is_known =
        |directory: &Path| before.paths.get(directory).is_some_and(|known| known.state == State::Directory);
    let new = path.ancestors().skip(1).take_while(inside).take_while(|directory| !is_known(directory));
    if before.complete { u32::try_from(new.count()).unwrap_or(u32::MAX) } else { 0 }
}
