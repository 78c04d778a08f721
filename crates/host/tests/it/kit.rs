//! Directories that go away, and processes that can be found again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) use attache_testkit::processes::{Mark, until};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory of its own for a test.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        let name = format!("attache-host-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = fs::canonicalize(std::env::temp_dir()).unwrap().join(name);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Makes a directory in it.
    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        let path = self.join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Makes a file in it, with its directories.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) -> PathBuf {
        let path = self.join(name);
        std::os::unix::fs::symlink(target, &path).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A permission request, from its JSON; the options are the four usual ones.
pub(crate) fn permission(tool_call: serde_json::Value) -> attache::wire::v1::RequestPermissionRequest {
    permission_with(tool_call, &["allow_once", "allow_always", "reject_once", "reject_always"])
}

/// The same with options of these kinds, which are named like them.
pub(crate) fn permission_with(
    mut tool_call: serde_json::Value,
    kinds: &[&str],
) -> attache::wire::v1::RequestPermissionRequest {
    tool_call["toolCallId"] = "c1".into();
    let options: Vec<_> = kinds
        .iter()
        .map(|kind| serde_json::json!({ "optionId": kind, "name": kind, "kind": kind }))
        .collect();
    let request = serde_json::json!({ "sessionId": "s1", "toolCall": tool_call, "options": options });
    serde_json::from_value(request).unwrap()
}
