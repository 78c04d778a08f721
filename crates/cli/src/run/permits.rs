//! What a prompt may do and how much it may take.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attache_host::bounded::{FinalLink, read_text_bounded};
use attache_host::policy::{Audit, Memory, Mode, Policy, Rules, Unanswered};
use attache_host::trust::LARGEST_FILE;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::agents::AgentSpec;
use crate::config::Source;
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
    /// What forms are filled in with.
    pub(crate) answers: Option<Map<String, Value>>,
}

impl Permits {
    /// What flags and settings say.
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

    /// For what starts an agent without a prompt. The rules are not read: one that is wrong is no reason not to do it.
    pub(crate) fn without_turn(cx: &Cx) -> Result<Permits> {
        Ok(Permits::plain(cx)?.between_turns())
    }

    fn plain(cx: &Cx) -> Result<Permits> {
        let config = &cx.config;
        let mode = config.text("permissions").unwrap_or(Mode::ASK.name);
        Ok(Permits {
            mode: mode.parse().map_err(Failure::usage)?,
            rules: None,
            unanswered: match config.text("non_interactive_permissions") {
                Some("fail") => Unanswered::Fail,
                _ => Unanswered::Deny,
            },
            timeout: config.seconds("timeout"),
            max_turns: config.count("max_turns"),
            max_tokens: config.count("max_tokens"),
            max_cost: config.number("max_cost"),
            retries: config.count("prompt_retries").unwrap_or_default(),
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
        // Without a record of what was decided nothing is lent.
        let (memory, audit) = open().map_err(|failure: Failure| {
            failure.hint(
                "what is decided is written down there; ATTACHE_HOME names a place where that is possible",
            )
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
    let Some(setting) = cx.config.setting("permission_policy") else { return Ok(None) };
    let Some(spec) = setting.value.as_str() else { return Ok(None) };
    let read = match &setting.source {
        // What a file names lies beside it, wherever the user is.
        Source::User(file) | Source::Project(file) => {
            let base = file.parent().unwrap_or(&cx.cwd);
            let read = match &setting.source {
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

/// Whether a policy can be used. Gives back what to keep of it: rules as they are, a file by where it is.
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
