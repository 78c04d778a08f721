//! Files of this machine, through the host's jail.

use attache_host::files::{FileError, FileLimits, Jail};

use super::{MAX_READ, Workspace, WorkspacePath};

impl Workspace {
    /// Runs a file operation on a thread that may block. The jail is opened each time, because a
    /// directory that was moved away and created again is still the session's directory.
    pub(super) async fn with_jail<T: Send + 'static>(
        &self,
        path: &WorkspacePath,
        work: impl FnOnce(&Jail, &std::path::Path) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, String> {
        let jail = match (path.inside, path.real.parent()) {
            (false, Some(parent)) => Jail::new([parent]),
            _ => Jail::new(self.roots()),
        };
        let jail = jail.limits(FileLimits { read: MAX_READ as u64, ..FileLimits::default() });
        let real = path.real.clone();
        crate::blocking::run(move || work(&jail, &real)).await
    }

    pub(super) async fn read_local(
        &self,
        path: &WorkspacePath,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, String> {
        self.with_jail(path, move |jail, real| jail.read(real, line, limit)).await
    }

    pub(super) async fn exists_local(&self, path: &WorkspacePath) -> Result<bool, String> {
        self.with_jail(path, |jail, real| Ok(jail.resolve(real).is_ok_and(|real| real.exists()))).await
    }

    /// The bytes on disk; a client provides text only.
    pub(crate) async fn bytes(&self, path: &WorkspacePath, limit: u64) -> Result<Vec<u8>, String> {
        self.with_jail(path, move |jail, real| jail.bytes(real, limit)).await
    }

    pub(crate) async fn remove(&self, path: &WorkspacePath) -> Result<(), String> {
        self.with_jail(path, Jail::remove).await
    }

    /// Renames a file inside the roots, or between paths that were allowed.
    pub(crate) async fn rename(&self, from: &WorkspacePath, to: &WorkspacePath) -> Result<(), String> {
        let outside =
            |path: &WorkspacePath| path.real.parent().filter(|_| !path.inside).map(ToOwned::to_owned);
        let roots: Vec<_> = self.roots().iter().cloned().chain(outside(from)).chain(outside(to)).collect();
        let (from, to) = (from.real.clone(), to.real.clone());
        crate::blocking::run(move || Jail::new(roots).rename(&from, &to)).await
    }
}
