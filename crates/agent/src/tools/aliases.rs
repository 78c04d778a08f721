//! Other names for arguments, which models know from other agents.

use serde_json::{Map, Value};

use crate::lenient_json;

/// Names of our tools' arguments, and names that models write instead.
const ALIASES: &[(&str, &[&str])] = &[
    (
        "path",
        &[
            "file_path",
            "filePath",
            "filepath",
            "file",
            "filename",
            "file_name",
            "target_file",
            "directory",
            "dir",
            "dir_path",
        ],
    ),
    ("content", &["contents", "text", "file_text", "body", "new_content"]),
    ("old", &["old_string", "oldString", "old_str", "old_text", "oldText", "search", "find"]),
    ("new", &["new_string", "newString", "new_str", "new_text", "newText", "replace", "replacement"]),
    ("all", &["replace_all", "replaceAll"]),
    ("background", &["run_in_background", "is_background"]),
    ("title", &["description"]),
    ("prompt", &["task", "question"]),
    ("id", &["bash_id", "shell_id", "task_id"]),
    ("command", &["cmd", "script", "command_line"]),
    ("pattern", &["query", "regex", "regexp"]),
    ("glob", &["include", "file_pattern"]),
    ("line", &["offset", "start_line", "startLine"]),
    ("limit", &["max_lines", "num_lines"]),
    ("url", &["uri", "link"]),
];

/// Arguments with the names that the schema has. A schema that allows other members is left alone.
pub(crate) fn resolve(arguments: &mut Value, schema: &Value) {
    let Value::Object(members) = arguments else { return };
    let Some(properties) = schema["properties"].as_object() else { return };
    if schema["additionalProperties"] != false {
        return;
    }
    rename(members, properties);
    for (name, property) in properties.iter().filter(|(_, property)| property["type"] == "array") {
        let items = &property["items"];
        wrap_single(members, name, items);
        let Some(value) = members.get_mut(name) else { continue };
        // Some models write a list as a string.
        if let Some(list @ Value::Array(_)) = value.as_str().and_then(lenient_json::read) {
            *value = list;
        }
        value.as_array_mut().into_iter().flatten().for_each(|item| resolve(item, items));
    }
}

fn rename(members: &mut Map<String, Value>, properties: &Map<String, Value>) {
    for (name, aliases) in ALIASES.iter().filter(|(name, _)| properties.contains_key(*name)) {
        let given =
            aliases.iter().find(|alias| members.contains_key(**alias) && !properties.contains_key(**alias));
        if let Some(given) = given
            && !members.contains_key(*name)
            && let Some(value) = members.remove(*given)
        {
            members.insert((*name).to_owned(), value);
        }
    }
}

/// Makes a list of the members of its only item, if they stand beside it.
fn wrap_single(members: &mut Map<String, Value>, list: &str, item: &Value) {
    let Some(properties) = item["properties"].as_object() else { return };
    if members.contains_key(list) {
        return;
    }
    let mut single = members.clone();
    rename(&mut single, properties);
    let required = item["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if !required.into_iter().all(|name| single.contains_key(name)) {
        return;
    }
    let belongs = |name: &str| {
        let is_alias =
            |(known, aliases): &(&str, &[&str])| properties.contains_key(*known) && aliases.contains(&name);
        properties.contains_key(name) || ALIASES.iter().any(is_alias)
    };
    single.retain(|name, _| properties.contains_key(name));
    members.retain(|name, _| !belongs(name));
    members.insert(list.to_owned(), Value::Array(vec![Value::Object(single)]));
}

#[cfg(test)]
mod tests {
    use super::super::Tool as _;
    use super::super::edit::Edit;
    use super::super::read::Read;
    use super::super::run::Run;
    use super::*;
    use serde_json::json;

    fn resolved(mut arguments: Value, schema: &Value) -> Value {
        resolve(&mut arguments, schema);
        arguments
    }

    #[test]
    fn names_of_other_agents_mean_ours() {
        let schema = Edit.info().spec.schema;
        let meant = json!({"path": "a", "edits": [{"old": "x", "new": "y"}]});
        for given in [
            json!({"file_path": "a", "old_string": "x", "new_string": "y"}),
            json!({"path": "a", "old": "x", "new": "y"}),
            json!({"file": "a", "edits": [{"oldText": "x", "newText": "y"}]}),
            json!({"path": "a", "edits": "[{'old': 'x', 'new': 'y'}]"}),
            meant.clone(),
        ] {
            assert_eq!(resolved(given.clone(), &schema), meant, "{given}");
        }
        assert_eq!(
            resolved(json!({"cmd": "ls"}), &Run::default().info().spec.schema),
            json!({"command": "ls"})
        );
        let both = json!({"file_path": "b", "path": "a", "offset": 2});
        assert_eq!(
            resolved(both, &Read.info().spec.schema),
            json!({"file_path": "b", "path": "a", "line": 2})
        );
    }

    #[test]
    fn other_schemas_are_left_alone() {
        let open = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        assert_eq!(resolved(json!({"file": "a"}), &open), json!({"file": "a"}));
        let own = json!({"properties": {"path": {}, "file": {}}, "additionalProperties": false});
        assert_eq!(resolved(json!({"file": "a"}), &own), json!({"file": "a"}));
        assert_eq!(resolved(json!([1]), &own), json!([1]));
    }
}
