//! The mechanisms that enforce a confinement, and their limits.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Confinement, Network, View};
use parking_lot::Mutex;

/// The environment variable that selects a backend: `bubblewrap`, `namespaces`, `landlock`,
/// `seatbelt` or `none`. It is meant for tests. Only [`Backend::detect`] reads it, in the process
/// that builds command lines; a confined process inherits no variable of this name.
pub const BACKEND_VARIABLE: &str = "ATTACHE_SANDBOX_BACKEND";

/// The output of a probe after everything up to the execution of a command has worked.
pub(super) const PROBE_ANSWER: &str = "sandbox ready\n";

/// A mechanism that enforces a [`Confinement`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// This program enters namespaces by itself, then Landlock and seccomp are applied (Linux 5.12
    /// and newer).
    ///
    /// It starts in half the time of bubblewrap, and can keep symbolic links and the devices of
    /// `root` unchanged without help.
    Namespaces,
    /// The program `bwrap` enters namespaces, then Landlock and seccomp are applied (Linux). It is
    /// for systems that allow namespaces to this program only.
    ///
    /// Only a `bwrap` in a directory of the system is used, because the search path may be under
    /// the control of others.
    Bubblewrap,
    /// Landlock and seccomp alone (Linux 6.2 and newer).
    Landlock,
    /// The program `sandbox-exec` (macOS).
    Seatbelt,
}

/// Abilities that not every [`Backend`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guarantees {
    /// [`Network::Proxy`] is available.
    pub proxy: bool,
    /// [`Confinement::read_only`] is available.
    pub read_only_paths: bool,
    /// `/tmp`, `/var/tmp` and `/dev/shm` are private. Otherwise only `TMPDIR` is, and the shared
    /// ones are not writable.
    pub private_tmp: bool,
    /// [`Limits::tmp_bytes`](super::Limits::tmp_bytes) is enforced.
    pub tmp_size: bool,
    /// Other processes are invisible and cannot be signalled.
    pub private_processes: bool,
    /// The existence and metadata of files outside of the view cannot be seen.
    pub private_metadata: bool,
}

/// A part of a [`Confinement`] that a [`Backend`] cannot enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported(String);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsupported {}

impl Backend {
    /// All backends, in the order in which they are tried.
    pub const ALL: [Backend; 4] =
        [Backend::Namespaces, Backend::Bubblewrap, Backend::Landlock, Backend::Seatbelt];

    /// Finds the strongest backend that works here, or the one that [`BACKEND_VARIABLE`] names if
    /// it works.
    ///
    /// Each candidate is really tried: `own_program` (see [`Confinement::command`]) is started with
    /// an empty command. The result is kept for the life of the process. Blocks for some
    /// milliseconds the first time.
    pub fn detect(own_program: &Path) -> Option<Backend> {
        static PROBED: Mutex<Vec<(PathBuf, Option<Backend>)>> = Mutex::new(Vec::new());
        let mut probed = PROBED.lock();
        if let Some((_, found)) = probed.iter().find(|(program, _)| program == own_program) {
            return *found;
        }
        let found = match std::env::var(BACKEND_VARIABLE) {
            Ok(name) => Backend::from_name(&name).filter(|backend| backend.works(own_program)),
            Err(_) => Backend::ALL.into_iter().find(|backend| backend.works(own_program)),
        };
        probed.push((own_program.to_owned(), found));
        found
    }

    /// Whether this backend works here; tried each time.
    pub fn works(self, own_program: &Path) -> bool {
        if self.is_foreign() {
            return false;
        }
        let nowhere = std::iter::empty::<PathBuf>;
        // The two views are set up in different ways.
        [Confinement::read_only(nowhere()), Confinement::writable(nowhere())].iter().all(|confinement| {
            let line = confinement.command(self, own_program, std::iter::empty::<&str>());
            // A directory that every confinement shows.
            let mut probe = Command::new(own_program);
            let output = probe.args(&line[1..]).current_dir("/").stdin(Stdio::null()).output();
            output.is_ok_and(|output| output.status.success() && output.stdout == PROBE_ANSWER.as_bytes())
        })
    }

    /// The abilities of this backend.
    pub fn guarantees(self) -> Guarantees {
        let namespaces = matches!(self, Backend::Bubblewrap | Backend::Namespaces);
        Guarantees {
            proxy: namespaces,
            read_only_paths: namespaces || self == Backend::Seatbelt,
            private_tmp: namespaces,
            tmp_size: namespaces,
            private_processes: namespaces,
            private_metadata: namespaces,
        }
    }

    /// The name of this backend in command lines and in [`BACKEND_VARIABLE`].
    pub fn name(self) -> &'static str {
        match self {
            Backend::Bubblewrap => "bubblewrap",
            Backend::Namespaces => "namespaces",
            Backend::Landlock => "landlock",
            Backend::Seatbelt => "seatbelt",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Backend> {
        Backend::ALL.into_iter().find(|backend| backend.name() == name)
    }

    /// Whether it belongs to another operating system.
    pub(super) fn is_foreign(self) -> bool {
        match self {
            Backend::Seatbelt => !cfg!(target_os = "macos"),
            Backend::Bubblewrap | Backend::Namespaces | Backend::Landlock => !cfg!(target_os = "linux"),
        }
    }
}

pub(super) fn check(confinement: &Confinement, backend: Backend) -> Result<(), Unsupported> {
    let guarantees = backend.guarantees();
    let unsupported = |what: &str| Err(Unsupported(format!("the {} sandbox cannot {what}", backend.name())));
    if let Some(path) = confinement.paths().find(|path| !path.is_absolute()) {
        return Err(Unsupported(format!("`{}` is not an absolute path", path.display())));
    }
    if confinement.write.iter().any(|path| path.parent().is_none()) {
        return unsupported("make the whole file system writable");
    }
    if matches!(confinement.network, Network::Proxy(_)) && !guarantees.proxy {
        return unsupported("provide a network proxy");
    }
    if !confinement.read_only.is_empty() && !guarantees.read_only_paths {
        return unsupported("keep paths inside a writable directory read-only");
    }
    let hidden = match &confinement.view {
        View::Everything { hidden } => hidden.as_slice(),
        View::Only(_) => &[],
    };
    let is_written = |path: &PathBuf| confinement.write.iter().any(|root| path.starts_with(root));
    if backend == Backend::Landlock && hidden.iter().chain(&confinement.deny_exec).any(is_written) {
        return unsupported("hide paths inside a writable directory");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for backend in Backend::ALL {
            assert_eq!(Backend::from_name(backend.name()), Some(backend));
        }
        assert_eq!(Backend::from_name("none"), None);
    }

    #[test]
    fn an_unenforceable_confinement_is_refused() {
        let plain = Confinement::writable(["/p"]);
        let read_only = Confinement { read_only: vec!["/p/.git".into()], ..plain.clone() };
        let proxied = Confinement { network: Network::Proxy("/s".into()), ..plain.clone() };
        for backend in [Backend::Bubblewrap, Backend::Namespaces] {
            assert_eq!([&plain, &read_only, &proxied].map(|c| c.check(backend).is_ok()), [true; 3]);
        }
        let landlock = [&plain, &read_only, &proxied].map(|c| c.check(Backend::Landlock).is_ok());
        assert_eq!(landlock, [true, false, false]);
        let seatbelt = [&plain, &read_only, &proxied].map(|c| c.check(Backend::Seatbelt).is_ok());
        assert_eq!(seatbelt, [true, true, false]);
        for path in ["relative", "/"] {
            assert!(Confinement::writable([path]).check(Backend::Namespaces).is_err(), "{path}");
        }
    }

    #[test]
    fn a_program_that_prints_something_else_is_no_sandbox() {
        assert!(Backend::ALL.iter().all(|backend| !backend.works(Path::new("/bin/echo"))));
        assert!(Backend::ALL.iter().all(|backend| !backend.works(Path::new("/no/such/program"))));
    }
}
