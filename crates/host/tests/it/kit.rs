//! Directories that go away, processes that can be found again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

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

/// A value in the environment of a process, which all its descendants inherit.
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) const NAME: &str = "ATTACHE_HOST_TEST_MARK";

    pub(crate) fn new() -> Self {
        Mark(format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    pub(crate) fn value(&self) -> &str {
        &self.0
    }

    /// The living processes that carry the mark.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let wanted = format!("{}={}", Self::NAME, self.0);
        let carries = |pid: &u32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|&b| b == 0).any(|var| var == wanted.as_bytes())
        };
        pids().filter(carries).collect()
    }

    pub(crate) fn assert_none(&self) {
        let left = self.alive();
        assert!(left.is_empty(), "left behind: {left:?}");
    }

    /// For ends that nothing in this process can wait for.
    pub(crate) fn await_none(&self) {
        until(&format!("no process with mark {}", self.0), || self.alive().is_empty());
    }
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Looks again and again, for some condition that the kernel does not tell us of, and gives up after a minute.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if condition() {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    panic!("still waiting for: {what}");
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
