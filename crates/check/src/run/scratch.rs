//! A directory per scenario.

use std::io;
use std::path::{Path, PathBuf};

use attache_conn::private::TempDir;

use crate::stage::NOTES;

/// A directory with a few files in it, removed with this value; or only the name of one.
pub(super) struct Scratch {
    path: PathBuf,
    _parent: Option<TempDir>,
}

impl Scratch {
    pub(super) fn new(name: &str, real: bool) -> io::Result<Scratch> {
        if !real {
            return Ok(Scratch { path: Path::new("/attache-check").join(name), _parent: None });
        }
        // Scenarios also create directories beside theirs, so the parent is private as well.
        let parent = TempDir::new("attache-check")?;
        let path = parent.path().join(name);
        std::fs::create_dir(&path)?;
        std::fs::write(path.join("notes.txt"), NOTES)?;
        std::fs::write(path.join("old.txt"), "old\n")?;
        Ok(Scratch { path, _parent: Some(parent) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
