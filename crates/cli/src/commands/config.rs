//! `attache config …`

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use attache_host::secrets::is_secret_name;
use attache_host::trust::TrustStore;
use serde_json::{Map, Value, json};

use crate::config::{
    Config, GUARDED_TABLES, KEYS, Kind, PROJECT_FILE, Source, load, parse_value, remove_setting, to_json,
    write_file, write_setting,
};
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::output::Format;

/// Prints every setting with its value and source.
pub(crate) fn show(cx: &Cx) -> Result<()> {
    let config = &cx.config;
    if cx.output.format == Format::Json {
        cx.output.json(&as_json(config));
        return Ok(());
    }
    let mut rows: Vec<(String, String)> = Vec::new();
    for key in KEYS {
        match config.setting(key) {
            Some(setting) => {
                rows.push((format!("{} = {}", key.name, to_json(&setting.value)), setting.source.to_string()))
            }
            None => rows.push((format!("{} is not set", key.name), key.about.to_owned())),
        }
    }
    for (name, setting) in &config.agents {
        let command = crate::agents::describe_entry(&setting.value);
        rows.push((format!("agents.{name} = {command}"), setting.source.to_string()));
    }
    // Credentials are never shown.
    rows.extend(auth_keys(config).map(|key| (format!("auth.{key} = …"), "a credential".to_owned())));
    for (name, setting) in &config.tables {
        rows.push((format!("[{name}]"), setting.source.to_string()));
    }
    let width = rows.iter().map(|(left, _)| left.chars().count()).max().unwrap_or_default().min(60);
    let mut text = String::new();
    for (left, right) in rows {
        let _ = writeln!(text, "{left:<width$}  # {right}");
    }
    for ignored in &config.ignored {
        let file = config.project_file.display();
        let _ = writeln!(text, "# ignored in {file}: `{}`, {}", ignored.key, ignored.why);
    }
    cx.output.print(&text);
    Ok(())
}

/// Which agents have credentials for which ways to authenticate, as keys.
fn auth_keys(config: &Config) -> impl Iterator<Item = String> + '_ {
    let methods = |(agent, methods): (&String, &BTreeMap<String, String>)| {
        let agent = agent.clone();
        methods.keys().map(move |method| format!("{agent}.{method}")).collect::<Vec<_>>()
    };
    config.auth.iter().flat_map(methods)
}

fn as_json(config: &Config) -> Value {
    let mut settings = Map::new();
    for key in KEYS {
        let setting = config.setting(key);
        let value = setting.map_or(Value::Null, |setting| to_json(&setting.value));
        let source = setting.map(|setting| setting.source.to_string());
        settings.insert(key.name.to_owned(), json!({ "value": value, "source": source }));
    }
    let agents: Map<String, Value> = config
        .agents
        .iter()
        .map(|(name, setting)| {
            let command = crate::agents::describe_entry(&setting.value);
            (name.clone(), json!({ "command": command, "source": setting.source.to_string() }))
        })
        .collect();
    json!({
        "settings": settings,
        "agents": agents,
        "authMethods": auth_keys(config).collect::<Vec<_>>(),
        "paths": { "global": config.user_file, "project": config.project_file },
        "loaded": { "global": config.has_user_file, "project": config.has_project_file },
        "trusted": config.project.is_trusted(),
        "ignored": config.ignored.iter().map(|ignored| &ignored.key).collect::<Vec<_>>(),
    })
}

/// Creates a settings file.
pub(crate) fn init(cx: &Cx) -> Result<()> {
    let project = cx.flags.project;
    let path = if project { cx.cwd.join(PROJECT_FILE) } else { cx.config.user_file.clone() };
    let created = !path.exists();
    if created {
        write_file(&path, &template(project), project)?;
        if project {
            keep_trust(cx)?;
        }
    }
    match cx.output.format {
        Format::Json => cx.output.json(&json!({ "path": path, "created": created })),
        Format::Quiet => cx.output.line(path.display()),
        Format::Text if created => cx.output.line(format_args!("Created {}", path.display())),
        Format::Text => cx.output.line(format_args!("Config already exists: {}", path.display())),
    }
    Ok(())
}

/// All settings with their descriptions, commented out.
fn template(project: bool) -> String {
    let mut text = String::from(if project {
        "# Settings of this project for attache.\n# What could allow more than a user's own settings is left out until the folder is trusted (`attache trust add`).\n"
    } else {
        "# Settings of attache. `attache config show` says which values hold and where they come from.\n"
    });
    for key in KEYS {
        let example = match (key.default, key.kind) {
            (Some(value), Kind::Text | Kind::Path | Kind::OneOf(_)) => format!("{value:?}"),
            (Some(value), _) => value.to_owned(),
            (None, Kind::Count { .. } | Kind::Number { .. }) => "100".to_owned(),
            (None, _) => "\"…\"".to_owned(),
        };
        let _ = write!(text, "\n# {}.\n# {} = {example}\n", key.about, key.name);
    }
    text.push_str("\n# An agent of your own: `attache mine exec …`.\n# [agents.mine]\n# command = \"my-agent --acp\"\n# env = { LEVEL = \"debug\" }\n");
    text
}

/// Changes one value.
pub(crate) fn set(cx: &Cx) -> Result<()> {
    let project = cx.flags.project;
    let path = if project { cx.config.project_file.clone() } else { cx.config.user_file.clone() };
    let (key, text) = (cx.args.word(0).unwrap_or_default(), cx.args.word(1).unwrap_or_default());
    let value = match key {
        // An invalid policy is reported now and not with the next prompt.
        "permission_policy" => json!(crate::run::check_policy(text, &cx.cwd)?).to_string(),
        _ => literal(key, text)?,
    };
    write_setting(&path, key, &value, project)?;
    if project {
        keep_trust(cx)?;
    }
    match cx.output.format {
        Format::Json => cx.output.json(&json!({ "action": "config_written", "path": path, "key": key })),
        Format::Quiet => {}
        Format::Text => cx.output.line(format_args!("{key} = {value} in {}", path.display())),
    }
    Ok(())
}

/// The value as TOML: of the type of its key, or, in a table, of the type that the text looks like.
fn literal(key: &str, text: &str) -> Result<String> {
    if let Some(known) = KEYS.iter().find(|known| known.name == key) {
        let value = parse_value(known, text)?;
        return Ok(to_json(&value).to_string());
    }
    let table = key.split('.').next().unwrap_or_default();
    let dotted = key.contains('.') && key.split('.').all(|part| !part.is_empty());
    if !dotted || !plain(key) {
        return Err(unknown(key));
    }
    let structured =
        text.starts_with(['[', '{', '"']) && format!("v = {text}").parse::<toml::Table>().is_ok();
    let number = GUARDED_TABLES.iter().all(|(guarded, _)| *guarded != table) && text.parse::<i64>().is_ok();
    let yes = matches!(text, "true" | "false");
    Ok(if structured || number || yes { text.to_owned() } else { json!(text).to_string() })
}

fn unknown(key: &str) -> Failure {
    let failure = Failure::usage(format_args!("there is no setting `{key}`"));
    match crate::args::nearest(key, KEYS.iter().map(|key| key.name)) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("`attache config show` lists the settings"),
    }
}

/// Prints the value of a setting that holds.
pub(crate) fn get(cx: &Cx) -> Result<()> {
    let key = cx.args.word(0).unwrap_or_default();
    let config = &cx.config;
    let found = match KEYS.iter().find(|known| known.name == key) {
        Some(known) => config.setting(known).map(|setting| (&setting.value, &setting.source)),
        None => inner(config, key)?,
    };
    let Some((value, source)) = found else {
        return Err(Failure::runtime(format_args!("`{key}` is not set")));
    };
    match (cx.output.format, value.as_str()) {
        (Format::Json, _) => {
            cx.output.json(&json!({ "key": key, "value": to_json(value), "source": source.to_string() }));
        }
        (_, Some(text)) => cx.output.row(text),
        (_, None) => cx.output.row(to_json(value)),
    }
    Ok(())
}

/// The value of a key in a table, for example `agents.mine.command`.
fn inner<'c>(config: &'c Config, key: &str) -> Result<Option<(&'c toml::Value, &'c Source)>> {
    let parts: Vec<&str> = key.split('.').collect();
    let is_secret = |part: &&str| {
        let plain = part.to_ascii_lowercase();
        is_secret_name(part)
            || ["env", "headers"].contains(&&*plain)
            || ["key", "token"].iter().any(|word| plain.contains(word))
    };
    if parts.first() == Some(&"auth") || parts.iter().any(is_secret) {
        return Err(Failure::usage(format_args!("`{key}` may be a credential, which is never shown")));
    }
    let (setting, rest) = match parts.as_slice() {
        ["agents", name, rest @ ..] => (config.agents.get(*name), rest),
        [table, rest @ ..] if !rest.is_empty() => (config.tables.get(*table), rest),
        _ => return Err(unknown(key)),
    };
    let Some(setting) = setting else { return Ok(None) };
    let value = rest.iter().try_fold(&setting.value, |value, part| value.get(part));
    match value {
        Some(toml::Value::Table(table)) => {
            let keys: Vec<&str> = table.keys().map(String::as_str).collect();
            Err(Failure::usage(format_args!("`{key}` is a table; its keys: {}", keys.join(", "))))
        }
        value => Ok(value.map(|value| (value, &setting.source))),
    }
}

/// Removes one value.
pub(crate) fn unset(cx: &Cx) -> Result<()> {
    let project = cx.flags.project;
    let path = if project { &cx.config.project_file } else { &cx.config.user_file };
    let key = cx.args.word(0).unwrap_or_default();
    if !remove_setting(path, key, project)? {
        return Err(Failure::runtime(format_args!("`{key}` is not set in {}", path.display())));
    }
    if project {
        keep_trust(cx)?;
    }
    match cx.output.format {
        Format::Json => cx.output.json(&json!({ "action": "config_removed", "path": path, "key": key })),
        Format::Quiet => {}
        Format::Text => cx.output.line(format_args!("{key} removed from {}", path.display())),
    }
    Ok(())
}

/// Opens a settings file in the user's editor and reports what is wrong with it afterwards.
pub(crate) fn edit(cx: &Cx) -> Result<()> {
    let project = cx.flags.project;
    let path = if project { &cx.config.project_file } else { &cx.config.user_file };
    if !path.exists() {
        write_file(path, &template(project), project)?;
    }
    let status = crate::runtime::editor(path).status().context("cannot start the editor; set $EDITOR")?;
    if !status.success() {
        return Err(Failure::runtime(format_args!("the editor failed ({status})")));
    }
    let again = format!("attache config edit{}", if project { " --project" } else { "" });
    let now = load(&cx.paths, &cx.cwd, None).map_err(|failure| failure.hint(again))?;
    if project {
        keep_trust(cx)?;
    }
    for warning in &now.warnings {
        cx.output.note(warning);
    }
    match cx.output.format {
        Format::Json => cx.output.json(&json!({ "action": "config_edited", "path": path })),
        Format::Quiet => {}
        Format::Text => cx.output.line(format_args!("{} is valid", path.display())),
    }
    Ok(())
}

fn plain(key: &str) -> bool {
    key.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-'))
}

/// Prints the paths of the files.
pub(crate) fn path(cx: &Cx) -> Result<()> {
    let rows: [(&str, PathBuf); 5] = [
        ("user", cx.config.user_file.clone()),
        ("project", cx.config.project_file.clone()),
        ("state", cx.paths.state.clone()),
        ("cache", cx.paths.cache.clone()),
        ("data", cx.paths.data.clone()),
    ];
    if cx.output.format == Format::Json {
        let all: Map<String, Value> =
            rows.iter().map(|(name, path)| ((*name).to_owned(), json!(path))).collect();
        cx.output.json(&Value::Object(all));
        return Ok(());
    }
    for (name, path) in rows {
        cx.output.line(format_args!("{name}\t{}", path.display()));
    }
    Ok(())
}

/// Keeps a trusted folder trusted after the user changed its file.
fn keep_trust(cx: &Cx) -> Result<()> {
    if cx.config.project.status.is_trusted() {
        let now = load(&cx.paths, &cx.cwd, None)?;
        TrustStore::new(&cx.paths.state).set(&now.project.files, true).context("the trusted folders")?;
    }
    Ok(())
}
