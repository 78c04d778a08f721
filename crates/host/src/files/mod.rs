//! Files for agents: `fs/read_text_file` and `fs/write_text_file`.
//!
//! [`Jail`] knows how to follow a path without leaving the session's directories, [`Files`] serves
//! a client with it and asks the [`Guard`] first. Reading order: `jail.rs`, `text.rs`, `write.rs`,
//! `change.rs`.

mod change;
mod error;
mod jail;
mod text;
mod write;

use std::path::{Path, PathBuf};

use attache::client::{ReadFiles, RequestContext, WriteFiles};
use attache::wire::v1::{ReadTextFileRequest, SessionId, WriteTextFileRequest};
use attache::{Error, Result};

pub use error::FileError;
pub use jail::{FileLimits, Jail};

use crate::policy::{FilePath, Guard};

/// Provider of the files in the session's directories, for reading and writing:
/// `client.read_files(files.clone()).write_files(files)`.
#[derive(Clone, Debug)]
pub struct Files {
    guard: Guard,
    limits: FileLimits,
    any_line_ends: bool,
}

impl Files {
    /// Serves the files that `guard` permits.
    pub fn new(guard: Guard) -> Self {
        Files { guard, limits: FileLimits::default(), any_line_ends: false }
    }

    /// Replaces the default limits.
    #[must_use]
    pub fn limits(mut self, limits: FileLimits) -> Self {
        self.limits = limits;
        self
    }

    /// See [`Jail::keep_line_ends`].
    #[must_use]
    pub fn keep_line_ends(mut self, keep: bool) -> Self {
        self.any_line_ends = !keep;
        self
    }

    /// Reads for a session with these roots.
    ///
    /// # Errors
    /// The error that the agent gets.
    pub async fn read_in(
        &self,
        session: Option<&SessionId>,
        roots: &[PathBuf],
        request: ReadTextFileRequest,
    ) -> Result<String> {
        let real = self.resolve(roots, Path::new(&request.path)).await?;
        self.may_read(session, &real, &request).await?;
        self.read_resolved(roots, real, request).await
    }

    async fn may_read(
        &self,
        session: Option<&SessionId>,
        real: &Path,
        request: &ReadTextFileRequest,
    ) -> Result<()> {
        let asked = self.guard.read(session, FilePath::new(&request.path, real)).await;
        asked.map_err(|reason| denied(Path::new(&request.path), reason).into())
    }

    async fn read_resolved(
        &self,
        roots: &[PathBuf],
        real: PathBuf,
        request: ReadTextFileRequest,
    ) -> Result<String> {
        let (path, line, limit) = (PathBuf::from(request.path), request.line, request.limit);
        let jail = self.jail(roots);
        blocking(move || jail.read_checked(&path, line, limit, unchanged(&real, &path))).await
    }

    /// Estimates the bytes that a read returns.
    async fn size_of(&self, roots: &[PathBuf], path: &Path) -> Result<usize> {
        let (jail, path, most) = (self.jail(roots), path.to_owned(), self.limits.read);
        let size = blocking(move || jail.size(&path)).await?;
        Ok(usize::try_from(size.min(most)).unwrap_or(usize::MAX))
    }

    /// Writes for a session with these roots.
    ///
    /// # Errors
    /// The error that the agent gets.
    pub async fn write_in(
        &self,
        session: Option<&SessionId>,
        roots: &[PathBuf],
        request: WriteTextFileRequest,
    ) -> Result<()> {
        let (path, content) = (PathBuf::from(request.path), request.content);
        let real = self.resolve(roots, &path).await?;
        let named = FilePath::new(&path, &real);
        self.guard.write(session, named, &content).await.map_err(|reason| denied(&path, reason))?;
        let jail = self.jail(roots);
        blocking(move || jail.write_checked(&path, &content, unchanged(&real, &path))).await
    }

    async fn resolve(&self, roots: &[PathBuf], path: &Path) -> Result<PathBuf> {
        let (jail, path) = (self.jail(roots), path.to_owned());
        blocking(move || jail.resolve(&path)).await
    }

    /// Opens the roots for each request, because a directory may be moved away and created again.
    fn jail(&self, roots: &[PathBuf]) -> Jail {
        Jail::new(roots).limits(self.limits).keep_line_ends(!self.any_line_ends)
    }
}

fn denied(path: &Path, reason: impl ToString) -> FileError {
    FileError::Denied(path.to_owned(), reason.to_string())
}

/// Refuses a path that leads to another file than the one that was decided about.
fn unchanged(decided: &Path, asked: &Path) -> impl FnMut(&Path) -> Result<(), FileError> {
    move |real| match real == decided {
        true => Ok(()),
        false => Err(FileError::Denied(asked.to_owned(), "it leads to another file now".to_owned())),
    }
}

/// Runs file operations on a blocking thread, because disks may be slow.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(Error::from),
        Err(error) => Err(Error::internal(error)),
    }
}

impl ReadFiles for Files {
    async fn read(&self, cx: RequestContext, request: ReadTextFileRequest) -> Result<String> {
        let real = self.resolve(cx.roots(), Path::new(&request.path)).await?;
        // Other requests are served while the user decides.
        cx.pause(self.may_read(cx.session_id(), &real, &request)).await?;
        cx.reserve(self.size_of(cx.roots(), &real).await?).await;
        self.read_resolved(cx.roots(), real, request).await
    }
}

impl WriteFiles for Files {
    async fn write(&self, cx: RequestContext, request: WriteTextFileRequest) -> Result<()> {
        self.write_in(cx.session_id(), cx.roots(), request).await
    }
}
