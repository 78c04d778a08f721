//! Protected files that a sandboxed command creates.
//!
//! The sandbox keeps those that exist from a change, but cannot know all that may come. When the command has ended, those that no rule
//! allows are removed before its end is reported.

use std::collections::BTreeSet;
use std::path::PathBuf;

use attache::wire::v1::SessionId;

use crate::policy::{FilePath, Guard, protected};

/// The protected files before a command, to find those that it creates.
pub(super) struct CreatedFiles {
    guard: Guard,
    session: Option<SessionId>,
    roots: Vec<PathBuf>,
    before: BTreeSet<PathBuf>,
}

impl CreatedFiles {
    /// Searches the directories of a session. Blocks.
    pub(super) fn watch(guard: &Guard, session: Option<&SessionId>, roots: &[PathBuf]) -> Self {
        CreatedFiles {
            guard: guard.clone(),
            session: session.cloned(),
            roots: roots.to_vec(),
            before: protected::present(roots),
        }
    }

    /// Removes protected files that were created since. Blocks.
    pub(super) fn settle(&self) {
        for path in protected::created(&self.before, &protected::present(&self.roots)) {
            if !self.guard.may_keep(self.session.as_ref(), FilePath::from_real(&path)) {
                // A file that cannot be removed was not created by this user.
                let _ = protected::remove(&path);
            }
        }
    }
}
