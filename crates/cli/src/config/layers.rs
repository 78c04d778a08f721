//! Reads the layers of settings and merges them.

use std::io;
use std::path::{Component, Path, PathBuf};

use attache_conn::private;
use attache_host::bounded::{FinalLink, read_text_bounded};
use attache_host::trust::{FileKind, LARGEST_FILE, ProjectFiles, TrustStore};

use super::keys::{GUARDED_TABLES, Key, Kind, Project};
use super::{
    Config, Ignored, KEYS, PROJECT_FILE, ProjectTrust, Setting, Source, TRUST_VARIABLE, check, parse_value,
    wrong,
};
use crate::args::{Flags, nearest};
use crate::error::Result;
use crate::paths::Paths;

/// All settings for a command in a directory.
pub(crate) fn load(paths: &Paths, cwd: &Path, flags: Option<&Flags>) -> Result<Config> {
    let mut config = fallback(paths, cwd);
    config.merge_installed(paths);
    config.merge_credentials(paths);
    if let Some(table) = read(&config.user_file)? {
        config.has_user_file = true;
        let source = Source::User(config.user_file.clone());
        config.merge(table, &source, true)?;
    }
    let mut files = ProjectFiles::scan(cwd);
    let settings =
        files.files().iter().find(|file| file.kind == FileKind::Settings).map(|file| file.path.clone());
    let table = match &settings {
        Some(path) => read_project(path, files.root())?,
        None => None,
    };
    if let (Some(table), Some(path)) = (&table, &settings) {
        config.has_project_file = true;
        config.project_file.clone_from(path);
        for named in named_files(table, path, files.root()) {
            files.add(named, FileKind::Named);
        }
    }
    config.project = ProjectTrust::new(paths, files, flags);
    if let Some(table) = table {
        let source = Source::Project(config.project_file.clone());
        config.merge(table, &source, config.project.is_trusted())?;
    }
    config.merge_env()?;
    if let Some(flags) = flags {
        config.merge_flags(flags)?;
    }
    config.decode()?;
    Ok(config)
}

/// The built-in settings, for commands that work without a valid settings file.
pub(crate) fn fallback(paths: &Paths, cwd: &Path) -> Config {
    let mut config =
        Config { user_file: paths.config_file(), project_file: cwd.join(PROJECT_FILE), ..Config::default() };
    for key in KEYS {
        if let Some(value) = key.default.and_then(|text| parse_value(key, text).ok()) {
            config.sources.insert(key.name, Setting { value, source: Source::Default });
        }
    }
    let decoded = config.decode();
    debug_assert!(decoded.is_ok(), "a key has no field, or a required field no default: {decoded:?}");
    config
}

/// Reads the settings of a project. A link must not lead out of it.
fn read_project(path: &Path, root: &Path) -> Result<Option<toml::Table>> {
    let real = path.canonicalize().map_err(|error| wrong(path, error))?;
    if !real.starts_with(root) {
        return Err(wrong(path, "it is a link that points outside of the project"));
    }
    read(path)
}

fn read(path: &Path) -> Result<Option<toml::Table>> {
    let text = match read_text_bounded(path, LARGEST_FILE, FinalLink::Follow) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(wrong(path, error)),
    };
    let table = text.parse::<toml::Table>().map_err(|error| wrong(path, error.to_string().trim_end()))?;
    Ok(Some(table))
}

/// Files that a project's settings name: a policy, a program, a script in a command line. Trust
/// covers their content too. They are listed by the path that the settings name, because a link on
/// the way may lead elsewhere later.
fn named_files(table: &toml::Table, settings: &Path, root: &Path) -> Vec<PathBuf> {
    let base = settings.parent().unwrap_or(root);
    let mut words = Vec::new();
    table.values().for_each(|value| add_words(value, &mut words));
    let is_inside = |path: &PathBuf| {
        let is_below = path.starts_with(root) && path.components().all(|part| part != Component::ParentDir);
        is_below || path.canonicalize().is_ok_and(|real| real.starts_with(root))
    };
    let mut files: Vec<PathBuf> = words.into_iter().map(|word| base.join(word)).filter(is_inside).collect();
    // A policy counts as the project's wherever it is; programs outside belong to the user.
    files.extend(table.get("permission_policy").and_then(toml::Value::as_str).map(|word| base.join(word)));
    files.retain(|path| path.symlink_metadata().is_ok() && !path.is_dir());
    files.sort();
    files.dedup();
    files
}

fn add_words(value: &toml::Value, words: &mut Vec<String>) {
    match value {
        toml::Value::String(text) => {
            words.extend(crate::agents::split(text).unwrap_or_default());
            words.push(text.clone());
        }
        toml::Value::Array(items) => items.iter().for_each(|item| add_words(item, words)),
        toml::Value::Table(table) => table.values().for_each(|value| add_words(value, words)),
        _ => {}
    }
}

impl ProjectTrust {
    fn new(paths: &Paths, files: ProjectFiles, flags: Option<&Flags>) -> Self {
        let by_flag = flags.is_some_and(|flags| flags.trust);
        let by_env = std::env::var_os(TRUST_VARIABLE).is_some_and(|value| value == "1");
        let status = TrustStore::new(&paths.state).status(&files);
        ProjectTrust { files, status, overridden: by_flag || by_env }
    }
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
                    self.sources.insert(key.name, Setting { value, source: source.clone() });
                }
            }
        }
        Ok(())
    }

    /// The reason why a project's file may not set this; `None` if it may.
    fn refuses(&self, key: &Key, value: &toml::Value, trusted: bool) -> Option<&'static str> {
        if trusted {
            return None;
        }
        let now = self.sources.get(key.name).map(|setting| &setting.value);
        match key.project {
            Project::Free => None,
            Project::Consent => Some("this folder is not trusted"),
            Project::Narrow if narrows(key, now, value) => None,
            Project::Narrow => Some("it would allow more than your own settings"),
        }
    }

    fn merge_table(&mut self, name: &str, value: toml::Value, source: &Source, file: &Path) -> Result<()> {
        match (name, value) {
            ("agents", toml::Value::Table(agents)) => {
                for (agent, value) in agents {
                    crate::agents::entry_spec(&agent, &value).map_err(|failure| wrong(file, failure))?;
                    self.agents.insert(agent, Setting { value, source: source.clone() });
                }
            }
            ("auth", toml::Value::Table(auth)) => self.merge_auth(auth, file)?,
            ("mcp_servers", value @ (toml::Value::Array(_) | toml::Value::Table(_))) => {
                self.tables.insert(name.to_owned(), Setting { value, source: source.clone() });
            }
            _ => return Err(wrong(file, format_args!("`{name}` must be a table"))),
        }
        Ok(())
    }

    fn merge_auth(&mut self, auth: toml::Table, file: &Path) -> Result<()> {
        if let Err(error) = private::check_unreadable(file) {
            self.warnings.push(format!("its credentials are not used: {error}"));
            return Ok(());
        }
        for (name, value) in auth {
            match value {
                toml::Value::Table(methods) => {
                    for (method, credential) in methods {
                        let text = credential.as_str().ok_or_else(|| {
                            wrong(file, format_args!("`auth.{name}.{method}` must be a string"))
                        })?;
                        self.auth.entry(name.clone()).or_default().insert(method, text.to_owned());
                    }
                }
                toml::Value::String(text) => self.leave_unassigned(name, text, file),
                _ => {
                    return Err(wrong(
                        file,
                        format_args!("`auth.{name}` must be a table of credentials of the agent `{name}`"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Sets a credential without an agent aside: otherwise every agent would get it.
    fn leave_unassigned(&mut self, method: String, credential: String, file: &Path) {
        self.warnings.push(format!(
            "the credential `{method}` in {} is not used because it names no agent; \
             `attache auth login AGENT` moves it to that agent",
            file.display()
        ));
        self.unassigned_auth.insert(method, (credential, file.to_owned()));
    }

    /// Keeps tables for other parts of the program; warns about unknown single values.
    fn unknown(&mut self, name: String, value: toml::Value, source: &Source, file: &Path) {
        if value.is_table() && matches!(source, Source::User(_)) {
            self.tables.insert(name, Setting { value, source: source.clone() });
            return;
        }
        let near = nearest(&name, KEYS.iter().map(|key| key.name));
        let meant = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
        self.warnings.push(format!("{}: there is no setting `{name}`{meant}", file.display()));
    }

    /// Adds agents installed from registries. Entries of the user override them.
    fn merge_installed(&mut self, paths: &Paths) {
        let source = Source::Registry(attache_registry::lock_file(&paths.data));
        match installed_agents(&paths.data) {
            Ok(entries) => {
                let settings =
                    entries.into_iter().map(|(id, value)| (id, Setting { value, source: source.clone() }));
                self.agents.extend(settings);
            }
            // A damaged lock file disables these agents only.
            Err(failure) => self.warnings.push(failure.message),
        }
    }

    /// Adds saved credentials. Those of the settings override them.
    fn merge_credentials(&mut self, paths: &Paths) {
        match crate::credentials::load(paths) {
            Ok(stored) => {
                self.auth.extend(stored.auth);
                for (method, credential) in stored.unassigned {
                    self.leave_unassigned(method, credential, &crate::credentials::credentials_file(paths));
                }
            }
            Err(failure) => self.warnings.push(failure.message),
        }
    }

    fn merge_env(&mut self) -> Result<()> {
        for key in KEYS {
            let env = key.env();
            let Some(text) = std::env::var_os(&env).filter(|text| !text.is_empty()) else { continue };
            let value = parse_value(key, &text.to_string_lossy())
                .map_err(|failure| failure.context(format_args!("environment {env}")))?;
            self.sources.insert(key.name, Setting { value, source: Source::Env(env) });
        }
        Ok(())
    }

    fn merge_flags(&mut self, flags: &Flags) -> Result<()> {
        for key in KEYS {
            if let Some(text) = key.flag.and_then(|field| field(flags).as_deref()) {
                let flag = key.name.replace('_', "-");
                let value =
                    parse_value(key, text).map_err(|failure| failure.context(format_args!("--{flag}")))?;
                self.set_by_flag(key.name, value, &flag);
            }
        }
        for mode in &flags.permission_modes {
            self.set_by_flag("permissions", toml::Value::String((*mode).to_owned()), mode);
        }
        for (given, flag, key, value) in [
            (flags.no_fs, "no-fs", "fs", false),
            (flags.no_terminal, "no-terminal", "terminal", false),
            (flags.sandbox, "sandbox", "sandbox", true),
        ] {
            if given {
                self.set_by_flag(key, toml::Value::Boolean(value), flag);
            }
        }
        Ok(())
    }

    fn set_by_flag(&mut self, key: &'static str, value: toml::Value, flag: &str) {
        self.sources.insert(key, Setting { value, source: Source::Flag(flag.to_owned()) });
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

/// Returns the installed agents as entries of `[agents]` in the settings.
fn installed_agents(data: &Path) -> Result<Vec<(String, toml::Value)>> {
    let text = |text: &str| toml::Value::String(text.to_owned());
    let entry = |agent: &attache_registry::InstalledAgent| {
        let argv = agent.command(data).iter().map(|word| text(word)).collect();
        let env: toml::Table = agent.env.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        let mut table = toml::Table::new();
        table.insert("argv".to_owned(), toml::Value::Array(argv));
        table.insert("env".to_owned(), toml::Value::Table(env));
        toml::Value::Table(table)
    };
    Ok(attache_registry::installed(data)?.values().map(|agent| (agent.id.clone(), entry(agent))).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn trust_covers_files_by_the_path_that_names_them() {
        let dir = private::TempDir::new("layers").unwrap();
        let root = dir.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        for file in ["project/run.sh", "project/sub/policy.json", "outside.json", "outside.sh"] {
            std::fs::write(root.parent().unwrap().join(file), "{}").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink("../outside.json", root.join("link.json")).unwrap();
        let named = |text: &str| {
            named_files(&text.parse().unwrap(), &root.join(PROJECT_FILE), &root)
                .into_iter()
                .map(|path| path.strip_prefix(&root).unwrap().display().to_string())
                .collect::<Vec<_>>()
        };
        assert_eq!(named("[agents.x]\ncommand = 'sh ./run.sh'"), ["run.sh"]);
        assert_eq!(named("[agents.x]\nargv = ['sh', '../outside.sh', 'sub']"), [""; 0]);
        assert_eq!(named("permission_policy = 'missing.json'"), [""; 0]);
        #[cfg(unix)]
        assert_eq!(named("[agents.x]\nargv = ['link.json']"), ["link.json"]);
        for policy in ["sub/policy.json", "../outside.json"] {
            let found = named(&format!("permission_policy = '{policy}'"));
            assert!(found.iter().any(|path| path == policy), "{found:?}");
        }
    }
}
