//! A directory per scenario.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::stage::NOTES;

/// A directory with a few files in it, removed with this value; or only the name of one.
pub(super) struct Scratch {
    path: PathBuf,
    real: bool,
}

impl Scratch {
    pub(super) fn new(name: &str, real: bool) -> io::Result<Scratch> {
        if !real {
            return Ok(Scratch { path: Path::new("/attache-check").join(name), real });
        }
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Agents compare paths after resolving links, so the directory must be named as it is.
        let base = std::env::temp_dir().canonicalize()?;
        let path = base.join(format!("attache-check-{}-{number}-{name}", std::process::id()));
        std::fs::create_dir(&path)?;
        let scratch = Scratch { path, real };
        std::fs::write(scratch.path.join("notes.txt"), NOTES)?;
        std::fs::write(scratch.path.join("old.txt"), "old\n")?;
        Ok(scratch)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.real {
            // What cannot be removed stays in the system's own place for such things.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
