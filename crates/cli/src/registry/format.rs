//! The format of registries: `registry.json` with a list of agents, or the `agent.json` of one.

use std::collections::BTreeMap;

use serde_json::Value;

/// An agent as a registry describes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: String,
    pub(crate) website: Option<String>,
    pub(crate) license: Option<String>,
    pub(crate) authors: Vec<String>,
    /// The ways to get it, for this machine or not.
    pub(crate) ways: Vec<Way>,
}

/// A way to get an agent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Way {
    pub(crate) via: Via,
    /// The package, or the address of the archive.
    pub(crate) from: String,
    /// What to run: a command of the package, or a file of the archive.
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// For an archive, the platform that it is for.
    pub(crate) platform: Option<String>,
    /// For an archive, its SHA-256 in lower case.
    pub(crate) sha256: Option<String>,
}

/// What gets an agent onto the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    Binary,
    Npx,
    Uvx,
}

impl Via {
    /// In the order in which they are tried: a program of its own needs nothing else.
    pub(crate) const ALL: [Via; 3] = [Via::Binary, Via::Npx, Via::Uvx];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Via::Binary => "binary",
            Via::Npx => "npx",
            Via::Uvx => "uvx",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Via> {
        Via::ALL.into_iter().find(|via| via.name() == name)
    }
}

/// What registries call this machine.
pub(crate) fn platform() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    format!("{system}-{}", std::env::consts::ARCH)
}

/// Reads an index. What is wrong with single agents is told and the rest is used, so that one slip does not hide all others.
pub(super) fn read(text: &str) -> Result<(Vec<Entry>, Vec<String>), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    let agents: Vec<&Value> = match value.get("agents") {
        Some(Value::Array(agents)) => agents.iter().collect(),
        // The description of one agent.
        None if value.get("distribution").is_some() => vec![&value],
        _ => return Err("it is not a registry: it has no list `agents`".to_owned()),
    };
    let (mut entries, mut slips) = (Vec::new(), Vec::new());
    for agent in agents {
        match entry(agent) {
            Ok(entry) => entries.push(entry),
            Err(what) => {
                let id = agent.get("id").and_then(Value::as_str).unwrap_or("an agent without an id");
                slips.push(format!("{id}: {what}"));
            }
        }
    }
    Ok((entries, slips))
}

fn entry(value: &Value) -> Result<Entry, String> {
    let id = required(value, "id")?;
    // The id becomes the name of a directory and of an agent.
    let letters = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    if !id.starts_with(|first: char| first.is_ascii_lowercase()) || !letters(&id) || id.len() > 64 {
        return Err(
            "an `id` is made of small letters, digits and hyphens, and begins with a letter".to_owned()
        );
    }
    let version = required(value, "version")?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-+_".contains(letter);
    if !version.chars().all(plain) || version.starts_with('.') || version.len() > 100 {
        return Err(format!("`version` is not one: {version:?}"));
    }
    let Some(Value::Object(distribution)) = value.get("distribution") else {
        return Err("`distribution` is missing".to_owned());
    };
    let mut ways = Vec::new();
    for (name, way) in distribution {
        match Via::from_name(name) {
            Some(Via::Binary) => {
                for (platform, target) in way.as_object().ok_or("`binary` is not an object")? {
                    ways.push(binary(platform, target).map_err(|what| format!("{platform}: {what}"))?);
                }
            }
            Some(via) => ways.push(package(via, way)?),
            // Ways that are yet to come.
            None => {}
        }
    }
    if ways.is_empty() {
        return Err("it names no way to get it that is known".to_owned());
    }
    Ok(Entry {
        name: optional(value, "name").unwrap_or_else(|| id.clone()),
        id,
        version,
        description: optional(value, "description").unwrap_or_default(),
        website: optional(value, "website").or_else(|| optional(value, "repository")),
        license: optional(value, "license"),
        authors: value.get("authors").map(texts).transpose()?.unwrap_or_default(),
        ways,
    })
}

fn package(via: Via, value: &Value) -> Result<Way, String> {
    let from = required(value, "package")?;
    // It becomes an argument, and must not become an option.
    if from.starts_with('-') || from.contains(char::is_whitespace) {
        return Err(format!("`package` is not one: {from:?}"));
    }
    let command = optional(value, "cmd");
    if command.as_ref().is_some_and(|command| command.starts_with('-')) {
        return Err("`cmd` begins with a hyphen".to_owned());
    }
    Ok(Way { via, from, command, args: args(value)?, env: env(value)?, platform: None, sha256: None })
}

fn binary(platform: &str, value: &Value) -> Result<Way, String> {
    let sha256 = match value.get("sha256") {
        None | Some(Value::Null) => None,
        Some(Value::String(text))
            if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            Some(text.to_ascii_lowercase())
        }
        // A checksum that cannot be checked must not count as none.
        Some(_) => return Err("`sha256` is not 64 hexadecimal digits".to_owned()),
    };
    Ok(Way {
        via: Via::Binary,
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
    let list = value.as_array().ok_or("a list of texts is something else")?;
    list.iter()
        .map(|item| {
            item.as_str().map(str::to_owned).ok_or_else(|| "a list of texts holds something else".to_owned())
        })
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
            _ => Err(format!("`env` holds something that is not a variable: {name:?}")),
        })
        .collect()
}

impl Entry {
    /// The ways that are for this machine, whether or not their tools are there.
    pub(crate) fn ways_here(&self) -> Vec<&Way> {
        let here = platform();
        let mut ways: Vec<&Way> = self
            .ways
            .iter()
            .filter(|way| way.platform.as_ref().is_none_or(|platform| *platform == here))
            .collect();
        ways.sort_by_key(|way| Via::ALL.iter().position(|via| *via == way.via));
        ways
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
        let (entries, slips) = read(text).unwrap();
        assert!(slips.is_empty(), "{slips:?}");
        let entry = &entries[0];
        assert_eq!(entry.ways.len(), 3);
        let npx = entry.ways.iter().find(|way| way.via == Via::Npx).unwrap();
        assert_eq!((npx.command.as_deref(), npx.args.len(), npx.env["A"].as_str()), (Some("some"), 1, "1"));
        let binary = entry.ways.iter().find(|way| way.via == Via::Binary).unwrap();
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
        let way = r#","distribution":{"npx":{"package":"x"}}"#;
        let wrong = [
            agent("../evil", way),
            agent("Upper", way),
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
        let text = format!(r#"{{"agents":[{},{}]}}"#, wrong.join(","), agent("good", way));
        let (entries, slips) = read(&text).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(slips.len(), wrong.len(), "{slips:?}");
        assert!(read("[]").is_err() && read("nonsense").is_err());
    }
}
