//! Merges imported agents and MCP servers into a TOML text and keeps its comments and order.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use toml_edit::{Array, ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value, value};

use crate::error::{Failure, Result};

/// `[agents.NAME]` as text. `begins` are the mode and the model of new sessions.
pub(super) fn agent_section(
    name: &str,
    argv: &[String],
    env: &BTreeMap<String, String>,
    begins: [(&str, Option<&str>); 2],
) -> String {
    let mut agent = Table::new();
    agent.insert("argv", value(argv.iter().collect::<Array>()));
    for (name, begin) in begins {
        if let Some(begin) = begin {
            agent.insert(name, value(begin));
        }
    }
    if !env.is_empty() {
        agent.insert("env", value(env.iter().collect::<InlineTable>()));
    }
    let mut agents = Table::new();
    agents.set_implicit(true);
    agents.insert(name, Item::Table(agent));
    let mut document = DocumentMut::new();
    document.insert("agents", Item::Table(agents));
    document.to_string()
}

/// `[[mcp_servers]]` as text, or `None` if it is not an object or has a null in a list.
pub(super) fn server_section(server: &Json) -> Option<String> {
    let mut table = Table::new();
    for (name, member) in server.as_object()?.iter().filter(|(_, member)| !member.is_null()) {
        table.insert(name, value(to_toml(member)?));
    }
    let mut servers = ArrayOfTables::new();
    servers.push(table);
    let mut document = DocumentMut::new();
    document.insert("mcp_servers", Item::ArrayOfTables(servers));
    Some(document.to_string())
}

fn to_toml(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(yes) => Value::from(*yes),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::from(number),
            None => Value::from(number.as_f64()?),
        },
        Json::String(text) => Value::from(text),
        Json::Array(items) => Value::from(items.iter().map(to_toml).collect::<Option<Array>>()?),
        Json::Object(map) => {
            let members = map.iter().map(|(name, member)| Some((name.as_str(), to_toml(member)?)));
            Value::from(members.collect::<Option<InlineTable>>()?)
        }
    })
}

/// Appends sections, each under a comment that names their origin.
pub(super) fn append(file: &str, comment: &str, sections: &[String]) -> String {
    let mut out = file.trim_end().to_owned();
    for section in sections {
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        out.push_str(&format!("# {comment}\n{}", section.trim_end()));
    }
    out.push('\n');
    out
}

/// Removes an agent, however it is written.
pub(super) fn without_agent(file: &str, name: &str) -> Result<String> {
    let mut document: DocumentMut = file.parse().map_err(Failure::usage)?;
    if let Some(agents) = document.get_mut("agents").and_then(Item::as_table_like_mut) {
        agents.remove(name);
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn sections_read_back() {
        let env = BTreeMap::from([("A B".to_owned(), "\"x\"\n".to_owned())]);
        let section = agent_section(
            "my agent",
            &["a b".to_owned(), "c'\"".to_owned()],
            &env,
            [("mode", Some("plan")), ("model", None)],
        );
        let file = append("# mine\nformat = \"text\" # why\n\n\n", "From there.", &[section]);
        assert!(
            file.starts_with("# mine\nformat = \"text\" # why\n\n# From there.\n[agents.\"my agent\"]\n"),
            "{file}"
        );
        let table: toml::Table = file.parse().unwrap();
        let agent = &table["agents"]["my agent"];
        assert_eq!(agent["argv"][1].as_str(), Some("c'\""));
        assert_eq!((agent["mode"].as_str(), agent.get("model")), (Some("plan"), None));
        assert_eq!(agent["env"]["A B"].as_str(), Some("\"x\"\n"));
        let server =
            json!({ "name": "s", "args": ["x"], "env": [{ "name": "A", "value": "1" }], "type": null });
        let table: toml::Table = server_section(&server).unwrap().parse().unwrap();
        assert_eq!(table["mcp_servers"][0]["env"][0]["value"].as_str(), Some("1"));
    }

    #[test]
    fn one_agent_goes_and_the_rest_stays() {
        let file = "# a\n[agents.\"x\"] # this\nargv = ['x']\n[agents.x.env]\nA = '1'\n\n# b\n[agents.y]\nargv = ['y']\n";
        assert_eq!(without_agent(file, "x").unwrap(), "\n# b\n[agents.y]\nargv = ['y']\n");
        for file in ["agents = { x = { argv = ['x'] } }\n", "agents.x.argv = ['x']\n"] {
            let rest: toml::Table = without_agent(file, "x").unwrap().parse().unwrap();
            assert!(rest.get("agents").is_none_or(|agents| agents.get("x").is_none()), "{file}");
        }
    }
}
