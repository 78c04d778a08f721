//! Temporary files that a killed process left beside the files that it was about to replace.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use attache_host::files::Jail;

use super::{Entry, Log, Mark};

impl Log {
    /// Removes the temporary files of the last turn, if it was interrupted. The files themselves
    /// are whole, because each is replaced atomically. A temporary file that cannot be removed does
    /// no harm.
    pub fn remove_temp_files(&self) {
        let mut directories: BTreeSet<&Path> = BTreeSet::new();
        let mut interrupted = false;
        for logged in self.iter() {
            match &logged.entry {
                Entry::Mark(mark) => interrupted = *mark == Mark::Began,
                // Earlier turns count too: /undo writes to the files that they changed.
                Entry::Change(change) => directories.extend(change.path.parent()),
                _ => {}
            }
        }
        if interrupted {
            directories.into_iter().for_each(clean);
        }
    }
}

fn clean(directory: &Path) {
    // The directory may be a link to another one by now.
    let jail = Jail::without_links();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let writer = name.to_str().and_then(writer);
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && writer.is_some_and(|pid| !is_running(pid)) {
            let _ = jail.remove(&entry.path());
        }
    }
}

/// The process that wrote a temporary file: `.attache-PID-….tmp`.
fn writer(name: &str) -> Option<u32> {
    let (pid, _) = name.strip_prefix(".attache-")?.strip_suffix(".tmp")?.split_once('-')?;
    pid.parse().ok()
}

/// Whether a process exists; true without `/proc`.
fn is_running(pid: u32) -> bool {
    !Path::new("/proc/self").exists() || Path::new(&format!("/proc/{pid}")).exists()
}

#[cfg(test)]
mod tests {
    use super::{is_running, writer};

    #[test]
    fn only_our_temporary_files_match() {
        assert_eq!(writer(".attache-12-3.tmp"), Some(12));
        assert_eq!(writer(".attache-12-undo3.tmp"), Some(12));
        for other in ["attache-12-3.tmp", ".attache-12.tmp", ".attache-x-3.tmp", ".attache-12-3", ".tmp"] {
            assert_eq!(writer(other), None, "{other}");
        }
        assert!(is_running(std::process::id()));
    }
}
