//! Reads the layers and puts them on top of each other.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::keys::{GUARDED_TABLES, Key, Kind, MODES, Project};
use super::{Config, Ignored, KEYS, PROJECT_FILE, Setting, Source, check, parse_value, wrong};
use crate::args::{Call, nearest};
use crate::error::{Context as _, Result};
use crate::paths::{Paths, repository};

/// All settings for a command in a directory.
pub(crate) fn load(paths: &Paths, cwd: &Path, call: Option<&Call>) -> Result<Config> {
    let mut config = fallback(paths, cwd);
    config.merge_installed(paths);
    config.merge_credentials(paths);
    if let Some(table) = read(&config.user_file)? {
        config.has_user_file = true;
        let source = Source::User(config.user_file.clone());
        config.merge(table.1, &source, true)?;
    }
    if let Some((text, table)) = read(&config.project_file)? {
        config.has_project_file = true;
        config.trusted = is_trusted(paths, &config.project_file, &text);
        let source = Source::Project(config.project_file.clone());
        config.merge(table, &source, config.trusted)?;
    }
    config.merge_env()?;
    if let Some(call) = call {
        config.merge_flags(call)?;
    }
    Ok(config)
}

/// The settings where those of the user cannot be read: what is built in.
pub(crate) fn fallback(paths: &Paths, cwd: &Path) -> Config {
    let mut config =
        Config { user_file: paths.config_file(), project_file: project_file(cwd), ..Config::default() };
    for key in KEYS {
        if let Some(value) = key.default.and_then(|text| parse_value(key, text).ok()) {
            config.settings.insert(key.name, Setting { value, source: Source::Default });
        }
    }
    config
}

/// The project's file: the nearest one up to the root of the repository, or where it would be.
fn project_file(cwd: &Path) -> PathBuf {
    let root = repository(cwd).unwrap_or(cwd);
    let within = cwd.ancestors().take_while(|dir| dir.starts_with(root));
    let found = within.map(|dir| dir.join(PROJECT_FILE)).find(|path| path.is_file());
    found.unwrap_or_else(|| cwd.join(PROJECT_FILE))
}

fn read(path: &Path) -> Result<Option<(String, toml::Table)>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(path, error)),
    };
    let table = text.parse::<toml::Table>().map_err(|error| wrong(path, error.to_string().trim_end()))?;
    Ok(Some((text, table)))
}

/// The user agrees to a text, not to a path: whoever changes the file has to ask again.
fn is_trusted(paths: &Paths, file: &Path, text: &str) -> bool {
    fs::read_to_string(trust_file(paths, file)).is_ok_and(|agreed| agreed == trust_text(file, text))
}

/// Where the consent to a project's file is kept.
pub(super) fn trust_file(paths: &Paths, file: &Path) -> PathBuf {
    paths.trusted().join(crate::session_store::file_name(&file.to_string_lossy()))
}

/// What is kept: the path, so that two paths with one name are not mistaken, and the text.
pub(super) fn trust_text(file: &Path, text: &str) -> String {
    format!("{}\n{text}", file.display())
}

impl Config {
    fn merge(&mut self, table: toml::Table, source: &Source, trusted: bool) -> Result<()> {
        let file = match source {
            Source::User(path) | Source::Project(path) => path.clone(),
            _ => PathBuf::new(),
        };
        for (name, value) in table {
            if let Some((_, why)) = GUARDED_TABLES.iter().find(|(table, _)| *table == name) {
                if trusted {
                    self.merge_table(&name, value, source, &file)?;
                } else {
                    self.ignored.push(Ignored { key: name, why });
                }
                continue;
            }
            let Some(key) = KEYS.iter().find(|key| key.name == name) else {
                self.unknown(name, value, source, &file);
                continue;
            };
            check(key, &value).map_err(|failure| wrong(&file, failure))?;
            match self.refuses(key, &value, trusted) {
                Some(why) => self.ignored.push(Ignored { key: name, why }),
                None => {
                    self.settings.insert(key.name, Setting { value, source: source.clone() });
                }
            }
        }
        Ok(())
    }

    /// Why a project's file may not set this, if so.
    fn refuses(&self, key: &Key, value: &toml::Value, trusted: bool) -> Option<&'static str> {
        if trusted {
            return None;
        }
        let now = self.settings.get(key.name).map(|setting| &setting.value);
        match key.project {
            Project::Free => None,
            Project::Consent => Some("it needs your consent"),
            Project::Narrow if narrows(key, now, value) => None,
            Project::Narrow => Some("it would allow more than your own settings"),
        }
    }

    fn merge_table(&mut self, name: &str, value: toml::Value, source: &Source, file: &Path) -> Result<()> {
        match (name, value) {
            ("agents", toml::Value::Table(agents)) => {
                for (agent, value) in agents {
                    crate::agents::check_entry(&agent, &value).map_err(|failure| wrong(file, failure))?;
                    self.agents.insert(agent, Setting { value, source: source.clone() });
                }
            }
            ("auth", toml::Value::Table(auth)) => {
                for (method, credential) in auth {
                    let text = credential
                        .as_str()
                        .ok_or_else(|| wrong(file, format_args!("`auth.{method}` is a text")))?;
                    self.auth.insert(method, text.to_owned());
                }
            }
            ("mcp_servers", value @ (toml::Value::Array(_) | toml::Value::Table(_))) => {
                self.tables.insert(name.to_owned(), Setting { value, source: source.clone() });
            }
            _ => return Err(wrong(file, format_args!("`{name}` is a table"))),
        }
        Ok(())
    }

    /// Tables belong to other parts of the program; a single value of an unknown name is a slip.
    fn unknown(&mut self, name: String, value: toml::Value, source: &Source, file: &Path) {
        if value.is_table() && matches!(source, Source::User(_)) {
            self.tables.insert(name, Setting { value, source: source.clone() });
            return;
        }
        let near = nearest(&name, KEYS.iter().map(|key| key.name));
        let meant = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        self.warnings.push(format!("{}: there is no setting `{name}`{meant}", file.display()));
    }

    /// Agents from registries are known as if the user had written them down; what the user writes counts more.
    fn merge_installed(&mut self, paths: &Paths) {
        let source = Source::Registry(crate::registry::lock_file(&paths.data));
        match crate::registry::entries(&paths.data) {
            Ok(entries) => {
                let settings =
                    entries.into_iter().map(|(id, value)| (id, Setting { value, source: source.clone() }));
                self.agents.extend(settings);
            }
            // A damaged record is no reason to do nothing at all.
            Err(failure) => self.warnings.push(failure.message),
        }
    }

    /// Credentials that are kept apart from the settings; those of the settings count more.
    fn merge_credentials(&mut self, paths: &Paths) {
        match crate::auth::store::load(paths) {
            Ok(stored) => self.auth.extend(stored.auth),
            Err(failure) => self.warnings.push(failure.message),
        }
    }

    fn merge_env(&mut self) -> Result<()> {
        for key in KEYS {
            let Some(text) = std::env::var_os(key.env).filter(|text| !text.is_empty()) else { continue };
            let value = parse_value(key, &text.to_string_lossy())
                .map_err(|failure| failure.context(format_args!("environment {}", key.env)))?;
            self.settings.insert(key.name, Setting { value, source: Source::Env(key.env.to_owned()) });
        }
        Ok(())
    }

    fn merge_flags(&mut self, call: &Call) -> Result<()> {
        for key in KEYS {
            let Some(flag) = key.flag else { continue };
            // A command may have a flag of the same name that means something else.
            if let Some(text) = call.global(flag) {
                let value =
                    parse_value(key, text).map_err(|failure| failure.context(format_args!("--{flag}")))?;
                self.set_by_flag(key.name, value, flag);
            }
        }
        if let Some(text) = call.value("policy") {
            self.set_by_flag("permission_policy", toml::Value::String(text.to_owned()), "policy");
        }
        for mode in MODES.iter().filter(|mode| call.has(mode)) {
            self.set_by_flag("permissions", toml::Value::String((*mode).to_owned()), mode);
        }
        for (flag, key) in [("no-fs", "fs"), ("no-terminal", "terminal")] {
            if call.has(flag) {
                self.set_by_flag(key, toml::Value::Boolean(false), flag);
            }
        }
        Ok(())
    }

    fn set_by_flag(&mut self, key: &'static str, value: toml::Value, flag: &str) {
        self.settings.insert(key, Setting { value, source: Source::Flag(flag.to_owned()) });
    }
}

/// Whether `value` allows no more than `now`.
fn narrows(key: &Key, now: Option<&toml::Value>, value: &toml::Value) -> bool {
    let number =
        |value: &toml::Value| value.as_float().or_else(|| value.as_integer().map(|number| number as f64));
    match (key.kind, now) {
        (_, None) => true,
        (Kind::OneOf(choices), Some(now)) => {
            let rank = |value: &toml::Value| choices.iter().position(|choice| value.as_str() == Some(choice));
            rank(value) <= rank(now)
        }
        (Kind::Yes, Some(now)) => value.as_bool() <= now.as_bool(),
        (_, Some(now)) => number(value) <= number(now),
    }
}

/// Reads the file that the user is about to agree to.
pub(super) fn read_project(config: &Config) -> Result<String> {
    fs::read_to_string(&config.project_file).context(config.project_file.display())
}
