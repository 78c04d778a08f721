//! Protected files that a sandboxed command creates or changes.
//!
//! The sandbox protects those directly below a root, but not files that do not exist yet. After the
//! command has ended, changes that no rule allows are reverted before the end is reported.

use std::path::PathBuf;

use attache::wire::v1::SessionId;

use crate::policy::{FilePath, Guard};
use crate::survey::Survey;

/// The protected files before a command, to find what it does to them.
pub(super) struct ProtectedFiles {
    guard: Guard,
    session: Option<SessionId>,
    before: Survey,
}

impl ProtectedFiles {
    /// Searches the directories of a session. Blocks.
    pub(super) fn watch(guard: &Guard, session: Option<&SessionId>, roots: &[PathBuf]) -> Self {
        ProtectedFiles { guard: guard.clone(), session: session.cloned(), before: Survey::take(roots) }
    }

    /// Reverts the changes unless all of them are allowed. Blocks.
    pub(super) fn settle(self) {
        let changes = self.before.changes();
        let session = self.session.as_ref();
        let denied =
            changes.paths().filter(|path| !self.guard.may_keep(session, FilePath::from_real(path))).count();
        if denied > 0 {
            // The audit log has the change as denied; that it stays is an error for the operator.
            if let Err(error) = changes.take_back() {
                tracing::error!(?error, "a denied change of a protected file was not reverted");
            }
        }
    }
}
