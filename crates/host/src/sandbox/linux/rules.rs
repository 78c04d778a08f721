//! What Landlock allows a command.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::namespaces::DEVICES;
use super::resolve::{Id, Step, Trail};
use super::roots::Root;
use super::system;
use crate::sandbox::{Confinement, Network, View};
use crate::sys::landlock::{Ruleset, right};

/// Reading a device and writing to it.
const USE_DEVICE: u64 = right::READ_FILE | right::WRITE_FILE | right::IOCTL_DEVICE;

/// Restricts this process inside of namespaces, where everything that is visible may be read. The mounts are the first line;
/// this is the second, and keeps the command from special files and from what other processes have open.
///
/// Does nothing where the kernel has no Landlock.
pub(super) fn restrict_inside(confinement: &Confinement, writable: &[PathBuf]) -> io::Result<()> {
    let Some(mut rules) = Ruleset::new(confinement.network == Network::Off)? else { return Ok(()) };
    allow_path(&mut rules, Path::new("/"), right::READ)?;
    for path in writable {
        allow_path(&mut rules, path, right::ALL)?;
    }
    allow_path(&mut rules, Path::new("/dev"), USE_DEVICE)?;
    allow_standard_streams(&mut rules)?;
    rules.apply()
}

/// Restricts this process where Landlock is the only guard of files. `tmp` is the private temporary directory.
pub(super) fn restrict_alone(confinement: &Confinement, tmp: &Path) -> io::Result<()> {
    // The version with the right to truncate: without it any file could be emptied.
    const LEAST: i64 = 3;
    let has_truncate = crate::sys::landlock::version().is_some_and(|version| version >= LEAST);
    let rules = Ruleset::new(confinement.network != Network::Open)?.filter(|_| has_truncate);
    let mut rules = rules.ok_or_else(|| io::Error::other("this kernel has no Landlock, or too old a version"))?;
    let roots = Root::all(confinement)?;
    let readable = Readable::new(confinement, &roots)?;
    readable.allow(&mut rules)?;
    for root in roots.iter().filter(|root| root.writable) {
        readable.refuse_hidden_below(root.path())?;
        allow_step(&mut rules, root.step(), right::ALL & !right::IOCTL_DEVICE)?;
    }
    allow_path(&mut rules, tmp, right::ALL & !right::IOCTL_DEVICE)?;
    for device in DEVICES {
        allow_path(&mut rules, &Path::new("/dev").join(device), USE_DEVICE)?;
    }
    allow_standard_streams(&mut rules)?;
    rules.apply()
}

/// What can be read: some trees, except for some paths in them.
struct Readable {
    trees: Vec<PathBuf>,
    /// Rights to read directories are given for whole trees: names are not hidden.
    hidden: Vec<(PathBuf, Id)>,
}

impl Readable {
    fn new(confinement: &Confinement, roots: &[Root]) -> io::Result<Readable> {
        let mut readable = Readable { trees: Vec::new(), hidden: Vec::new() };
        match &confinement.view {
            View::Everything { hidden } => {
                readable.trees.push("/".into());
                for path in hidden.iter().map(PathBuf::as_path).chain([Path::new("/dev")]) {
                    readable.hide(&Trail::follow(path)?)?;
                }
            }
            View::Only(_) => {
                let certificates: &[&str] =
                    if confinement.network == Network::Off { &[] } else { system::CERTIFICATES };
                let names: &[&str] =
                    if confinement.network == Network::Open { system::NAME_LOOKUP } else { &[] };
                let system = system::PROGRAMS.iter().chain(system::SETTINGS).chain(certificates).chain(names);
                for path in system {
                    // Links in these directories are those of the administrator.
                    readable.trees.extend(Trail::follow(Path::new(path))?.found().map(|step| step.path.clone()));
                }
                for path in system::NO_PROGRAMS {
                    readable.hide(&Trail::follow(Path::new(path))?)?;
                }
                readable.trees.extend(roots.iter().map(|root| root.path().to_owned()));
            }
        }
        for path in &confinement.deny_exec {
            readable.hide(&Trail::follow(path)?)?;
        }
        Ok(readable)
    }

    /// Rights to write include those to read, so nothing can be hidden where they are given.
    fn refuse_hidden_below(&self, writable: &Path) -> io::Result<()> {
        match self.hidden.iter().find(|(path, _)| path.starts_with(writable)) {
            Some((path, _)) => {
                let path = path.display();
                Err(io::Error::other(format!("`{path}` cannot be hidden inside a writable directory")))
            }
            None => Ok(()),
        }
    }

    fn hide(&mut self, trail: &Trail) -> io::Result<()> {
        if let Some(step) = trail.found() {
            self.hidden.push((step.path.clone(), step.id()?));
        }
        Ok(())
    }

    fn allow(&self, rules: &mut Ruleset) -> io::Result<()> {
        for tree in &self.trees {
            allow_path(rules, tree, right::READ_DIR)?;
            self.allow_files(rules, tree)?;
        }
        Ok(())
    }

    /// Allows to read and execute the files of a tree. Rights cannot be taken back further down, so where something is hidden
    /// they are given to everything beside it.
    fn allow_files(&self, rules: &mut Ruleset, tree: &Path) -> io::Result<()> {
        const FILES: u64 = right::READ_FILE | right::EXECUTE;
        let is_split = self.hidden.iter().any(|(path, _)| path.starts_with(tree));
        if !is_split {
            return self.allow_unless_hidden(rules, tree, FILES);
        }
        if self.hidden.iter().any(|(path, _)| path == tree) {
            return Ok(());
        }
        let mut beside = BTreeSet::new();
        let entries = match std::fs::read_dir(tree) {
            // What cannot be listed cannot be allowed one by one.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            // A link has no content of its own, and a rule would be one for what it leads to.
            if !entry.file_type()?.is_symlink() {
                beside.insert(entry.path());
            }
        }
        for path in beside {
            self.allow_files(rules, &path)?;
        }
        Ok(())
    }

    /// A hidden file may have another name next to it.
    fn allow_unless_hidden(&self, rules: &mut Ruleset, path: &Path, rights: u64) -> io::Result<()> {
        let trail = Trail::follow(path)?;
        let Some(step) = trail.found() else { return Ok(()) };
        let id = step.id()?;
        if self.hidden.iter().any(|(_, hidden)| *hidden == id) {
            return Ok(());
        }
        allow_step(rules, step, rights)
    }
}

fn allow_step(rules: &mut Ruleset, step: &Step, rights: u64) -> io::Result<()> {
    rules.allow(step.descriptor.as_fd(), step.kind == crate::sys::Kind::Directory, rights)
}

/// Allows something by its real path. What does not exist needs no rule.
fn allow_path(rules: &mut Ruleset, path: &Path, rights: u64) -> io::Result<()> {
    // A link that has been put there meanwhile is not followed, and has no content to be read.
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let place = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(place) => place,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    rules.allow(place.as_fd(), place.metadata()?.is_dir(), rights)
}

/// Lets the command open its own standard streams again, as `/dev/stdout` does.
fn allow_standard_streams(rules: &mut Ruleset) -> io::Result<()> {
    let streams = [
        (io::stdin().as_fd().try_clone_to_owned(), right::READ_FILE),
        (io::stdout().as_fd().try_clone_to_owned(), right::WRITE_FILE),
        (io::stderr().as_fd().try_clone_to_owned(), right::WRITE_FILE),
    ];
    for (stream, rights) in streams {
        // A stream that is closed needs no rule.
        let Ok(stream) = stream.map(File::from) else { continue };
        if !stream.metadata()?.is_dir() {
            rules.allow(stream.as_fd(), false, rights | right::IOCTL_DEVICE)?;
        }
    }
    Ok(())
}
