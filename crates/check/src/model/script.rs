//! What the model does: the last marker in what the user said decides.
//!
//! | marker | what the model does |
//! |---|---|
//! | `[[answer TEXT]]` | says TEXT |
//! | `[[recall]]` | says the texts of all earlier `answer` markers in the conversation |
//! | `[[slow]]` | says words until the client goes away |
//! | `[[read PATH]]` | reads the file, says what is in it |
//! | `[[plan]]` | makes a plan and carries it on, if there is a tool for that, says `finished` |
//! | `[[fail]]` | refuses the request |
//! | `[[edit PATH OLD NEW]]` | reads the file if there is a tool for that, replaces OLD by NEW, says `finished` |
//! | `[[create PATH TEXT]]` | creates the file with the text as its only line, says `finished` |
//! | `[[run COMMAND]]` | runs the command, says `finished` |
//! | `[[background COMMAND]]` | runs the command in the background, says `finished` |
//! | `[[tool NAME COMMAND]]` | runs the command by a tool whose name ends with NAME, says `finished` |
//!
//! A text without a marker that asks to read the file `` `NAME` `` counts as `[[read NAME]]`: the
//! checker asks that way about files of a session's directories.
//!
//! Tools have other names and inputs in every agent; they are recognised among those that the agent
//! offers. A request without tools is not part of the conversation with the user (agents have
//! titles made like that): it gets a short text.

use serde_json::{Map, Value, json};

use crate::model::talk::{Ask, Input, Reply, Tool, Turn};

/// What was decided, and why.
pub(super) struct Decision {
    pub(crate) marker: String,
    pub(crate) step: usize,
    pub(crate) reply: Reply,
}

pub(super) fn decide(ask: &Ask) -> Decision {
    let found = ask.turns.iter().enumerate().rev().find_map(|(at, turn)| match turn {
        Turn::User(text) => markers(text).pop().or_else(|| asks_to_read(text)).map(|marker| (at, marker)),
        _ => None,
    });
    let Some((at, marker)) = found else {
        return Decision { marker: String::new(), step: 0, reply: Reply::Text("nothing to do".to_owned()) };
    };
    let step = ask.turns[at..].iter().filter(|turn| matches!(turn, Turn::Result(_))).count();
    let reply = reply(ask, &marker, at, step);
    Decision { marker, step, reply }
}

/// The markers in a text, without their brackets.
fn markers(text: &str) -> Vec<String> {
    let parts = text.split("[[").skip(1);
    parts.filter_map(|part| part.split_once("]]")).map(|(marker, _)| marker.trim().to_owned()).collect()
}

/// The marker that a text in plain words stands for.
fn asks_to_read(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("Read the file `")?;
    rest.split_once('`').map(|(name, _)| format!("read {name}"))
}

fn reply(ask: &Ask, marker: &str, at: usize, step: usize) -> Reply {
    let (verb, rest) = marker.split_once(' ').unwrap_or((marker, ""));
    let finished = || Reply::Text("finished".to_owned());
    if ask.tools.is_empty() && verb != "answer" {
        return Reply::Text("A title".to_owned());
    }
    match verb {
        "answer" => Reply::Text(rest.to_owned()),
        "recall" => Reply::Text(recall(&ask.turns[..at])),
        "slow" => Reply::Endless,
        "fail" => Reply::Fail,
        "read" => match read(&ask.tools, rest).filter(|_| step == 0) {
            Some(call) => call,
            None => Reply::Text(last_result(&ask.turns[at..])),
        },
        "plan" => plan(&ask.tools, step).unwrap_or_else(finished),
        "edit" => edit(&ask.tools, rest).into_iter().nth(step).unwrap_or_else(finished),
        "create" => create(&ask.tools, rest).filter(|_| step == 0).unwrap_or_else(finished),
        "run" | "background" | "tool" => {
            let call = match verb {
                "run" => run(&ask.tools, rest),
                "background" => background(&ask.tools, rest),
                _ => by_tool(&ask.tools, rest),
            };
            match call {
                Some(call) if step == 0 => call,
                Some(_) => finished(),
                None => Reply::Text("no tool runs commands".to_owned()),
            }
        }
        _ => Reply::Text(format!("unknown marker {verb}")),
    }
}

fn recall(turns: &[Turn]) -> String {
    let said = turns.iter().filter_map(|turn| match turn {
        Turn::User(text) => Some(markers(text)),
        _ => None,
    });
    let answers = said.flatten().filter_map(|marker| marker.strip_prefix("answer ").map(str::to_owned));
    let answers: Vec<String> = answers.collect();
    if answers.is_empty() { "nothing".to_owned() } else { answers.join(", ") }
}

/// What the last tool gave, as far as a few words go.
fn last_result(turns: &[Turn]) -> String {
    let last = turns.iter().rev().find_map(|turn| match turn {
        Turn::Result(text) => Some(text.chars().take(80).collect()),
        _ => None,
    });
    last.unwrap_or_else(|| "no tool reads files".to_owned())
}

/// The names of a tool's member for a path.
const PATHS: [&str; 4] = ["file_path", "filePath", "absolute_path", "path"];

/// The call that reads a file.
fn read(tools: &[Tool], path: &str) -> Option<Reply> {
    read_tool(tools, path).or_else(|| run(tools, &format!("cat {path}")))
}

fn read_tool(tools: &[Tool], path: &str) -> Option<Reply> {
    let reads = ["read_file", "Read", "read", "ReadFile", "view"];
    let tool = tools.iter().find(|tool| reads.contains(&tool.name.as_str()))?;
    Some(call(tool, [(property(tool, &PATHS)?, json!(path))]))
}

/// The call that makes a plan at first, and then one that carries it on; nothing after that.
fn plan(tools: &[Tool], step: usize) -> Option<Reply> {
    const NAMES: [&str; 7] =
        ["TodoWrite", "todowrite", "todo_write", "write_todos", "update_plan", "plan", "SetTodoList"];
    let tool = NAMES.iter().find_map(|name| tools.iter().find(|tool| tool.name == *name))?;
    let at = property(tool, &["todos", "plan", "entries"])?;
    let statuses = match step {
        0 => ["in_progress", "pending"],
        1 => ["completed", "in_progress"],
        _ => return None,
    };
    let members = tool.schema["properties"][&at]["items"]["properties"].as_object()?;
    let entry = |(number, (text, status)): (usize, (&str, &str))| {
        let value = |name: &str| match name {
            "status" => json!(status),
            "priority" => json!("medium"),
            "id" => json!(format!("{number}")),
            _ => json!(text),
        };
        let entry = members.keys().map(|name| (name.clone(), value(name)));
        Value::Object(entry.collect())
    };
    let texts = ["Find the uses", "Rename them"];
    let entries = texts.into_iter().zip(statuses).enumerate().map(entry);
    Some(call(tool, [(at, entries.collect())]))
}

/// The calls that make one edit. Some tools refuse to edit what was not read before, so it is read
/// first.
fn edit(tools: &[Tool], rest: &str) -> Vec<Reply> {
    let words: Vec<&str> = rest.split(' ').collect();
    let [path, old, new] = words[..] else { return vec![Reply::Text("edit PATH OLD NEW".to_owned())] };
    let replace = tools.iter().find_map(|tool| {
        let (path_at, old_at, new_at) = (
            property(tool, &PATHS)?,
            property(tool, &["old_string", "oldString", "old_str"])?,
            property(tool, &["new_string", "newString", "new_str"])?,
        );
        Some(call(tool, [(path_at, json!(path)), (old_at, json!(old)), (new_at, json!(new))]))
    });
    if let Some(replace) = replace {
        return read_tool(tools, path).into_iter().chain([replace]).collect();
    }
    let patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n");
    vec![patch_with(tools, &patch).unwrap_or(Reply::Text("no tool edits files".to_owned()))]
}

/// The call that creates a file; nothing if no tool does.
fn create(tools: &[Tool], rest: &str) -> Option<Reply> {
    let (path, text) = rest.split_once(' ')?;
    let names = ["write_file", "Write", "write", "WriteFile", "write_to_file", "create"];
    if let Some(tool) = names.iter().find_map(|name| tools.iter().find(|tool| tool.name == *name)) {
        let at = property(tool, &PATHS)?;
        let content = property(tool, &["content", "text", "file_text"])?;
        return Some(call(tool, [(at, json!(path)), (content, json!(format!("{text}\n")))]));
    }
    let patch = format!("*** Begin Patch\n*** Add File: {path}\n+{text}\n*** End Patch\n");
    patch_with(tools, &patch)
}

/// The call that applies a patch, by whichever tool takes one.
fn patch_with(tools: &[Tool], patch: &str) -> Option<Reply> {
    match tools.iter().find(|tool| tool.name == "apply_patch") {
        Some(tool) if tool.takes_text() => {
            Some(Reply::Call { tool: tool.name.clone(), input: Input::Text(patch.to_owned()) })
        }
        Some(tool) => Some(call(tool, [("input".to_owned(), json!(patch))])),
        None => run(tools, &format!("apply_patch <<'EOF'\n{patch}EOF\n")),
    }
}

fn run(tools: &[Tool], command: &str) -> Option<Reply> {
    let names = [
        "run_shell_command",
        "Bash",
        "bash",
        "exec_command",
        "shell_command",
        "shell",
        "Shell",
        "run_command",
        "execute_command",
        "run",
    ];
    let tool = names.iter().find_map(|name| tools.iter().find(|tool| tool.name == *name))?;
    let at = property(tool, &["command", "cmd"])?;
    let list = tool.schema["properties"][&at]["type"] == "array";
    let value = if list { json!(["bash", "-lc", command]) } else { json!(command) };
    // A tool with a sandbox asks the user only if the call says that the sandbox is not enough.
    match property(tool, &["sandbox_permissions"]) {
        Some(sandbox) if !command.starts_with("apply_patch") => Some(call(
            tool,
            [
                (at, value),
                (sandbox, json!("require_escalated")),
                ("justification".to_owned(), json!("as asked")),
            ],
        )),
        _ => Some(call(tool, [(at, value)])),
    }
}

/// The call that runs a command in the background; nothing if no tool does.
fn background(tools: &[Tool], command: &str) -> Option<Reply> {
    tools.iter().find_map(|tool| {
        let (at, background) = (property(tool, &["command"])?, property(tool, &["run_in_background"])?);
        Some(call(tool, [(at, json!(command)), (background, json!(true))]))
    })
}

/// The call that runs a command by a tool whose name ends with the first word.
fn by_tool(tools: &[Tool], rest: &str) -> Option<Reply> {
    let (name, command) = rest.split_once(' ')?;
    let tool = tools.iter().find(|tool| tool.name.ends_with(name))?;
    Some(call(tool, [(property(tool, &["command"])?, json!(command))]))
}

/// The first of these names that the tool's input has.
fn property(tool: &Tool, names: &[&str]) -> Option<String> {
    let properties = tool.schema["properties"].as_object()?;
    names.iter().find(|name| properties.contains_key(**name)).map(|name| (*name).to_owned())
}

/// A call with these members, and something harmless for whatever else the tool requires.
fn call<const N: usize>(tool: &Tool, members: [(String, Value); N]) -> Reply {
    let mut input = Map::from_iter(members);
    for name in tool.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !input.contains_key(name) {
            input.insert(name.to_owned(), harmless(&tool.schema["properties"][name]));
        }
    }
    Reply::Call { tool: tool.name.clone(), input: Input::Json(Value::Object(input)) }
}

fn harmless(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("boolean") => json!(false),
        Some("number" | "integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("as the user asked"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, properties: &[&str], required: &[&str]) -> Tool {
        let properties: Map<String, Value> =
            properties.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        Tool { name: name.to_owned(), schema: json!({"properties": properties, "required": required}) }
    }

    fn decided(tools: Vec<Tool>, turns: Vec<Turn>) -> String {
        decide(&Ask { tools, turns, ..Ask::default() }).reply.brief()
    }

    fn user(text: &str) -> Turn {
        Turn::User(text.to_owned())
    }

    #[test]
    fn an_edit_reads_then_edits_then_ends() {
        let tools = || {
            vec![
                tool("Edit", &["file_path", "old_string", "new_string"], &["file_path", "why"]),
                tool("Read", &["file_path"], &["file_path"]),
            ]
        };
        let result = || Turn::Result("fine".to_owned());
        let marker = "please [[edit /a/b one two]] now";
        assert_eq!(decided(tools(), vec![user(marker)]), r#"call Read {"file_path":"/a/b"}"#);
        assert_eq!(
            decided(tools(), vec![user(marker), result()]),
            r#"call Edit {"file_path":"/a/b","new_string":"two","old_string":"one","why":"as the user asked"}"#
        );
        assert_eq!(decided(tools(), vec![user(marker), result(), result()]), "text finished");
    }

    #[test]
    fn a_file_is_created_once() {
        let tools = || vec![tool("write_file", &["file_path", "content"], &["file_path"])];
        let marker = "[[create /a/new.txt one line]]";
        assert_eq!(
            decided(tools(), vec![user(marker)]),
            r#"call write_file {"content":"one line\n","file_path":"/a/new.txt"}"#
        );
        assert_eq!(decided(tools(), vec![user(marker), Turn::Result("done".to_owned())]), "text finished");
        let patch =
            decided(vec![Tool { name: "apply_patch".to_owned(), schema: Value::Null }], vec![user(marker)]);
        assert!(patch.contains("*** Add File: /a/new.txt\\n+one line"), "{patch}");
    }

    #[test]
    fn a_command_runs_in_the_background_or_by_a_named_tool() {
        let tools = || {
            vec![
                tool("Bash", &["command", "run_in_background"], &["command"]),
                tool("mcp__ours__run_command", &["command"], &["command"]),
            ]
        };
        assert_eq!(
            decided(tools(), vec![user("[[background ls]]")]),
            r#"call Bash {"command":"ls","run_in_background":true}"#
        );
        assert_eq!(
            decided(tools(), vec![user("[[tool run_command ls -l]]")]),
            r#"call mcp__ours__run_command {"command":"ls -l"}"#
        );
    }

    #[test]
    fn a_file_is_read_by_marker_and_by_plain_words() {
        let tools = || vec![tool("Read", &["file_path"], &["file_path"])];
        let result = || Turn::Result("alpha".to_owned());
        let words = "Read the file `notes.txt` and tell me its first word.";
        for (text, call) in [
            ("[[read /a/notes.txt]]", r#"call Read {"file_path":"/a/notes.txt"}"#),
            (words, r#"call Read {"file_path":"notes.txt"}"#),
        ] {
            assert_eq!(decided(tools(), vec![user(text)]), call);
            assert_eq!(decided(tools(), vec![user(text), result()]), "text alpha");
        }
        let shell = vec![tool("bash", &["command"], &["command"])];
        assert_eq!(decided(shell, vec![user("[[read /a]]")]), r#"call bash {"command":"cat /a"}"#);
    }

    #[test]
    fn a_plan_is_made_and_carried_on_in_the_words_of_the_tool() {
        let item = json!({"properties": {"content": {}, "status": {}, "priority": {}}});
        let schema =
            json!({"properties": {"todos": {"type": "array", "items": item}}, "required": ["todos"]});
        let asked = |results: usize| {
            let results = std::iter::repeat_with(|| Turn::Result("fine".to_owned())).take(results);
            let tools = vec![Tool { name: "todowrite".to_owned(), schema: schema.clone() }];
            decided(tools, [user("[[plan]]")].into_iter().chain(results).collect())
        };
        let first = r#"{"content":"Find the uses","priority":"medium","status":"in_progress"}"#;
        assert!(asked(0).starts_with(&format!(r#"call todowrite {{"todos":[{first},"#)), "{}", asked(0));
        assert!(asked(1).contains(r#""content":"Find the uses","priority":"medium","status":"completed""#));
        assert_eq!(asked(2), "text finished");
        assert_eq!(decided(vec![tool("read", &[], &[])], vec![user("[[plan]]")]), "text finished");
    }

    #[test]
    fn what_was_said_before_is_recalled_and_does_not_count() {
        let turns = vec![
            user("[[answer one]]"),
            Turn::Model("one".to_owned()),
            user("[[run ls]]"),
            Turn::Result(String::new()),
            user("[[recall]]"),
        ];
        assert_eq!(decided(vec![tool("Bash", &["command"], &[])], turns), "text one");
    }

    #[test]
    fn without_tools_there_is_a_title() {
        assert_eq!(decided(vec![], vec![user("[[slow]]")]), "text A title");
        assert_eq!(decided(vec![], vec![user("hello")]), "text nothing to do");
    }

    #[test]
    fn a_patch_goes_to_whatever_takes_it() {
        let marker = || vec![user("[[edit /f a b]]")];
        let free = Tool { name: "apply_patch".to_owned(), schema: Value::Null };
        assert!(decided(vec![free], marker()).starts_with("call apply_patch \"*** Begin Patch"));
        let shell = tool("exec_command", &["cmd"], &["cmd"]);
        assert!(decided(vec![shell], marker()).contains("apply_patch <<"));
    }
}
