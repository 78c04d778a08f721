//! Settings: flags over environment over the project's file over the user's file over defaults,
//! each with its source.
//!
//! A project's file comes with the repository and is as trustworthy as the repository. Before the
//! user trusts the folder, a value that names or parameterises a program, an address, a model, a
//! policy or credentials is ignored, and other values can only narrow what the user allows. Even in
//! a trusted project the default agent is one that is known by name.
//!
//! `keys.rs` is the table, `settings.rs` the values, `layers.rs` reads the files, `edit.rs` changes
//! one.

mod edit;
pub(crate) mod keys;
mod layers;
mod settings;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

pub(crate) use edit::{remove_setting, set as edit, write_file, write_setting};
#[cfg(unix)]
pub(crate) use keys::MOST_RETRIES;
pub(crate) use keys::{ENVIRONMENT, FILES, GUARDED_TABLES, KEYS, Key, Kind};
pub(crate) use layers::{fallback, load};
pub(crate) use settings::Settings;

use attache_host::trust::{FileKind, ProjectFiles, Trust};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::agents::{self, Address, AgentSpec};
use crate::error::{Context as _, Failure, Result};

/// The name of a project's file of settings.
pub(crate) const PROJECT_FILE: &str = attache_host::trust::SETTINGS;

/// The variable that trusts every project, for scripts.
pub(crate) const TRUST_VARIABLE: &str = "ATTACHE_TRUST";

/// Whether the files of the project may take effect.
#[derive(Debug, Clone)]
pub(crate) struct ProjectTrust {
    pub(crate) files: ProjectFiles,
    /// The user's answer.
    pub(crate) status: Trust,
    /// `--trust` or [`TRUST_VARIABLE`] for this run.
    pub(crate) overridden: bool,
}

impl Default for ProjectTrust {
    fn default() -> Self {
        ProjectTrust { files: ProjectFiles::default(), status: Trust::Nothing, overridden: false }
    }
}

impl ProjectTrust {
    pub(crate) fn is_trusted(&self) -> bool {
        self.overridden || self.status.is_trusted()
    }
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    /// Installed from a registry; the file says which.
    Registry(PathBuf),
    User(PathBuf),
    Project(PathBuf),
    Env(String),
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("built in"),
            Source::Registry(path) | Source::User(path) | Source::Project(path) => {
                write!(f, "{}", path.display())
            }
            Source::Env(name) => write!(f, "environment {name}"),
            Source::Flag(name) => write!(f, "flag --{name}"),
        }
    }
}

/// A value and its source.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) value: toml::Value,
    pub(crate) source: Source,
}

/// A setting of a project's file that is ignored.
#[derive(Debug, Clone)]
pub(crate) struct Ignored {
    pub(crate) key: String,
    pub(crate) why: &'static str,
}

/// All settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    /// The values that hold.
    pub(crate) settings: Settings,
    /// The same by key, with their sources.
    sources: BTreeMap<&'static str, Setting>,
    /// `[agents.NAME]`
    pub(crate) agents: BTreeMap<String, Setting>,
    /// `[auth.AGENT]`: credentials by agent and by the name of the way to authenticate.
    pub(crate) auth: BTreeMap<String, BTreeMap<String, String>>,
    /// Credentials that name no agent, with the file that they are in. They are not used.
    pub(crate) unassigned_auth: BTreeMap<String, (String, PathBuf)>,
    /// Other tables, for the parts of the program that own them, by name.
    pub(crate) tables: BTreeMap<String, Setting>,
    /// Where the files are, whether or not they exist.
    pub(crate) user_file: PathBuf,
    pub(crate) project_file: PathBuf,
    pub(crate) has_user_file: bool,
    pub(crate) has_project_file: bool,
    pub(crate) project: ProjectTrust,
    pub(crate) ignored: Vec<Ignored>,
    /// Problems of the files that do not stop the command.
    pub(crate) warnings: Vec<String>,
}

impl Config {
    /// The value of a key and its source. `None` if it is not set.
    pub(crate) fn setting(&self, key: &Key) -> Option<&Setting> {
        self.sources.get(key.name)
    }

    /// The source of a key's value.
    pub(crate) fn source(&self, key: &Key) -> &Source {
        self.setting(key).map_or(&Source::Default, |setting| &setting.source)
    }

    /// Decodes the values that hold.
    fn decode(&mut self) -> Result<()> {
        let values = self.sources.iter().map(|(name, setting)| ((*name).to_owned(), setting.value.clone()));
        self.settings =
            Settings::deserialize(toml::Value::Table(values.collect())).context("the settings")?;
        Ok(())
    }
}

/// A failure in a file of settings.
pub(crate) fn wrong(path: &std::path::Path, what: impl fmt::Display) -> Failure {
    Failure::usage(format_args!("{}: {what}", path.display()))
}

/// Parses the text of a setting.
pub(crate) fn parse_value(key: &Key, text: &str) -> Result<toml::Value> {
    let text = text.trim();
    let value = match key.kind {
        keys::Kind::Text | keys::Kind::Path => toml::Value::String(text.to_owned()),
        keys::Kind::OneOf(_) => toml::Value::String(text.to_owned()),
        keys::Kind::Yes => match text {
            "true" | "yes" | "on" | "1" => toml::Value::Boolean(true),
            "false" | "no" | "off" | "0" => toml::Value::Boolean(false),
            _ => return Err(Failure::usage(format_args!("`{}` is true or false, not `{text}`", key.name))),
        },
        keys::Kind::Count { .. } => match text.parse::<i64>() {
            Ok(number) => toml::Value::Integer(number),
            Err(_) => {
                return Err(Failure::usage(format_args!("`{}` is a whole number, not `{text}`", key.name)));
            }
        },
        keys::Kind::Number { .. } => match text.parse::<f64>() {
            Ok(number) => toml::Value::Float(number),
            Err(_) => return Err(Failure::usage(format_args!("`{}` is a number, not `{text}`", key.name))),
        },
    };
    check(key, &value)?;
    Ok(value)
}

impl Config {
    /// Returns whether an agent is known by this name, from the settings or from the built-in
    /// table.
    pub(crate) fn is_known_agent(&self, name: &str) -> bool {
        self.agents.contains_key(name) || agents::builtin(name).is_some()
    }

    /// Finds an agent: by a name of the settings or of the built-in table, else as a command.
    pub(crate) fn resolve_agent(&self, name: &str) -> Result<AgentSpec> {
        let found = if let Some(setting) = self.agents.get(name) {
            agents::entry_spec(name, &setting.value)?
        } else if let Some(agent) = agents::builtin(name) {
            match self.agents.get(agent.name) {
                Some(setting) => agents::entry_spec(agent.name, &setting.value)?,
                None => agent.spec(),
            }
        } else {
            return Ok(AgentSpec::new(name, Address::parse(name)?));
        };
        Ok(AgentSpec { known: true, ..found })
    }

    /// Returns one line about the settings that are ignored because the folder is not trusted.
    pub(crate) fn restriction(&self) -> Option<String> {
        let project = &self.project;
        let mut parts: Vec<String> =
            self.ignored.iter().map(|ignored| format!("`{}`", ignored.key)).collect();
        if !project.is_trusted() {
            let count = |kind| project.files.files().iter().filter(|file| file.kind == kind).count();
            for (kind, name) in [(FileKind::Command, "slash command"), (FileKind::Skill, "skill")] {
                match count(kind) {
                    0 => {}
                    1 => parts.push(format!("1 {name}")),
                    many => parts.push(format!("{many} {name}s")),
                }
            }
            let instructions =
                project.files.files().iter().filter(|file| file.kind == FileKind::Instructions);
            parts.extend(
                instructions.take(3).map(|file| project.files.short(&file.path).display().to_string()),
            );
        }
        if parts.is_empty() {
            return None;
        }
        let (what, does) = (parts.join(", "), if parts.len() == 1 { "does" } else { "do" });
        Some(format!(
            "this folder is not trusted, so {what} {does} not take effect; trust it: attache trust add (or --trust)"
        ))
    }
}

/// A value as JSON; a text, a number and a list of them read the same in TOML.
pub(crate) fn to_json(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => json!(text),
        toml::Value::Integer(number) => json!(number),
        // A whole number of seconds reads as one.
        toml::Value::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => json!(*number as i64),
        toml::Value::Float(number) => json!(number),
        toml::Value::Boolean(yes) => json!(yes),
        toml::Value::Datetime(time) => json!(time.to_string()),
        toml::Value::Array(items) => items.iter().map(to_json).collect(),
        toml::Value::Table(table) => {
            Value::Object(table.iter().map(|(key, value)| (key.clone(), to_json(value))).collect())
        }
    }
}

/// The default of a setting.
pub(crate) fn default_value(name: &str) -> Option<toml::Value> {
    let key = KEYS.iter().find(|key| key.name == name)?;
    parse_value(key, key.default?).ok()
}

/// Fails if a setting cannot have this value.
pub(crate) fn check_setting(name: &str, value: &toml::Value) -> Result<()> {
    match KEYS.iter().find(|key| key.name == name) {
        Some(key) => check(key, value),
        None => Err(Failure::usage(format_args!("there is no setting `{name}`"))),
    }
}

/// Fails if a value does not fit its key.
fn check(key: &Key, value: &toml::Value) -> Result<()> {
    let number = match value {
        toml::Value::Integer(number) => Some(*number as f64),
        toml::Value::Float(number) => Some(*number),
        _ => None,
    };
    let (fits, wanted) = match key.kind {
        keys::Kind::Text | keys::Kind::Path => (value.is_str(), "a text".to_owned()),
        keys::Kind::Yes => (value.is_bool(), "true or false".to_owned()),
        keys::Kind::OneOf(choices) => {
            let fits = value.as_str().is_some_and(|value| choices.contains(&value));
            (fits, format!("one of {}", choices.join(", ")))
        }
        keys::Kind::Count { least, most } => {
            let fits = value.as_integer().is_some_and(|number| (least..=most).contains(&number));
            (fits, format!("a whole number from {least} to {most}"))
        }
        keys::Kind::Number { above, most } => {
            let fits = number.is_some_and(|number| number > above && number <= most);
            let wanted = match above < 0.0 {
                true => format!("a number from 0 to {most}"),
                false => format!("a number above 0, up to {most}"),
            };
            (fits, wanted)
        }
    };
    if fits {
        Ok(())
    } else {
        Err(Failure::usage(format_args!("`{}` is {wanted}, not {}", key.name, to_json(value))))
    }
}
