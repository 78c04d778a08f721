//! The context of a command: arguments, flags, settings, directory and output.

use std::env;
use std::path::{Path, PathBuf};

use crate::agents::{self, AgentSpec};
use crate::args::{CommandLine, Flags, Hint};
use crate::config::{self, Config, Source, keys};
use crate::error::{Context as _, Failure, Result};
use crate::output::{Format, Output};
use crate::paths::Paths;

/// The context of a command.
#[derive(Debug)]
pub(crate) struct Cx {
    pub(crate) args: CommandLine,
    pub(crate) flags: Box<Flags>,
    pub(crate) paths: Paths,
    /// The working directory, absolute.
    pub(crate) cwd: PathBuf,
    pub(crate) config: Config,
    pub(crate) output: Output,
}

impl Cx {
    /// Combines flags, environment and files. A failure comes with the output to print it.
    pub(crate) fn new(paths: Paths, args: CommandLine, flags: Box<Flags>) -> Result<Cx, (Failure, Output)> {
        let mut output = Output::plain();
        output.find_colors(flags.no_color);
        // Before the files are read, flags alone say how a failure is printed.
        output.strict = flags.json_strict;
        output.format = match flags.format.as_deref() {
            Some(format) => Format::from_name(format),
            None if output.strict => Format::Json,
            None => Format::Text,
        };
        let made = (|| {
            let cwd = directory(flags.cwd.as_deref().unwrap_or("."))?;
            let config = match config::load(&paths, &cwd, Some(&flags)) {
                Err(failure) if needs_no_settings(&args) => {
                    output.warn(failure);
                    config::fallback(&paths, &cwd)
                }
                config => config?,
            };
            Ok((cwd, config))
        })();
        match made {
            Err(failure) => Err((failure, output)),
            Ok((cwd, config)) => {
                output.format = Format::from_name(&config.settings.format);
                output.verbose = flags.verbose;
                output.suppress_reads = flags.suppress_reads;
                let cx = Cx { args, flags, paths, cwd, config, output };
                match cx.check() {
                    Ok(()) => Ok(cx),
                    Err(failure) => Err((failure, cx.output)),
                }
            }
        }
    }

    /// Checks combinations of flags.
    fn check(&self) -> Result<()> {
        if self.flags.permission_modes.len() > 1 {
            return Err(Failure::usage(
                "give one of --ask, --approve-reads, --approve-all and --deny-all, not several",
            ));
        }
        if self.flags.system_prompt.is_some() && self.flags.append_system_prompt.is_some() {
            return Err(Failure::usage("give --system-prompt or --append-system-prompt, not both"));
        }
        if self.output.strict && self.output.format != Format::Json {
            return Err(Failure::usage("--json-strict needs --format json"));
        }
        if self.output.strict && self.output.verbose {
            return Err(Failure::usage("--json-strict and --verbose exclude each other"));
        }
        Ok(())
    }

    /// The agent of the command: by flag, by name, or the default one.
    pub(crate) fn agent(&self) -> Result<AgentSpec> {
        let default = self.config.settings.default_agent.as_str();
        // A project names an agent; it never brings a command line or an address.
        let by_project = matches!(self.config.source(&keys::DEFAULT_AGENT), Source::Project(_));
        // Some commands take the name as an argument: `attache doctor gemini`.
        let takes_agent =
            self.args.command().positionals.first().is_some_and(|word| word.hint == Hint::Agent);
        let named = self.args.agent.as_deref().or_else(|| self.args.word(0).filter(|_| takes_agent));
        let spec = match (&self.flags.agent, named) {
            (Some(command), _) => agents::raw(command, default)?,
            (None, Some(_)) if self.args.agent.is_none() && self.args.words.len() > 1 && takes_agent => {
                agents::raw(&agents::join(self.args.words.iter().map(String::as_str)), default)?
            }
            (None, Some(name)) => self.config.resolve_agent(name)?,
            (None, None) if by_project && !self.config.is_known_agent(default) => {
                return Err(Failure::usage(format_args!(
                    "`default_agent` in {} is not a known agent: `{default}`",
                    self.config.project_file.display()
                ))
                .hint("`attache agents` lists the known agents"));
            }
            (None, None) => self.config.resolve_agent(default)?,
        };
        self.with_environment(spec)
    }

    /// The agent of this name.
    pub(crate) fn agent_named(&self, name: &str) -> Result<AgentSpec> {
        self.with_environment(self.config.resolve_agent(name)?)
    }

    /// Whether credentials can be stored for an agent and passed on to it: it has a name, and it is
    /// the user or this program that says what the name means. A command line may be another
    /// program tomorrow, and a project may give any name to its own.
    pub(crate) fn can_have_credentials(&self, spec: &AgentSpec) -> bool {
        let source = self.config.agents.get(&spec.name).map(|setting| &setting.source);
        spec.known && !matches!(source, Some(Source::Project(_)))
    }

    fn with_environment(&self, mut spec: AgentSpec) -> Result<AgentSpec> {
        // Saved variables come first, so that all others override them.
        if self.can_have_credentials(&spec) {
            let kept = crate::credentials::variables(&self.paths, &spec)?;
            spec.env.splice(..0, kept);
        }
        // As for credentials: the words of a file are no reason to hand out a token.
        spec.takes_token = self.flags.agent.is_some()
            || self.args.word(0) == Some(spec.name.as_str())
            || self.can_have_credentials(&spec);
        if spec.is_own() {
            self.pass_trust(&mut spec);
        }
        for assignment in &self.flags.env {
            let Some((name, value)) = assignment.split_once('=').filter(|(name, _)| !name.is_empty()) else {
                return Err(Failure::usage(format_args!("--env is NAME=VALUE, not `{assignment}`")));
            };
            spec.env.push((name.to_owned(), value.to_owned()));
        }
        Ok(spec)
    }

    /// Passes the trust flags of the user on to our own agent.
    fn pass_trust(&self, spec: &mut AgentSpec) {
        if self.trusts_all() {
            spec.env.push((config::TRUST_VARIABLE.to_owned(), "1".to_owned()));
        }
        let by_user = matches!(self.config.source(&keys::PERMISSIONS), Source::Flag(_) | Source::Env(_));
        // A user who approves everything on the command line does not want an agent that only
        // reads.
        if by_user
            && self.config.settings.permissions == "approve-all"
            && !self.config.project.is_trusted()
            && spec.mode.is_none()
        {
            spec.mode = Some("ask".to_owned());
        }
    }

    /// Whether the user trusts every project in this run.
    pub(crate) fn trusts_all(&self) -> bool {
        self.config.project.overridden
    }

    /// Further directories of the session.
    pub(crate) fn directories(&self) -> Result<Vec<PathBuf>> {
        self.flags.add_dir.iter().map(|dir| absolute(&self.cwd, dir)).collect()
    }

    /// Prints the warnings of the settings.
    pub(crate) fn warn(&self) {
        for warning in &self.config.warnings {
            self.output.warn(warning);
        }
        if let Some(restriction) = self.config.restriction() {
            self.output.warn(restriction);
        }
    }
}

/// Whether a command works with invalid settings, such as one that fixes them.
fn needs_no_settings(args: &CommandLine) -> bool {
    let path = args.path();
    matches!(
        path.as_slice(),
        ["config", "set" | "unset" | "edit" | "path" | "init"] | ["trust", ..] | ["completions"] | ["man"]
    )
}

/// An existing directory as an absolute path without links, so that each has one name.
fn directory(path: &str) -> Result<PathBuf> {
    let here = env::current_dir().context("the current directory")?;
    absolute(&here, path)
}

pub(crate) fn absolute(base: &Path, path: &str) -> Result<PathBuf> {
    let path = base.join(path);
    let found = path.canonicalize().map_err(|error| {
        Failure::usage(format_args!("the directory {} cannot be used: {error}", path.display()))
    })?;
    if !found.is_dir() {
        return Err(Failure::usage(format_args!("{} is not a directory", path.display())));
    }
    Ok(found)
}
