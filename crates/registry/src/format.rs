//! The format of registries: `registry.json` with a list of agents, or the `agent.json` of one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An agent as an index describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its id: lower-case letters, digits and hyphens.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Its version.
    pub version: String,
    /// A description, perhaps empty.
    pub description: String,
    /// Its website or repository.
    pub website: Option<String>,
    /// Its license.
    pub license: Option<String>,
    /// Its authors.
    pub authors: Vec<String>,
    /// Its distributions, for this machine or not.
    pub distributions: Vec<Distribution>,
}

/// One way to install an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// The installation method.
    pub method: Method,
    /// The package, or the address of the archive.
    pub from: String,
    /// The command of the package, or the program in the archive.
    pub command: Option<String>,
    /// Arguments of the command.
    pub args: Vec<String>,
    /// Variables of the command.
    pub env: BTreeMap<String, String>,
    /// The platform of an archive.
    pub platform: Option<String>,
    /// The SHA-256 of an archive, in lower case.
    pub sha256: Option<String>,
}

/// An installation method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// An archive with a program.
    Binary,
    /// An npm package that npx runs.
    Npx,
    /// A Python package that uvx runs.
    Uvx,
}

impl Method {
    /// All methods in order of preference: a program needs no runner.
    pub const ALL: [Method; 3] = [Method::Binary, Method::Npx, Method::Uvx];

    /// Returns the name in indexes and options.
    pub fn name(self) -> &'static str {
        match self {
            Method::Binary => "binary",
            Method::Npx => "npx",
            Method::Uvx => "uvx",
        }
    }

    /// Finds a method by its name.
    pub fn from_name(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// Returns the name of this platform in indexes.
pub(crate) fn platform() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    format!("{system}-{}", std::env::consts::ARCH)
}

/// Reads an index. Invalid entries are returned as messages, so that one mistake does not hide all
/// others.
pub(crate) fn read(text: &str) -> Result<(Vec<Entry>, Vec<String>), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    let agents: Vec<&Value> = match value.get("agents") {
        Some(Value::Array(agents)) => agents.iter().collect(),
        // The description of one agent.
        None if value.get("distribution").is_some() => vec![&value],
        _ => return Err("it is not a registry: it has no list `agents`".to_owned()),
    };
    let (mut entries, mut invalid) = (Vec::new(), Vec::new());
    for agent in agents {
        match entry(agent) {
            Ok(entry) => entries.push(entry),
            Err(what) => {
                let id = agent.get("id").and_then(Value::as_str).unwrap_or("an agent without an id");
                invalid.push(format!("{id}: {what}"));
            }
        }
    }
    Ok((entries, invalid))
}

fn entry(value: &Value) -> Result<Entry, String> {
    let id = required(value, "id")?;
    // The id becomes the name of a directory and of an agent.
    let letters = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    if !id.starts_with(|first: char| first.is_ascii_lowercase()) || !letters(&id) || id.len() > 64 {
        return Err(
            "invalid `id`: use lower-case letters, digits and hyphens, and begin with a letter".to_owned()
        );
    }
    let version = required(value, "version")?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-+_".contains(letter);
    if !version.chars().all(plain) || version.starts_with('.') || version.len() > 100 {
        return Err(format!("invalid `version`: {version:?}"));
    }
    let Some(Value::Object(distribution)) = value.get("distribution") else {
        return Err("`distribution` is missing".to_owned());
    };
    let mut distributions = Vec::new();
    for (name, distribution) in distribution {
        match Method::from_name(name) {
            Some(Method::Binary) => {
                for (platform, target) in distribution.as_object().ok_or("`binary` is not an object")? {
                    distributions
                        .push(binary(platform, target).map_err(|what| format!("{platform}: {what}"))?);
                }
            }
            Some(method) => distributions.push(package(method, distribution)?),
            // Methods of the future.
            None => {}
        }
    }
    if distributions.is_empty() {
        return Err("it has no known distribution".to_owned());
    }
    Ok(Entry {
        name: optional(value, "name").unwrap_or_else(|| id.clone()),
        id,
        version,
        description: optional(value, "description").unwrap_or_default(),
        website: optional(value, "website").or_else(|| optional(value, "repository")),
        license: optional(value, "license"),
        authors: value.get("authors").map(texts).transpose()?.unwrap_or_default(),
        distributions,
    })
}

fn package(method: Method, value: &Value) -> Result<Distribution, String> {
    let from = required(value, "package")?;
    // It becomes an argument and must not be read as an option.
    if from.starts_with('-') || from.contains(char::is_whitespace) {
        return Err(format!("invalid `package`: {from:?}"));
    }
    let command = optional(value, "cmd");
    if command.as_ref().is_some_and(|command| command.starts_with('-')) {
        return Err("`cmd` begins with a hyphen".to_owned());
    }
    Ok(Distribution {
        method,
        from,
        command,
        args: args(value)?,
        env: env(value)?,
        platform: None,
        sha256: None,
    })
}

fn binary(platform: &str, value: &Value) -> Result<Distribution, String> {
    let sha256 = match value.get("sha256") {
        None | Some(Value::Null) => None,
        Some(Value::String(text))
            if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            Some(text.to_ascii_lowercase())
        }
        // An invalid checksum must not pass as a missing one.
        Some(_) => return Err("`sha256` is not 64 hexadecimal digits".to_owned()),
    };
    Ok(Distribution {
        method: Method::Binary,
        from: required(value, "archive")?,
        command: Some(required(value, "cmd")?),
        args: args(value)?,
        env: env(value)?,
        platform: Some(platform.to_owned()),
        sha256,
    })
}

fn required(value: &Value, key: &str) -> Result<String, String> {
    optional(value, key).ok_or_else(|| format!("`{key}` is missing"))
}

fn optional(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn args(value: &Value) -> Result<Vec<String>, String> {
    match value.get("args") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(list) => texts(list),
    }
}

fn texts(value: &Value) -> Result<Vec<String>, String> {
    let list = value.as_array().ok_or("expected a list of strings")?;
    list.iter()
        .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| "expected a list of strings".to_owned()))
        .collect()
}

fn env(value: &Value) -> Result<BTreeMap<String, String>, String> {
    let map = match value.get("env") {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(map)) => map,
        Some(_) => return Err("`env` is not an object".to_owned()),
    };
    map.iter()
        .map(|(name, value)| match value.as_str() {
            Some(value) if !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0') => {
                Ok((name.clone(), value.to_owned()))
            }
            _ => Err(format!("invalid variable in `env`: {name:?}")),
        })
        .collect()
}

impl Entry {
    /// Returns the distributions for this machine, whether or not their runners are installed, best
    /// first.
    pub fn distributions_here(&self) -> Vec<&Distribution> {
        let here = platform();
        let mut distributions: Vec<&Distribution> = self
            .distributions
            .iter()
            .filter(|distribution| distribution.platform.as_ref().is_none_or(|platform| *platform == here))
            .collect();
        distributions
            .sort_by_key(|distribution| Method::ALL.iter().position(|method| *method == distribution.method));
        distributions
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn all_ways_are_read() {
        let text = r#"{"version":"1.0.0","agents":[{
            "id":"some-agent","name":"Some","version":"1.2.3","description":"d","authors":["A"],"license":"MIT",
            "distribution":{
                "npx":{"package":"@some/agent@1.2.3","cmd":"some","args":["--acp"],"env":{"A":"1"}},
                "uvx":{"package":"some-agent==1.2.3"},
                "binary":{"linux-x86_64":{"archive":"https://example.com/a.tgz","cmd":"./a",
                    "sha256":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}},
                "flatpak":{"id":"x"}}}]}"#;
        let (entries, invalid) = read(text).unwrap();
        assert!(invalid.is_empty(), "{invalid:?}");
        let entry = &entries[0];
        assert_eq!(entry.distributions.len(), 3);
        let npx = entry.distributions.iter().find(|distribution| distribution.method == Method::Npx).unwrap();
        assert_eq!((npx.command.as_deref(), npx.args.len(), npx.env["A"].as_str()), (Some("some"), 1, "1"));
        let binary =
            entry.distributions.iter().find(|distribution| distribution.method == Method::Binary).unwrap();
        assert_eq!(binary.sha256.as_deref(), Some("a".repeat(64).as_str()));
    }

    #[test]
    fn the_description_of_one_agent_is_a_registry_too() {
        let text = r#"{"id":"one","version":"1.0.0","distribution":{"uvx":{"package":"one"}}}"#;
        assert_eq!(read(text).unwrap().0[0].name, "one");
    }

    #[test]
    fn slips_hide_only_their_own_agent() {
        let agent = |id: &str, rest: &str| format!(r#"{{"id":"{id}","version":"1.0.0"{rest}}}"#);
        let distribution = r#","distribution":{"npx":{"package":"x"}}"#;
        let wrong = [
            agent("../evil", distribution),
            agent("Upper", distribution),
            agent("none", ""),
            agent("empty", r#","distribution":{}"#),
            agent("option", r#","distribution":{"npx":{"package":"--call=evil"}}"#),
            agent(
                "sum",
                r#","distribution":{"binary":{"linux-x86_64":{"archive":"a","cmd":"b","sha256":"short"}}}"#,
            ),
            agent("bad-env", r#","distribution":{"npx":{"package":"x","env":{"A=B":"1"}}}"#),
            r#"{"id":"v","version":"../1","distribution":{"npx":{"package":"x"}}}"#.to_owned(),
        ];
        let text = format!(r#"{{"agents":[{},{}]}}"#, wrong.join(","), agent("good", distribution));
        let (entries, invalid) = read(&text).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(invalid.len(), wrong.len(), "{invalid:?}");
        assert!(read("[]").is_err() && read("nonsense").is_err());
    }
}
