//! What a process that was killed in the middle of a write left beside the file that it was about to replace.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use attache_host::files::Jail;

use super::{Entry, Log, Mark};

impl Log {
    /// Removes what the last turn of a session left behind, if it broke off. The files themselves are whole: each is replaced in
    /// one step, by a file that was written beside it. What cannot be removed stays; it is in nobody's way.
    pub fn sweep(&self) {
        let mut directories: BTreeSet<&Path> = BTreeSet::new();
        let mut broken_off = false;
        for logged in self.iter() {
            match &logged.entry {
                Entry::Mark(mark) => broken_off = *mark == Mark::Began,
                // Of earlier turns too: /undo writes to the files that they changed.
                Entry::Change(change) => directories.extend(change.path.parent()),
                _ => {}
            }
        }
        if broken_off {
            directories.into_iter().for_each(sweep);
        }
    }
}

fn sweep(directory: &Path) {
    // The directory may be a link to another one by now.
    let jail = Jail::without_links();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let writer = name.to_str().and_then(writer);
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && writer.is_some_and(|pid| !runs(pid)) {
            let _ = jail.remove(&entry.path());
        }
    }
}

/// The process that made a file of this name to put it in the place of another: `.attache-PID-….tmp`.
fn writer(name: &str) -> Option<u32> {
    let (pid, _) = name.strip_prefix(".attache-")?.strip_suffix(".tmp")?.split_once('-')?;
    pid.parse().ok()
}

/// Whether a process is there; said of all where it cannot be seen.
fn runs(pid: u32) -> bool {
    !Path::new("/proc/self").exists() || Path::new(&format!("/proc/{pid}")).exists()
}

#[cfg(test)]
mod tests {
    use super::{runs, writer};

    #[test]
    fn only_files_of_ours_are_known() {
        assert_eq!(writer(".attache-12-3.tmp"), Some(12));
        assert_eq!(writer(".attache-12-undo3.tmp"), Some(12));
        for other in ["attache-12-3.tmp", ".attache-12.tmp", ".attache-x-3.tmp", ".attache-12-3", ".tmp"] {
            assert_eq!(writer(other), None, "{other}");
        }
        assert!(runs(std::process::id()));
    }
}
