//! The validator against the examples of the catalogue.

use std::collections::BTreeMap;

use attache_check::{Version, schema};
use serde_json::Value;

fn examples(file: &str) -> Vec<Value> {
    let path = format!("{}/../wire/tests/data/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    // Only 0x0A ends a line: one text holds U+2028.
    text.split('\n').filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Of version 1 as it is now.
fn is_ours(example: &Value) -> bool {
    example["v"] == 1 && ["stable", "unstable"].iter().any(|tier| example["tier"] == *tier)
}

/// The part of the message that the example's type is about.
fn payload(example: &Value) -> Option<&Value> {
    let message = &example["message"];
    ["params", "result", "error"].iter().find_map(|part| message.get(*part))
}

#[test]
fn every_valid_example_fits_and_has_no_unknown_members() {
    let mut count = 0;
    for example in examples("valid.jsonl").iter().filter(|example| is_ours(example)) {
        let (Some(name), Some(payload)) = (example["type"].as_str(), payload(example)) else { continue };
        if !schema::has(Version::V1, name) {
            continue;
        }
        let found = schema::validate(Version::V1, name, payload).map(|fits| fits.extras);
        assert_eq!(found, Ok(Vec::new()), "{}: {payload}", example["id"]);
        count += 1;
    }
    assert!(count > 150, "only {count} examples were looked at");
}

/// Invalid examples that fit all the same, and why that is right.
const FIT: &[(&str, &str)] = &[];

#[test]
fn every_example_that_the_schema_refuses_is_refused() {
    let excused: BTreeMap<_, _> = FIT.iter().copied().collect();
    let mut problems = Vec::new();
    let mut count = 0;
    for example in
        examples("invalid.jsonl").iter().filter(|example| is_ours(example) && example["cls"] == "schema")
    {
        let (Some(name), Some(payload)) = (example["type"].as_str(), payload(example)) else { continue };
        let id = example["id"].as_str().unwrap();
        if !schema::has(Version::V1, name) {
            problems.push(format!("{id}: no definition {name}"));
            continue;
        }
        count += 1;
        let refused = schema::validate(Version::V1, name, payload).is_err();
        if refused == excused.contains_key(id) {
            problems.push(format!("{id} ({name}): {payload}: {}", example["why"]));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(count > 50, "only {count} examples were looked at");
}

#[test]
fn a_fault_names_its_place() {
    let update = serde_json::json!({
        "sessionId": "s",
        "update": { "sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "status": "done" },
    });
    let fault = schema::validate(Version::V1, "SessionNotification", &update).unwrap_err();
    assert_eq!(fault.path, "update.status");
    assert!(fault.within.contains(&"ToolCall"), "{:?}", fault.within);
    let unknown = serde_json::json!({ "sessionId": "s", "update": { "sessionUpdate": "shout" } });
    let fault = schema::validate(Version::V1, "SessionNotification", &unknown).unwrap_err();
    assert_eq!(
        (fault.path.as_str(), fault.kind.to_string().as_str()),
        ("update", "an object with sessionUpdate \"shout\" is none of the known forms")
    );
}

#[test]
fn unknown_members_are_named() {
    let params = serde_json::json!({ "cwd": "/w", "mcpServers": [], "colour": 1, "_meta": { "x": 1 } });
    let extras = schema::validate(Version::V1, "NewSessionRequest", &params).unwrap().extras;
    assert_eq!(extras.len(), 1);
    assert_eq!((extras[0].member.as_str(), extras[0].within), ("colour", "NewSessionRequest"));
    let free = serde_json::json!({
        "sessionId": "s",
        "update": { "sessionUpdate": "tool_call", "toolCallId": "t", "title": "x", "rawInput": { "any": { "thing": 1 } } },
    });
    let fits = schema::validate(Version::V1, "SessionNotification", &free).unwrap();
    assert_eq!(fits.extras, []);
    assert!(fits.met.contains("ToolCall") && !fits.met.contains("Plan"), "{:?}", fits.met);
}
