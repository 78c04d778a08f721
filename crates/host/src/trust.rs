//! Trust of a project: whether its own files may take effect.
//!
//! A cloned repository can bring settings, slash commands, instructions and skills. They take
//! effect only after the user trusted the folder. Trust is bound to the content of these files:
//! after a change the user is asked again, about the files that changed.
//!
//! The files are found by [`ProjectFiles::scan`]; a program that knows of more (files that its
//! settings name) adds them. Answers are kept in one file of the user, by the real path of the
//! project.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::bounded::{FinalLink, read_bounded};
use crate::time::timestamp;

/// The name of a project's settings.
pub const SETTINGS: &str = ".attache.toml";
/// The directory of a project's slash commands.
pub const COMMANDS: &str = ".attache/commands";
/// The directories of a project's skills. Each skill is a folder with a [`SKILL`].
pub const SKILLS: [&str; 2] = [".agents/skills", ".claude/skills"];
/// The file that describes a skill.
pub const SKILL: &str = "SKILL.md";
/// The names of a project's instructions, the preferred first.
pub const INSTRUCTIONS: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];

/// The largest file that takes effect.
pub const LARGEST_FILE: usize = 1 << 20;
/// Files of a project that are looked at. More of them are not trusted.
const MOST_FILES: usize = 500;

/// The purpose of a project's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FileKind {
    /// Settings of this program.
    Settings,
    /// A file that the settings name: a policy, a program, a server.
    Named,
    /// A slash command.
    Command,
    /// Instructions for agents.
    Instructions,
    /// Instructions for agents about a certain task.
    Skill,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileKind::Settings => "settings",
            FileKind::Named => "named by the settings",
            FileKind::Command => "slash command",
            FileKind::Instructions => "instructions for agents",
            FileKind::Skill => "skill",
        })
    }
}

/// A file of a project that takes effect once the project is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    /// Its path.
    pub path: PathBuf,
    /// Its purpose.
    pub kind: FileKind,
    /// SHA-256 of its content, in hexadecimal digits; empty if it cannot be read.
    digest: String,
}

/// The files of a project that take effect once it is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectFiles {
    root: PathBuf,
    files: Vec<ProjectFile>,
}

impl ProjectFiles {
    /// Finds the files for work in `cwd`: the nearest settings, the slash commands of the
    /// directory, instructions from the repository's root down, and skills from the directory up to
    /// that root.
    pub fn scan(cwd: &Path) -> Self {
        let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        let mut found = ProjectFiles { root: project_root(&cwd).to_owned(), files: Vec::new() };
        let root = found.root.clone();
        let dirs: Vec<&Path> = cwd.ancestors().take_while(|dir| dir.starts_with(&root)).collect();
        if let Some(settings) = dirs.iter().map(|dir| dir.join(SETTINGS)).find(|path| exists(path)) {
            found.add(settings, FileKind::Settings);
        }
        for path in command_files(&cwd.join(COMMANDS), &root) {
            found.add(path, FileKind::Command);
        }
        for dir in dirs.iter().rev() {
            for path in INSTRUCTIONS.map(|name| dir.join(name)).into_iter().filter(|path| exists(path)) {
                found.add(path, FileKind::Instructions);
            }
        }
        for dir in dirs.iter().flat_map(|dir| SKILLS.map(|name| dir.join(name))) {
            for path in skill_files(&dir, &root) {
                found.add(path, FileKind::Skill);
            }
        }
        found
    }

    /// Adds a file.
    pub fn add(&mut self, path: PathBuf, kind: FileKind) {
        if self.files.len() < MOST_FILES && self.files.iter().all(|file| file.path != path) {
            let digest = digest(&path);
            self.files.push(ProjectFile { path, kind, digest });
        }
    }

    /// The directory that is trusted: the repository, or the working directory outside of one. Free
    /// of links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The files, in the order in which they were found.
    pub fn files(&self) -> &[ProjectFile] {
        &self.files
    }

    /// Whether the project has nothing that would take effect.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// A path for people, relative to the project.
    pub fn short<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

/// The root of the repository that a directory is in, or the directory itself.
pub fn project_root(dir: &Path) -> &Path {
    dir.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(dir)
}

/// The files of slash commands in a directory. Links that lead out of `root` are left out, the
/// directory itself included.
pub fn command_files(dir: &Path, root: &Path) -> Vec<PathBuf> {
    files_in(dir, root, |entry| entry.extension().is_some_and(|extension| extension == "md").then_some(entry))
}

/// The `SKILL.md` files in the folders of a directory. Links that lead out of `root` are left out,
/// the directory itself included.
pub fn skill_files(dir: &Path, root: &Path) -> Vec<PathBuf> {
    files_in(dir, root, |entry| Some(entry.join(SKILL)))
}

/// The files that `file` returns for the entries of a directory, if they are files inside `root`.
fn files_in(dir: &Path, root: &Path, file: impl Fn(PathBuf) -> Option<PathBuf>) -> Vec<PathBuf> {
    let is_inside = |path: &Path| path.canonicalize().is_ok_and(|real| real.starts_with(root));
    if !is_inside(dir) {
        return Vec::new();
    }
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().take(4 * MOST_FILES);
    let found = entries.filter_map(|entry| file(entry.path()));
    let mut paths: Vec<PathBuf> = found.filter(|path| path.is_file() && is_inside(path)).collect();
    paths.sort();
    paths.truncate(MOST_FILES);
    paths
}

/// Also true for a dangling link: it may lead somewhere tomorrow.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn digest(path: &Path) -> String {
    let Ok(read) = read_bounded(path, LARGEST_FILE, FinalLink::Follow) else { return String::new() };
    let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
    hash.update(&read.bytes);
    if read.truncated {
        // A program can be larger than what is read here; then its size and time stand for the
        // rest.
        let meta = path.metadata().ok();
        let time = meta.as_ref().and_then(|meta| meta.modified().ok());
        hash.update(format!("{:?} {time:?}", meta.map(|meta| meta.len())).as_bytes());
    }
    hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The answer to whether a project is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The project has no files that would take effect.
    Nothing,
    /// Every file is trusted as it is.
    Trusted,
    /// The user decided not to trust these files as they are.
    Declined,
    /// The user was not asked, or these files are new or changed since.
    Unknown(Vec<ProjectFile>),
}

impl Trust {
    /// Whether the project's files may take effect.
    pub fn is_trusted(&self) -> bool {
        matches!(self, Trust::Nothing | Trust::Trusted)
    }
}

/// An answer about a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustEntry {
    /// The project, free of links.
    pub path: PathBuf,
    /// Whether it is trusted.
    pub trusted: bool,
    /// When the user answered, as RFC 3339.
    #[serde(default)]
    pub since: String,
    /// Digests of the files, by path.
    #[serde(default)]
    files: BTreeMap<PathBuf, String>,
}

impl TrustEntry {
    /// The files that the answer covers.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Stored {
    #[serde(default)]
    projects: Vec<TrustEntry>,
}

/// The user's answers about projects, in a file that other processes may use at the same time.
#[derive(Clone, Debug)]
pub struct TrustStore {
    file: PathBuf,
}

impl TrustStore {
    /// The answers that are kept in `state_dir`.
    pub fn new(state_dir: &Path) -> Self {
        TrustStore { file: state_dir.join("trust.json") }
    }

    /// Whether a project is trusted. A store that cannot be read trusts nothing.
    pub fn status(&self, project: &ProjectFiles) -> Trust {
        if project.is_empty() {
            return Trust::Nothing;
        }
        let stored = self.read().unwrap_or_default();
        let entry = stored.projects.iter().find(|entry| entry.path == project.root);
        let is_same = |file: &&ProjectFile| {
            let known = entry.and_then(|entry| entry.files.get(&file.path));
            known.is_some_and(|known| *known == file.digest && !known.is_empty())
        };
        let changed: Vec<ProjectFile> = project.files.iter().filter(|file| !is_same(file)).cloned().collect();
        match entry {
            Some(entry) if changed.is_empty() && entry.trusted => Trust::Trusted,
            Some(_) if changed.is_empty() => Trust::Declined,
            _ => Trust::Unknown(changed),
        }
    }

    /// Keeps the user's answer about the files of a project as they are now. Files that an earlier
    /// answer of the same kind covers stay covered.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn set(&self, project: &ProjectFiles, trusted: bool) -> io::Result<()> {
        self.change(|projects| {
            let before = projects.iter().position(|entry| entry.path == project.root);
            let before = before.map(|at| projects.remove(at)).filter(|entry| entry.trusted == trusted);
            let mut files = before.map(|entry| entry.files).unwrap_or_default();
            files.extend(project.files.iter().map(|file| (file.path.clone(), file.digest.clone())));
            let since = timestamp(SystemTime::now());
            projects.push(TrustEntry { path: project.root.clone(), trusted, since, files });
        })
    }

    /// Forgets the answer about a project. Returns whether there was one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn remove(&self, root: &Path) -> io::Result<bool> {
        self.change(|projects| {
            let before = projects.len();
            projects.retain(|entry| entry.path != root);
            projects.len() != before
        })
    }

    /// All answers, by path.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn list(&self) -> io::Result<Vec<TrustEntry>> {
        let mut projects = self.read()?.projects;
        projects.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(projects)
    }

    fn read(&self) -> io::Result<Stored> {
        match fs::read_to_string(&self.file) {
            Ok(text) => Ok(serde_json::from_str(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Stored::default()),
            Err(error) => Err(error),
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<TrustEntry>) -> T) -> io::Result<T> {
        if let Some(dir) = self.file.parent() {
            fs::create_dir_all(dir)?;
        }
        let _lock = self.lock()?;
        let mut stored = self.read()?;
        let result = change(&mut stored.projects);
        let new = self.file.with_extension("new");
        {
            let mut file =
                crate::policy::private_file(File::options().write(true).create(true).truncate(true))
                    .open(&new)?;
            io::Write::write_all(&mut file, serde_json::to_string_pretty(&stored)?.as_bytes())?;
            file.sync_all()?;
        }
        fs::rename(&new, &self.file)?;
        Ok(result)
    }

    fn lock(&self) -> io::Result<File> {
        let lock = crate::policy::private_file(File::options().write(true).create(true).truncate(false))
            .open(self.file.with_extension("lock"))?;
        #[cfg(unix)]
        crate::sys::lock(&lock)?;
        Ok(lock)
    }
}
