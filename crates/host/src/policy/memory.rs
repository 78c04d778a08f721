//! What was answered with "always", per project.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use attache::wire::v1::ToolKind;
use serde_json::{Value, json};

use super::Action;
use super::audit::timestamp;

/// What an "always" is about. PERM-14: what the option means beyond this run is the agent's business; this is what
/// we make of it when the agent asks again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// Every action of this kind on files of the project.
    Files(ToolKind),
    /// Just this command.
    Command(String),
    /// Fetching from this host.
    Host(String),
    /// This tool.
    Tool(String),
    /// Something with just this title, of this kind.
    Title(Option<ToolKind>, String),
}

impl Subject {
    /// What an answer to this would be remembered as.
    pub(super) fn of(action: &Action) -> Option<Self> {
        match action.kind {
            Some(kind @ (ToolKind::Read | ToolKind::Search | ToolKind::Edit))
                if action.commands.is_empty() =>
            {
                return Some(Subject::Files(kind));
            }
            Some(ToolKind::Execute) => {
                if let [command] = action.commands.as_slice() {
                    return command.is_plain().then(|| Subject::Command(command.text().trim().to_owned()));
                }
            }
            Some(ToolKind::Fetch) => match action.hosts.as_slice() {
                [host] if !host.is_empty() => return Some(Subject::Host(host.clone())),
                _ => {}
            },
            _ => {
                if let Some(tool) = &action.tool {
                    return Some(Subject::Tool(tool.clone()));
                }
            }
        }
        action.title.clone().map(|title| Subject::Title(action.kind, title))
    }

    fn fits(&self, action: &Action, roots: &[PathBuf]) -> bool {
        match self {
            Subject::Files(kind) => {
                action.kind == Some(*kind) && action.commands.is_empty() && action.is_inside(roots)
            }
            _ => Subject::of(action).as_ref() == Some(self),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Subject::Files(kind) => json!({ "files": kind.as_str() }),
            Subject::Command(command) => json!({ "command": command }),
            Subject::Host(host) => json!({ "host": host }),
            Subject::Tool(tool) => json!({ "tool": tool }),
            Subject::Title(None, title) => json!({ "title": title }),
            Subject::Title(Some(kind), title) => json!({ "title": title, "kind": kind.as_str() }),
        }
    }

    fn from_json(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let kind = |name: &str| serde_json::from_value::<ToolKind>(value.get(name)?.clone()).ok();
        None.or_else(|| kind("files").map(Subject::Files))
            .or_else(|| text("command").map(Subject::Command))
            .or_else(|| text("host").map(Subject::Host))
            .or_else(|| text("tool").map(Subject::Tool))
            .or_else(|| text("title").map(|title| Subject::Title(kind("kind"), title)))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Files(ToolKind::Read) => f.write_str("reading files of this project"),
            Subject::Files(ToolKind::Search) => f.write_str("searching in this project"),
            Subject::Files(ToolKind::Edit) => f.write_str("editing files of this project"),
            Subject::Files(kind) => write!(f, "{} on files of this project", kind.as_str()),
            Subject::Command(command) => write!(f, "the command `{command}`"),
            Subject::Host(host) => write!(f, "fetching from {host}"),
            Subject::Tool(tool) => write!(f, "the tool `{tool}`"),
            Subject::Title(_, title) => write!(f, "\"{title}\""),
        }
    }
}

/// One remembered answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// Names it within its project, to revoke it.
    pub id: u64,
    /// The agent that asked.
    pub agent: String,
    /// Whether it was allowed.
    pub allow: bool,
    /// What it is about.
    pub subject: Subject,
    /// When it was said, as RFC 3339.
    pub since: String,
}

/// Remembers "always" for one project, in a file that other processes may use at the same time.
#[derive(Debug, Default)]
pub struct Memory {
    file: Option<Place>,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Place {
    path: PathBuf,
    project: PathBuf,
}

#[derive(Debug, Default)]
struct Known {
    entries: Vec<Remembered>,
    /// What the file looked like when it was read.
    seen: Option<(SystemTime, u64)>,
}

impl Memory {
    /// Remembers only as long as it lives.
    pub fn transient() -> Self {
        Memory::default()
    }

    /// What is remembered for the project in `dir`, in a file below `state_dir`.
    ///
    /// # Errors
    /// When there is such a file and it cannot be read.
    pub fn open(state_dir: &Path, dir: &Path) -> io::Result<Self> {
        let project = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        let name = format!("{:016x}.json", fingerprint(&project));
        let path = state_dir.join("permissions").join(name);
        let memory = Memory { file: Some(Place { path, project }), known: Mutex::default() };
        memory.refresh(&mut memory.lock())?;
        Ok(memory)
    }

    /// The projects for which something is remembered.
    pub fn projects(state_dir: &Path) -> Vec<PathBuf> {
        let project = |entry: io::Result<fs::DirEntry>| {
            let text = fs::read_to_string(entry.ok()?.path()).ok()?;
            let value: Value = serde_json::from_str(&text).ok()?;
            value.get("remembered")?.as_array().filter(|entries| !entries.is_empty())?;
            value.get("project")?.as_str().map(PathBuf::from)
        };
        let entries = fs::read_dir(state_dir.join("permissions"));
        let mut projects: Vec<PathBuf> = entries.into_iter().flatten().filter_map(project).collect();
        projects.sort();
        projects
    }

    /// All that is remembered, the oldest first.
    pub fn list(&self) -> Vec<Remembered> {
        let mut known = self.lock();
        let _ = self.refresh(&mut known);
        known.entries.clone()
    }

    /// Forgets one answer; says whether there was one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn revoke(&self, id: u64) -> io::Result<bool> {
        self.change(|entries| {
            let before = entries.len();
            entries.retain(|entry| entry.id != id);
            entries.len() != before
        })
    }

    /// Forgets everything about this project.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn clear(&self) -> io::Result<()> {
        self.change(Vec::clear)
    }

    pub(super) fn remember(&self, agent: &str, allow: bool, subject: Subject) -> io::Result<()> {
        self.change(|entries| {
            // The latest word counts.
            entries.retain(|entry| entry.agent != agent || entry.subject != subject);
            let id = entries.iter().map(|entry| entry.id).max().unwrap_or(0) + 1;
            entries.push(Remembered {
                id,
                agent: agent.to_owned(),
                allow,
                subject,
                since: timestamp(SystemTime::now()),
            });
        })
    }

    /// What was said about this. A "never" counts more than an "always".
    pub(super) fn recall(&self, agent: &str, action: &Action, roots: &[PathBuf]) -> Option<(bool, Subject)> {
        let mut known = self.lock();
        // A file that cannot be read remembers nothing, so that everything is asked.
        if self.refresh(&mut known).is_err() {
            return None;
        }
        let fitting =
            known.entries.iter().filter(|entry| entry.agent == agent && entry.subject.fits(action, roots));
        fitting.min_by_key(|entry| entry.allow).map(|entry| (entry.allow, entry.subject.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file again if it has changed, so that what is revoked elsewhere does not count any more.
    fn refresh(&self, known: &mut Known) -> io::Result<()> {
        let Some(place) = &self.file else { return Ok(()) };
        let seen = match fs::metadata(&place.path) {
            Ok(meta) => Some((meta.modified()?, meta.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if seen.is_none() {
            *known = Known::default();
        } else if seen != known.seen {
            known.entries = place.read()?;
            known.seen = seen;
        }
        Ok(())
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Remembered>) -> T) -> io::Result<T> {
        let mut known = self.lock();
        let Some(place) = &self.file else { return Ok(change(&mut known.entries)) };
        let _others_wait = place.exclusively()?;
        known.entries = place.read()?;
        let result = change(&mut known.entries);
        place.write(&known.entries)?;
        known.seen = None;
        Ok(result)
    }
}

impl Place {
    fn exclusively(&self) -> io::Result<File> {
        if let Some(dir) = self.path.parent() {
            fs::create_dir_all(dir)?;
        }
        let lock = private(File::options().write(true).create(true).truncate(false))
            .open(self.path.with_extension("lock"))?;
        #[cfg(unix)]
        crate::sys::lock(&lock)?;
        Ok(lock)
    }

    fn read(&self) -> io::Result<Vec<Remembered>> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let value: Value = serde_json::from_str(&text)?;
        // Two projects may have the same fingerprint, though hardly by accident.
        if value.get("project").and_then(Value::as_str) != self.project.to_str() {
            return Err(io::Error::other("the file belongs to another project"));
        }
        let entries = value.get("remembered").and_then(Value::as_array);
        Ok(entries.into_iter().flatten().filter_map(read_entry).collect())
    }

    fn write(&self, entries: &[Remembered]) -> io::Result<()> {
        let entries: Vec<Value> = entries
            .iter()
            .map(|entry| {
                let mut value = json!({ "id": entry.id, "agent": entry.agent, "allow": entry.allow, "since": entry.since });
                value["subject"] = entry.subject.to_json();
                value
            })
            .collect();
        let value = json!({ "project": self.project.to_str(), "remembered": entries });
        let new = self.path.with_extension("new");
        let mut file = private(File::options().write(true).create(true).truncate(true)).open(&new)?;
        file.write_all(serde_json::to_string_pretty(&value)?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)
    }
}

fn read_entry(value: &Value) -> Option<Remembered> {
    Some(Remembered {
        id: value.get("id")?.as_u64()?,
        agent: value.get("agent")?.as_str()?.to_owned(),
        allow: value.get("allow")?.as_bool()?,
        subject: Subject::from_json(value.get("subject")?)?,
        since: value.get("since").and_then(Value::as_str).unwrap_or_default().to_owned(),
    })
}

/// For nobody's eyes but the user's.
pub(super) fn private(options: &mut fs::OpenOptions) -> &mut fs::OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// The same in every version of this program, unlike the hashes of the standard library (this is FNV-1a).
fn fingerprint(path: &Path) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step)
}
