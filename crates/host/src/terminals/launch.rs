//! Turns a `terminal/create` request into a program to start.

use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use attache::wire::v1::CreateTerminalRequest;

use crate::policy::{CommandLine, Confined, FilePath, Run};
use crate::sandbox::Confinement;

/// A program to start.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: PathBuf,
    /// The command as the policy judges and shows it.
    pub(super) run: Run,
}

impl Launch {
    // TERM-14
    /// Parses the request. A command is a program with arguments; a text with blanks and without
    /// arguments that names no program is a shell command.
    pub(super) fn new(request: CreateTerminalRequest, cwd: PathBuf) -> Self {
        let env: Vec<(String, String)> =
            request.env.into_iter().flatten().map(|variable| (variable.name, variable.value)).collect();
        let args = request.args.unwrap_or_default();
        let text = request.command;
        let is_text = args.is_empty() && text.contains(char::is_whitespace) && !is_program(&text, &env, &cwd);
        let (program, args, line) = if is_text {
            let line = CommandLine::shell(&text);
            ("/bin/sh".to_owned(), vec!["-c".to_owned(), text], line)
        } else {
            let line = CommandLine::program(&text, &args);
            (text, args, line)
        };
        let run = Run {
            command: line,
            cwd: FilePath::resolve(&cwd, Path::new("/")),
            env: env.iter().cloned().collect(),
            confined: Confined::No,
        };
        Launch { program, args, env, cwd, run }
    }

    /// The program and its arguments.
    pub(super) fn argv(&self) -> Vec<String> {
        std::iter::once(&self.program).chain(&self.args).cloned().collect()
    }

    /// Takes the command out of its confinement, which is returned with these programs denied: the
    /// agent that built it does not know the rules of this side. `None` if it is not a confined
    /// command.
    pub(super) fn deny_programs(&mut self, denied: Vec<PathBuf>) -> Option<Confinement> {
        let confined = Confinement::parse(self.argv())?;
        let words = confined.command.iter().map(|word| word.to_str().map(str::to_owned));
        self.replace(words.collect::<Option<_>>()?);
        let mut confinement = confined.confinement;
        confinement.deny_exec.extend(denied);
        Some(confinement)
    }

    /// Starts this command line instead.
    pub(super) fn replace(&mut self, argv: Vec<String>) {
        let mut words = argv.into_iter();
        self.program = words.next().unwrap_or_default();
        self.args = words.collect();
    }
}

fn is_program(name: &str, env: &[(String, String)], cwd: &Path) -> bool {
    let is_executable = |path: PathBuf| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return is_executable(cwd.join(name));
    }
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| OsString::from(value));
    let path = path.or_else(|| env::var_os("PATH")).unwrap_or_default();
    env::split_paths(&path).any(|dir| is_executable(cwd.join(dir).join(name)))
}
