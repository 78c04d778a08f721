//! The permissions and limits of a prompt.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attache_host::bounded::{FinalLink, read_text_bounded};
use attache_host::policy::{Audit, Memory, Mode, Policy, Rules, Unanswered};
use attache_host::trust::LARGEST_FILE;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agents::AgentSpec;
use crate::config::{Source, keys};
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::paths::Paths;

/// The permissions and limits of one prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Permits {
    #[serde(with = "mode_name")]
    pub(crate) mode: Mode,
    /// The rules of a policy, as JSON.
    pub(crate) rules: Option<String>,
    #[serde(with = "UnansweredNames")]
    pub(crate) unanswered: Unanswered,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_turns: Option<u64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_cost: Option<f64>,
    pub(crate) retries: u64,
    /// The values for forms.
    pub(crate) answers: Option<Map<String, Value>>,
}

impl Permits {
    /// Creates the permissions of a mode, without limits.
    #[cfg(test)]
    pub(super) fn of_mode(mode: Mode) -> Permits {
        Permits {
            mode,
            rules: None,
            unanswered: Unanswered::Deny,
            timeout: None,
            max_turns: None,
            max_tokens: None,
            max_cost: None,
            retries: 0,
            answers: None,
        }
    }

    /// Reads flags and settings.
    pub(crate) fn new(cx: &Cx) -> Result<Permits> {
        let answers = cx
            .flags
            .prompt
            .answers
            .as_deref()
            .map(|spec| crate::forms::answers(spec, &cx.cwd))
            .transpose()?;
        Ok(Permits { rules: rules(cx)?, answers, ..Permits::plain(cx)? })
    }

    /// The permissions to start an agent without a prompt. Rules are not read, so that an invalid
    /// one does not matter.
    pub(crate) fn without_turn(cx: &Cx) -> Result<Permits> {
        Ok(Permits::plain(cx)?.between_turns())
    }

    fn plain(cx: &Cx) -> Result<Permits> {
        let settings = &cx.config.settings;
        Ok(Permits {
            mode: settings.permissions.parse().map_err(Failure::usage)?,
            rules: None,
            unanswered: settings.non_interactive_permissions.parse().map_err(Failure::usage)?,
            timeout: settings.timeout,
            max_turns: settings.max_turns,
            max_tokens: settings.max_tokens,
            max_cost: settings.max_cost,
            retries: settings.prompt_retries,
            answers: None,
        })
    }

    /// The same between turns: only reading, since the user has asked for nothing.
    pub(crate) fn between_turns(&self) -> Permits {
        let mode = self.mode.stricter(Mode::ASK);
        Permits { mode, rules: None, ..self.clone() }
    }

    /// The policy of a session in these directories, the first of which is the project.
    pub(crate) fn policy(
        &self,
        paths: &Paths,
        agent: &AgentSpec,
        roots: &[PathBuf],
        secrets: Vec<String>,
    ) -> Result<Policy> {
        let mask = attache_host::secrets::Mask::from_env().with(secrets);
        let mut policy = Policy::new(self.mode).asking(None, self.unanswered);
        if let Some(rules) = &self.rules {
            let rules = Rules::parse(rules)
                .map_err(|error| Failure::usage(format_args!("the permission policy: {error}")))?;
            policy = policy.rules(rules);
        }
        let project = roots.first().map_or(Path::new("/"), PathBuf::as_path);
        let project = crate::paths::repository(project).unwrap_or(project);
        let open = || {
            crate::paths::private_dir(&paths.state).context("the state directory")?;
            let memory = Memory::open(&paths.state, project).context("what is always allowed")?;
            let audit = Audit::open(&paths.state.join("audit.jsonl")).context("the audit log")?;
            Ok((memory, audit))
        };
        // Without an audit log nothing is provided to the agent.
        let (memory, audit) = open().map_err(|failure: Failure| {
            failure.hint("cannot write the audit log; set ATTACHE_HOME to a writable directory")
        })?;
        Ok(policy
            .roots(roots)
            .agent(agent.permission_key())
            .agent_name(&agent.name)
            .memory(memory)
            .audit(audit)
            .mask(mask))
    }
}

/// The serialised form of [`Unanswered`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Unanswered", rename_all = "snake_case")]
enum UnansweredNames {
    Deny,
    Fail,
}

/// A mode by its name.
mod mode_name {
    use attache_host::policy::Mode;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(mode: &Mode, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(mode.name)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Mode, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The rules of the settings, read once to tell mistakes before anything is started.
fn rules(cx: &Cx) -> Result<Option<String>> {
    let Some(spec) = &cx.config.settings.permission_policy else { return Ok(None) };
    let source = cx.config.source(&keys::PERMISSION_POLICY);
    let read = match source {
        // Paths in a file are relative to it.
        Source::User(file) | Source::Project(file) => {
            let base = file.parent().unwrap_or(&cx.cwd);
            let read = match source {
                // A project may put anything in the place of the file.
                Source::Project(_) => {
                    read_rules(spec, base, |path| read_text_bounded(path, LARGEST_FILE, FinalLink::Follow))
                }
                _ => read_rules(spec, base, read_all),
            };
            read.map_err(|failure| {
                failure
                    .context(format_args!("`permission_policy` in {}", file.display()))
                    .hint("change it with `attache config set permission_policy FILE`")
            })
        }
        Source::Env(name) => {
            let read = read_rules(spec, &cx.cwd, read_all);
            read.map_err(|failure| failure.context(format_args!("environment {name}")))
        }
        _ => read_rules(spec, &cx.cwd, read_all),
    };
    read.map(Some)
}

/// Checks a policy. Returns the value to store: the rules themselves, or the absolute path of their
/// file.
pub(crate) fn check_policy(spec: &str, cwd: &Path) -> Result<String> {
    read_rules(spec, cwd, read_all)?;
    Ok(match is_inline(spec) {
        true => spec.to_owned(),
        false => cwd.join(spec).to_string_lossy().into_owned(),
    })
}

fn is_inline(spec: &str) -> bool {
    spec.trim_start().starts_with('{')
}

/// Reads a file that the user named, which may be a pipe.
fn read_all(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

/// Rules from JSON or from a file.
fn read_rules(spec: &str, base: &Path, read: impl FnOnce(&Path) -> io::Result<String>) -> Result<String> {
    let (text, source) = if is_inline(spec) {
        (spec.to_owned(), "the permission policy".to_owned())
    } else {
        let path = base.join(spec);
        let text = read(&path).map_err(|error| {
            Failure::usage(format_args!("the permission policy {}: {error}", path.display()))
        })?;
        (text, format!("the permission policy {}", path.display()))
    };
    Rules::parse(&text).map_err(|error| Failure::usage(format_args!("{source}: {error}")))?;
    Ok(text)
}
