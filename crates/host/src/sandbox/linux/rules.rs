//! The Landlock rules of a command.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::namespaces::DEVICES;
use super::resolve::{Id, Step, Trail};
use super::roots::Root;
use super::system;
use crate::sandbox::{Confinement, Network, View};
use crate::sys::landlock::{Ruleset, right};
use crate::sys::{self, Dir, Kind};

/// Reading a device and writing to it.
const USE_DEVICE: u64 = right::READ_FILE | right::WRITE_FILE | right::IOCTL_DEVICE;

/// Restricts this process inside of namespaces, where everything that is visible may be read. The
/// mounts are the first line; this is the second, and keeps the command from special files and from
/// what other processes have open.
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

/// Restricts this process where Landlock is the only guard of files. `tmp` is the private temporary
/// directory.
pub(super) fn restrict_alone(confinement: &Confinement, tmp: &Path) -> io::Result<()> {
    // The version with the right to truncate: without it any file could be emptied.
    const LEAST: i64 = 3;
    let has_truncate = crate::sys::landlock::version().is_some_and(|version| version >= LEAST);
    let rules = Ruleset::new(confinement.network != Network::Open)?.filter(|_| has_truncate);
    let mut rules =
        rules.ok_or_else(|| io::Error::other("this kernel has no Landlock, or too old a version"))?;
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

/// Trees that can be read, except for some paths in them.
struct Readable<'a> {
    roots: &'a [Root],
    system: Vec<Trail>,
    /// Rights to read directories are given for whole trees: names are not hidden.
    hidden: Vec<(PathBuf, Id)>,
}

impl<'a> Readable<'a> {
    fn new(confinement: &Confinement, roots: &'a [Root]) -> io::Result<Self> {
        let mut readable = Readable { roots, system: Vec::new(), hidden: Vec::new() };
        let (system, hidden): (Vec<&str>, &[&str]) = match (&confinement.view, &confinement.network) {
            (View::Everything { .. }, _) => (vec!["/"], &["/dev"]),
            (View::Only(_), Network::Off) => {
                ([system::PROGRAMS, system::SETTINGS].concat(), system::NO_PROGRAMS)
            }
            (View::Only(_), _) => {
                let parts = [system::PROGRAMS, system::SETTINGS, system::CERTIFICATES, system::NAME_LOOKUP];
                (parts.concat(), system::NO_PROGRAMS)
            }
        };
        for path in system {
            // Links on the way to these directories are those of the administrator.
            readable.system.push(Trail::follow(Path::new(path))?);
        }
        let chosen: &[PathBuf] = match &confinement.view {
            View::Everything { hidden } => hidden,
            View::Only(_) => &[],
        };
        let chosen = chosen.iter().chain(&confinement.deny_exec).map(PathBuf::as_path);
        for path in hidden.iter().map(Path::new).chain(chosen) {
            if let Some(step) = Trail::follow(path)?.found() {
                readable.hidden.push((step.path.clone(), step.id()?));
            }
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

    fn allow(&self, rules: &mut Ruleset) -> io::Result<()> {
        let roots = self.roots.iter().map(Root::step);
        for tree in self.system.iter().filter_map(Trail::found).chain(roots) {
            rules.allow(tree.descriptor.as_fd(), tree.kind == Kind::Directory, right::READ_DIR)?;
            self.allow_files(rules, &tree.path, tree.descriptor.as_fd(), tree.kind)?;
        }
        Ok(())
    }

    /// Allows to read and execute the files of a tree. Rights cannot be taken back further down, so
    /// where something is hidden they are given to everything beside it.
    fn allow_files(
        &self,
        rules: &mut Ruleset,
        path: &Path,
        place: BorrowedFd<'_>,
        kind: Kind,
    ) -> io::Result<()> {
        // A hidden file may have another name next to it.
        let id = Id::of(place)?;
        if self.hidden.iter().any(|(_, hidden)| *hidden == id) {
            return Ok(());
        }
        let is_split = self.hidden.iter().any(|(hidden, _)| hidden.starts_with(path));
        if !is_split || kind != Kind::Directory {
            return rules.allow(place, kind == Kind::Directory, right::READ_FILE | right::EXECUTE);
        }
        let directory = Dir::from(place.try_clone_to_owned()?);
        let entries = match fs::read_dir(format!("/proc/self/fd/{}", place.as_raw_fd())) {
            // The entries of a directory that cannot be listed cannot be allowed one by one.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let name = entry?.file_name();
            let Ok(place) = directory.open_path(&name) else { continue };
            let kind = sys::stat(place.as_fd())?.kind;
            // A link has no content of its own.
            if kind != Kind::Link {
                self.allow_files(rules, &path.join(name), place.as_fd(), kind)?;
            }
        }
        Ok(())
    }
}

fn allow_step(rules: &mut Ruleset, step: &Step, rights: u64) -> io::Result<()> {
    rules.allow(step.descriptor.as_fd(), step.kind == Kind::Directory, rights)
}

/// Allows something by its real path, if it exists.
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
