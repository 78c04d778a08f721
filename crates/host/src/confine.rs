//! The confinements of a session's commands, for agents and for clients that run commands for
//! agents.
//!
//! Two are used: *read-only* for commands that run without a question, and *workspace* for commands
//! that may change the project. The command line of a confined command starts this program again
//! (see [`crate::sandbox`]), so a client can recognise one that our own agent built and need not
//! ask about it a second time ([`Confiner::recognise`]).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::policy::{CommandLine, Confined, FilePath, Run, protected};
use crate::sandbox::{Backend, Confinement, Environment, Limits, Network, View};

/// Limits of a command that runs without a question.
const READ_ONLY_LIMITS: Limits =
    Limits { cpu_seconds: Some(60), file_bytes: Some(64 << 20), tmp_bytes: Some(64 << 20) };

/// Places in the home directory that hold credentials. Sandboxed commands do not see them.
const CREDENTIALS: &[&str] = &[
    ".aws",
    ".azure",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/attache",
    ".config/gcloud",
    ".config/gh",
    ".config/op",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pypirc",
    ".ssh",
];

/// Builds and recognises the command lines of confined commands.
#[derive(Clone, Debug)]
pub struct Confiner {
    program: PathBuf,
    backend: Backend,
    hidden: Vec<PathBuf>,
}

impl Confiner {
    /// Finds the sandbox of this machine; `None` if none works. `program` handles
    /// [`crate::sandbox::WORD`]. Blocks for some milliseconds the first time.
    pub fn detect(program: &Path) -> Option<Self> {
        let backend = Backend::detect(program);
        tracing::debug!(?backend, "sandbox detected");
        let backend = backend?;
        let home = std::env::home_dir();
        let hidden = home.iter().flat_map(|home| CREDENTIALS.iter().map(|name| home.join(name)));
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
        Some(Confiner { program: program.to_owned(), backend, hidden: hidden.chain(runtime).collect() })
    }

    /// Hides further paths from commands.
    #[must_use]
    pub fn hide(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.hidden.extend(paths);
        self
    }

    /// The sandbox that is used.
    pub fn backend(&self) -> Backend {
        self.backend
    }

    /// Whether a command in the workspace cannot change protected files. Otherwise a person is
    /// asked about every command.
    pub fn protects_files(&self) -> bool {
        self.backend.guarantees().read_only_paths
    }

    /// Whether commands can have a network through a proxy.
    pub fn has_proxy(&self) -> bool {
        self.backend.guarantees().proxy
    }

    /// The confinement of a command that runs without a question: it sees `roots` and the system's
    /// programs, can change nothing, and has no network, no keys and no settings of the user.
    pub fn read_only(&self, roots: &[PathBuf]) -> Confinement {
        Confinement { limits: READ_ONLY_LIMITS, ..Confinement::read_only(roots) }
    }

    /// The confinement of a command that may change the files of `roots`. Protected files stay as
    /// they are, and so do those elsewhere.
    pub fn workspace(&self, roots: &[PathBuf], network: Network, deny_exec: Vec<PathBuf>) -> Confinement {
        let read_only = if self.protects_files() { protected::existing(roots) } else { Vec::new() };
        Confinement {
            view: View::Everything { hidden: self.hidden.clone() },
            read_only,
            network,
            environment: Environment::Keep,
            deny_exec,
            ..Confinement::writable(roots)
        }
    }

    /// The command line that runs `argv` confined.
    ///
    /// # Errors
    /// If the path of this program is not text.
    pub fn command(
        &self,
        confinement: &Confinement,
        argv: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>,
    ) -> Result<Vec<String>, String> {
        let words = confinement.command(self.backend, &self.program, argv).into_iter();
        words
            .map(OsString::into_string)
            .collect::<Result<_, _>>()
            .map_err(|_| "the path of this program, or an argument, is not text".to_owned())
    }

    /// How a command line that an agent wants to run is confined, and the command inside; `None` if
    /// it is not one of ours.
    ///
    /// Only what this very program enforces counts: the program must be this one, no variable may
    /// change what it does, and the confinement must stay inside `roots`.
    pub fn recognise(&self, argv: &[String], run: &Run, roots: &[PathBuf]) -> Option<Run> {
        let launch = Confinement::parse(argv)?;
        if !launch.is_started_by(&self.program) || run.effective_env().next().is_some() {
            return None;
        }
        let words: Option<Vec<String>> =
            launch.command.iter().map(|word| word.to_str().map(str::to_owned)).collect();
        let words = words?;
        let (program, args) = words.split_first()?;
        let roots: Vec<PathBuf> =
            roots.iter().map(|root| root.canonicalize().unwrap_or(root.clone())).collect();
        let is_inside = |path: &PathBuf| {
            let path = path.canonicalize().unwrap_or_else(|_| path.clone());
            roots.iter().any(|root| path.starts_with(root))
        };
        let confinement = &launch.confinement;
        let confined = match &confinement.view {
            View::Only(paths) if confinement.is_read_only() && paths.iter().all(is_inside) => {
                Confined::ReadOnly
            }
            View::Everything { .. }
                if confinement.write.iter().all(is_inside) && confinement.network != Network::Open =>
            {
                Confined::Workspace
            }
            _ => Confined::No,
        };
        // A backend that works less well than ours here was not chosen by our own agent.
        let confined = if launch.backend == self.backend { confined } else { Confined::No };
        let command = CommandLine::program(program, args);
        Some(Run {
            command,
            cwd: FilePath::new(run.cwd.named(), run.cwd.real()),
            env: run.env.clone(),
            confined,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn confiner() -> Confiner {
        let program = std::env::current_exe().unwrap();
        Confiner { program, backend: Backend::Namespaces, hidden: Vec::new() }
    }

    fn run(argv: &[String]) -> Run {
        Run::new(CommandLine::program(&argv[0], &argv[1..]), FilePath::from_real("/"))
    }

    #[test]
    fn our_own_command_lines_are_recognised_and_no_others() {
        let confiner = confiner();
        let root = std::env::temp_dir().canonicalize().unwrap();
        let roots = [root.clone()];
        let recognised = |confinement: &Confinement| {
            let argv = confiner.command(confinement, ["/bin/sh", "-c", "ls -l"]).unwrap();
            let found = confiner.recognise(&argv, &run(&argv), &roots)?;
            assert_eq!(found.command.text(), "ls -l");
            Some(found.confined)
        };
        assert_eq!(recognised(&confiner.read_only(&roots)), Some(Confined::ReadOnly));
        assert_eq!(
            recognised(&confiner.workspace(&roots, Network::Off, Vec::new())),
            Some(Confined::Workspace)
        );
        // More than the session's directories, or more than the proxy.
        assert_eq!(recognised(&confiner.read_only(&["/".into()])), Some(Confined::No));
        assert_eq!(
            recognised(&confiner.workspace(&["/usr".into()], Network::Off, Vec::new())),
            Some(Confined::No)
        );
        assert_eq!(recognised(&confiner.workspace(&roots, Network::Open, Vec::new())), Some(Confined::No));

        let argv = confiner.command(&confiner.read_only(&roots), ["ls"]).unwrap();
        let mut preloaded = run(&argv);
        preloaded.env.insert("LD_PRELOAD".into(), "/tmp/x.so".into());
        assert!(confiner.recognise(&argv, &preloaded, &roots).is_none());
        let mut other = argv.clone();
        other[0] = "/bin/sh".to_owned();
        assert!(confiner.recognise(&other, &run(&other), &roots).is_none());
        assert!(confiner.recognise(&["ls".to_owned()], &run(&["ls".to_owned()]), &roots).is_none());
        let weaker = Confiner { backend: Backend::Landlock, ..confiner.clone() };
        assert_eq!(weaker.recognise(&argv, &run(&argv), &roots).unwrap().confined, Confined::No);
    }
}
