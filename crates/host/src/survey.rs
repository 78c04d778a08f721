//! Finds the protected files that a command has created or changed, at any depth, and puts them
//! back.
//!
//! A sandbox keeps the protected files directly below a root from a change. It cannot know which
//! ones a command will create, and read-only mounts deep inside a project would break commands that
//! move or remove directories. Those are found afterwards.

use std::collections::BTreeMap;
use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::bounded::{FinalLink, read_bounded};
use crate::files::Jail;
use crate::policy::protected;

/// Bounds of a survey. What lies beyond them is not watched.
const ENTRIES: usize = 100_000;
/// How many times as many entries are looked at after the command, which may create files to hide
/// others among them.
const MORE_AFTER: usize = 20;
const DEPTH: usize = 24;
/// Bytes of one file that are kept to put it back, and of all of them.
const FILE_BYTES: usize = 256 << 10;
const TOTAL_BYTES: usize = 8 << 20;

/// Directories of installed packages and build results. They hold projects of others, and too many
/// files.
const SKIPPED: &[&str] = &["__pycache__", "node_modules", "target", ".venv", "venv"];

/// The protected files below some directories at one time.
#[derive(Debug)]
pub struct Survey {
    roots: Vec<PathBuf>,
    /// How deep it looked. A project with too many files is only looked at directly below its
    /// roots.
    depth: usize,
    found: BTreeMap<PathBuf, State>,
    /// Directories that could not be read.
    unreadable: Vec<PathBuf>,
    entries: usize,
    most_entries: usize,
    bytes: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Directory,
    Link(PathBuf),
    File {
        /// `None` if it is too large to be kept.
        content: Option<Vec<u8>>,
        mode: u32,
        /// Size and time of the last change of any kind, which a command cannot set, for a file
        /// that is not kept.
        stamp: Option<(u64, i64, i64)>,
    },
    Other,
}

/// One file of [`Changes`].
#[derive(Debug)]
pub struct FileChange {
    /// Its path.
    pub path: PathBuf,
    /// Its text before; `None` if it did not exist, or is not a text that was kept.
    pub old: Option<String>,
    /// Its text now, in the same way.
    pub new: Option<String>,
}

/// What a command did to protected files.
#[derive(Debug)]
pub struct Changes {
    before: Survey,
    after: Survey,
    /// Created or changed; a created directory stands for what is in it.
    written: Vec<PathBuf>,
    removed: Vec<PathBuf>,
}

impl Survey {
    /// Looks at everything below `roots`, which are real paths. Links are not followed.
    pub fn take(roots: &[PathBuf]) -> Survey {
        Survey::within(roots, ENTRIES)
    }

    fn within(roots: &[PathBuf], most_entries: usize) -> Survey {
        let survey = Survey::walk(roots, DEPTH, most_entries);
        if survey.is_too_much() { Survey::shallow(roots) } else { survey }
    }

    fn shallow(roots: &[PathBuf]) -> Survey {
        Survey::walk(roots, 0, usize::MAX)
    }

    fn walk(roots: &[PathBuf], depth: usize, most_entries: usize) -> Survey {
        let mut survey = Survey {
            roots: roots.to_vec(),
            depth,
            found: BTreeMap::new(),
            unreadable: Vec::new(),
            entries: 0,
            most_entries,
            bytes: 0,
        };
        for root in roots {
            survey.directory(root, 0);
        }
        survey
    }

    /// Looks again, and compares.
    pub fn changes(self) -> Changes {
        let most_entries = self.most_entries.saturating_mul(MORE_AFTER);
        let mut now = Survey::walk(&self.roots, self.depth, most_entries);
        if now.is_too_much() {
            // The first level is always complete.
            now.found.extend(Survey::shallow(&self.roots).found);
        }
        let is_new = |path: &Path| now.found.contains_key(path) && !self.found.contains_key(path);
        let differs = |(path, state): &(&PathBuf, &State)| self.found.get(*path) != Some(*state);
        let written = now.found.iter().filter(differs).map(|(path, _)| path);
        let written = written.filter(|path| !path.ancestors().skip(1).any(is_new)).cloned().collect();
        let is_gone = |path: &Path| self.found.contains_key(path) && path.symlink_metadata().is_err();
        let removed = self.found.keys().filter(|path| is_gone(path));
        let removed = removed.filter(|path| !path.ancestors().skip(1).any(is_gone)).cloned().collect();
        Changes { written, removed, after: now, before: self }
    }

    fn text(&self, path: &Path) -> Option<String> {
        match self.found.get(path)? {
            State::File { content: Some(content), .. } => String::from_utf8(content.clone()).ok(),
            _ => None,
        }
    }

    fn directory(&mut self, dir: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(dir) else {
            self.unreadable.push(dir.to_owned());
            return;
        };
        for entry in entries.flatten() {
            self.entries += 1;
            if self.is_too_much() {
                return;
            }
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            let name = entry.file_name().to_string_lossy().to_ascii_lowercase();
            self.record_all(protected::parts(&path, kind.is_dir()), 0);
            if name == ".git" && kind.is_dir() {
                self.repositories(&path, 0);
            } else if depth < self.depth
                && kind.is_dir()
                && !protected::is_protected(Path::new(&name))
                && !SKIPPED.contains(&name.as_str())
            {
                self.directory(&path, depth + 1);
            }
        }
    }

    /// Whether there are more entries than are looked at.
    fn is_too_much(&self) -> bool {
        self.entries > self.most_entries
    }

    /// The repositories inside of another one: submodules and worktrees.
    fn repositories(&mut self, git: &Path, depth: usize) {
        for group in ["modules", "worktrees"] {
            self.repositories_below(&git.join(group), depth + 1);
        }
    }

    fn repositories_below(&mut self, dir: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(dir) else { return };
        for entry in entries.flatten() {
            self.entries += 1;
            if self.is_too_much() || depth > DEPTH {
                return;
            }
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            if path.join("HEAD").symlink_metadata().is_ok() {
                self.record_all(protected::git_parts(&path), depth + 1);
                self.repositories(&path, depth + 1);
            } else {
                // The name of a submodule may contain slashes.
                self.repositories_below(&path, depth + 1);
            }
        }
    }

    /// Records those of the paths that exist.
    fn record_all(&mut self, paths: Vec<PathBuf>, depth: usize) {
        for path in paths {
            if let Ok(found) = path.symlink_metadata() {
                self.record(path, found.file_type(), depth);
            }
        }
    }

    /// Records a path and everything below it.
    fn record(&mut self, path: PathBuf, kind: FileType, depth: usize) {
        self.entries += 1;
        if self.is_too_much() || depth > DEPTH {
            return;
        }
        let state = if kind.is_dir() {
            for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
                if let Ok(kind) = entry.file_type() {
                    self.record(entry.path(), kind, depth + 1);
                }
            }
            State::Directory
        } else if kind.is_symlink() {
            State::Link(fs::read_link(&path).unwrap_or_default())
        } else if kind.is_file() {
            self.file(&path)
        } else {
            State::Other
        };
        self.found.insert(path, state);
    }

    fn file(&mut self, path: &Path) -> State {
        let Ok(found) = path.symlink_metadata() else { return State::Other };
        let room = TOTAL_BYTES.saturating_sub(self.bytes).min(FILE_BYTES);
        let content = match usize::try_from(found.len()).is_ok_and(|size| size <= room) {
            true => read_bounded(path, room, FinalLink::Refuse).ok().filter(|read| !read.truncated),
            false => None,
        };
        let content = content.map(|read| read.bytes);
        self.bytes += content.as_ref().map_or(0, Vec::len);
        let stamp = match content {
            Some(_) => None,
            None => Some((found.len(), found.ctime(), found.ctime_nsec())),
        };
        State::File { content, mode: found.mode() & 0o777, stamp }
    }
}

impl Changes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty() && self.removed.is_empty()
    }

    /// The paths.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.written.iter().chain(&self.removed).map(PathBuf::as_path)
    }

    /// The files that are new, differ or are gone, also those in directories.
    pub fn files(&self) -> Vec<FileChange> {
        let files = |survey: &Survey, roots: &[PathBuf]| -> Vec<PathBuf> {
            let is_below = |path: &Path| roots.iter().any(|root| path.starts_with(root));
            let found =
                survey.found.iter().filter(|(path, state)| **state != State::Directory && is_below(path));
            found.map(|(path, _)| path.clone()).collect()
        };
        let mut paths = files(&self.after, &self.written);
        paths.extend(files(&self.before, &self.removed));
        let change = |path: PathBuf| {
            let (old, new) = (self.before.text(&path), self.after.text(&path));
            FileChange { path, old, new }
        };
        paths.into_iter().map(change).collect()
    }

    /// Makes everything what it was.
    ///
    /// # Errors
    /// What could not be made what it was, and why, in one line.
    pub fn take_back(&self) -> Result<(), String> {
        let failed = |path: &PathBuf, why: io::Error| format!("{}: {why}", path.display());
        let written = self.written.iter().filter_map(|path| Some(failed(path, self.restore(path).err()?)));
        let mut problems: Vec<String> = written.collect();
        for root in &self.removed {
            let below =
                self.before.found.range(root.clone()..).take_while(|(path, _)| path.starts_with(root));
            let paths = below.filter(|(_, state)| **state != State::Directory).map(|(path, _)| path);
            problems.extend(paths.filter_map(|path| Some(failed(path, self.restore(path).err()?))));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }

    fn restore(&self, path: &Path) -> io::Result<()> {
        let jail = Jail::without_links();
        match self.before.found.get(path) {
            None if self.before.unreadable.iter().any(|dir| path.starts_with(dir)) => {
                Err(io::Error::other("it could not be read before"))
            }
            // What seems new may have been moved here, with more in it than was recorded.
            None if !self.removed.is_empty() => set_aside(path),
            None => remove(&jail, path),
            Some(State::File { content: Some(content), mode, .. }) => {
                if path.symlink_metadata().is_ok_and(|now| !now.is_file()) {
                    set_aside(path)?;
                }
                jail.restore(path, content, *mode).map_err(io::Error::other)
            }
            Some(State::Link(target)) => {
                if path.symlink_metadata().is_ok() {
                    set_aside(path)?;
                }
                std::os::unix::fs::symlink(target, path)
            }
            Some(_) => Err(io::Error::other("its former content is not known")),
        }
    }
}

/// Gives a path a name that is not protected.
fn set_aside(path: &Path) -> io::Result<()> {
    check_parent(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let names = (1..100).map(|number| path.with_file_name(format!("rejected-{number}-{name}")));
    let mut free = names.filter(|other| other.symlink_metadata().is_err());
    fs::rename(path, free.next().ok_or_else(|| io::Error::other("there are too many that were set aside"))?)
}

/// Fails if the directory of a path is reached through a link.
fn check_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().unwrap_or(path);
    if parent.canonicalize()? == parent { Ok(()) } else { Err(io::Error::other("the directory is a link")) }
}

/// Removes a path and everything below it. Links are removed and not followed.
fn remove(jail: &Jail, path: &Path) -> io::Result<()> {
    let Ok(found) = path.symlink_metadata() else { return Ok(()) };
    if found.is_dir() {
        for entry in fs::read_dir(path)?.flatten() {
            remove(jail, &entry.path())?;
        }
        return jail.remove_dir(path).map_err(io::Error::other);
    }
    if found.is_file() {
        return jail.remove(path).map_err(io::Error::other);
    }
    check_parent(path)?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use attache_conn::private::TempDir;

    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn changes_at_any_depth_are_found_and_reverted() {
        let dir = TempDir::new("survey").unwrap();
        let root = dir.path().canonicalize().unwrap();
        write(&root, "src/main.rs", "fn main() {}");
        write(&root, "vendor/x/.git/config", "[core]\n");
        write(&root, "vendor/x/.git/HEAD", "ref");
        write(&root, "a/b/AGENTS.md", "be kind");
        write(&root, ".git/modules/group/sub/HEAD", "ref");
        write(&root, ".git/modules/group/sub/config", "[core]\n");
        symlink("main.rs", root.join("src/CLAUDE.md")).unwrap();
        fs::set_permissions(root.join("a/b/AGENTS.md"), fs::Permissions::from_mode(0o640)).unwrap();
        let roots = [root.clone()];
        assert!(Survey::take(&roots).changes().is_empty());
        let before = Survey::take(&roots);

        write(&root, "src/main.rs", "fn main() { changed() }");
        write(&root, "vendor/x/.git/config", "[core]\nfsmonitor = evil\n");
        write(&root, "vendor/x/.git/hooks/post-checkout", "evil");
        write(&root, "vendor/x/.git/index", "ordinary");
        write(&root, "a/b/AGENTS.md", "be evil");
        write(&root, "a/b/c/.vscode/tasks.json", "evil");
        write(&root, "new/.config/systemd/user/x.service", "evil");
        write(&root, ".git/modules/group/sub/config", "evil");
        write(&root, "node_modules/x/AGENTS.md", "of a package");
        fs::remove_file(root.join("src/CLAUDE.md")).unwrap();
        write(&root, "src/CLAUDE.md", "evil");
        let changes = before.changes();
        let expected = [
            ".git/modules/group/sub/config",
            "a/b/AGENTS.md",
            "a/b/c/.vscode",
            "new/.config/systemd",
            "src/CLAUDE.md",
            "vendor/x/.git/config",
            "vendor/x/.git/hooks",
        ];
        let paths: Vec<PathBuf> = changes.paths().map(Path::to_owned).collect();
        assert_eq!(paths, expected.map(|path| root.join(path)));
        let files = changes.files();
        let tasks = files.iter().find(|file| file.path == root.join("a/b/c/.vscode/tasks.json")).unwrap();
        assert_eq!((tasks.old.as_deref(), tasks.new.as_deref()), (None, Some("evil")));
        let agents = files.iter().find(|file| file.path == root.join("a/b/AGENTS.md")).unwrap();
        assert_eq!((agents.old.as_deref(), agents.new.as_deref()), (Some("be kind"), Some("be evil")));
        changes.take_back().unwrap();
        assert_eq!(fs::read_to_string(root.join("a/b/AGENTS.md")).unwrap(), "be kind");
        assert_eq!(fs::metadata(root.join("a/b/AGENTS.md")).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_link(root.join("src/CLAUDE.md")).unwrap(), Path::new("main.rs"));
        assert!(!root.join("vendor/x/.git/hooks").exists() && root.join("vendor/x/.git/index").exists());
    }

    #[test]
    fn nothing_outside_is_touched_through_a_link() {
        let dir = TempDir::new("survey").unwrap();
        let root = dir.path().canonicalize().unwrap();
        write(&root, "outside/.vscode/tasks.json", "of the user");
        fs::create_dir(root.join("project")).unwrap();
        let roots = [root.join("project")];
        let before = Survey::take(&roots);
        // A directory in place of a link, which becomes one before it is put back.
        write(&root, "project/sub/.vscode/tasks.json", "evil");
        let changes = before.changes();
        fs::remove_dir_all(root.join("project/sub")).unwrap();
        symlink("../outside", root.join("project/sub")).unwrap();
        assert_eq!(changes.paths().count(), 1);
        changes.take_back().unwrap_err();
        assert_eq!(fs::read_to_string(root.join("outside/.vscode/tasks.json")).unwrap(), "of the user");
        // A link with a protected name is removed as a link.
        fs::remove_file(root.join("project/sub")).unwrap();
        let before = Survey::take(&roots);
        symlink("../outside", root.join("project/.vscode")).unwrap();
        let changes = before.changes();
        assert_eq!(changes.paths().collect::<Vec<_>>(), [root.join("project/.vscode")]);
        changes.take_back().unwrap();
        assert!(root.join("outside/.vscode/tasks.json").exists() && !root.join("project/.vscode").exists());
    }

    #[test]
    fn nothing_is_hidden_among_many_new_files() {
        let dir = TempDir::new("survey").unwrap();
        let root = dir.path().canonicalize().unwrap();
        let most = 10;
        let before = Survey::within(std::slice::from_ref(&root), most);
        let fill = |dir: &str, count: usize| {
            (0..count).for_each(|number| write(&root, &format!("{dir}/{number}"), ""));
        };
        fill("junk", 5 * most);
        write(&root, "deep/er/.vscode/tasks.json", "evil");
        let changes = before.changes();
        assert_eq!(changes.paths().collect::<Vec<_>>(), [root.join("deep/er/.vscode")]);
        changes.take_back().unwrap();
        // With far more of them at least the first level is complete.
        fs::remove_dir_all(root.join("junk")).unwrap();
        let before = Survey::within(std::slice::from_ref(&root), most);
        fill("junk", 2 * MORE_AFTER * most);
        for name in ["AGENTS.md", ".envrc", ".mcp.json", "CLAUDE.md"] {
            write(&root, name, "evil");
        }
        let changes = before.changes();
        assert_eq!(changes.paths().count(), 4);
    }

    #[test]
    fn a_large_file_is_compared_by_a_time_that_cannot_be_set() {
        let dir = TempDir::new("survey").unwrap();
        let root = dir.path().canonicalize().unwrap();
        write(&root, ".vscode/large", &"x".repeat(FILE_BYTES + 1));
        let path = root.join(".vscode/large");
        let before = Survey::take(std::slice::from_ref(&root));
        let old = fs::metadata(&path).unwrap();
        write(&root, ".vscode/large", &"y".repeat(FILE_BYTES + 1));
        let file = fs::File::options().write(true).open(&path).unwrap();
        // Until the clock of the file system has moved on.
        let times = |found: &fs::Metadata| (found.ctime(), found.ctime_nsec());
        while times(&file.metadata().unwrap()) == times(&old) {
            file.set_modified(old.modified().unwrap()).unwrap();
        }
        file.set_modified(old.modified().unwrap()).unwrap();
        let changes = before.changes();
        assert_eq!(changes.paths().collect::<Vec<_>>(), [path]);
    }

    #[test]
    fn moved_and_removed_files_are_not_lost() {
        let dir = TempDir::new("survey").unwrap();
        let root = dir.path().canonicalize().unwrap();
        write(&root, "a/.vscode/tasks.json", "mine");
        write(&root, "a/.vscode/deep/large", &"x".repeat(FILE_BYTES + 1));
        write(&root, "b/CLAUDE.md", "mine too");
        let before = Survey::take(std::slice::from_ref(&root));
        fs::rename(root.join("a"), root.join("c")).unwrap();
        fs::remove_file(root.join("b/CLAUDE.md")).unwrap();
        let changes = before.changes();
        let paths: Vec<&Path> = changes.paths().collect();
        assert_eq!(paths, ["c/.vscode", "a/.vscode", "b/CLAUDE.md"].map(|path| root.join(path)));
        let problem = changes.take_back().unwrap_err();
        assert!(problem.contains("a/.vscode/deep/large") && !problem.contains("tasks.json"), "{problem}");
        assert_eq!(fs::read_to_string(root.join("a/.vscode/tasks.json")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(root.join("b/CLAUDE.md")).unwrap(), "mine too");
        // It is still there under another name.
        assert!(root.join("c/rejected-1-.vscode/deep/large").exists() && !root.join("c/.vscode").exists());
    }
}
