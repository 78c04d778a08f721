//! `cargo xtask sources`: compares the sentences that rules quote with the documents.
//!
//! Takes a checkout of the specification's repository at the revision that the addresses name, and
//! the unpacked schema crate. Sentences of JSON-RPC and of RFCs are counted and not compared.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::repo;

const SOURCES: &str = "crates/check/sources.jsonl";
const USAGE: &str = "usage: cargo xtask sources SPECIFICATION SCHEMA-CRATE
  SPECIFICATION   a checkout of agentclientprotocol/agent-client-protocol at the revision of crates/check/src/sources.rs
  SCHEMA-CRATE    the unpacked crate agent-client-protocol-schema 1.15.1";

pub(crate) fn run(args: &[String]) -> Result<(), String> {
    let [specification, schema_crate] = args else { return Err(USAGE.to_owned()) };
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let (mut same, mut elsewhere, mut wrong) = (0, 0, 0);
    for line in repo::read(SOURCES)?.lines() {
        let rule: Value = serde_json::from_str(line).map_err(|error| format!("{SOURCES}: {error}"))?;
        for quote in rule["quotes"].as_array().into_iter().flatten() {
            let text = |key: &str| quote[key].as_str().unwrap_or_default();
            let is_there = match text("doc") {
                "acp" => document(&mut texts, specification, text("path"))?.contains(text("text")),
                "crate" => document(&mut texts, schema_crate, text("path"))?.contains(text("text")),
                "schema" => members(specification, text("path"))? == text("text"),
                _ => {
                    elsewhere += 1;
                    continue;
                }
            };
            if is_there {
                same += 1;
            } else {
                wrong += 1;
                println!("{}: not in {}: {}", rule["id"], text("path"), text("text"));
            }
        }
    }
    println!("{same} sentences are in their documents, {elsewhere} of other documents were not compared");
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} sentences are not where they are said to be")) }
}

/// The text of a document with every run of white space as one blank, without comment marks.
fn document<'a>(
    texts: &'a mut BTreeMap<String, String>,
    root: &str,
    path: &str,
) -> Result<&'a String, String> {
    let whole = Path::new(root).join(path);
    let key = whole.to_string_lossy().into_owned();
    if !texts.contains_key(&key) {
        let text = std::fs::read_to_string(&whole).map_err(|error| format!("{key}: {error}"))?;
        let plain = text.lines().map(|line| {
            let line = line.trim_start();
            line.strip_prefix("///").or(line.strip_prefix("//!")).unwrap_or(line)
        });
        let words: Vec<&str> = plain.flat_map(str::split_whitespace).collect();
        texts.insert(key.clone(), words.join(" "));
    }
    Ok(&texts[&key])
}

/// The members that a type of the schema requires, or the values that it lists.
fn members(root: &str, name: &str) -> Result<String, String> {
    let path = Path::new(root).join("schema/v1/schema.json");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let schema: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let of_type = &schema["$defs"][name];
    let join = |list: Vec<&str>| list.join(", ");
    if let Some(required) = of_type["required"].as_array() {
        return Ok(format!("required: {}", join(required.iter().filter_map(Value::as_str).collect())));
    }
    let values = of_type["oneOf"].as_array().into_iter().flatten();
    Ok(format!("one of: {}", join(values.filter_map(|value| value["const"].as_str()).collect())))
}
