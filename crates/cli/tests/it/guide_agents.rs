//! What the agent of the guide does.

const HELLO: &str = r#"on initialize
  reply {"protocolVersion":1,"agentInfo":{"name":"gemini-cli","version":"1.0.0"},"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{},"fork":{},"delete":{},"close":{},"resume":{}}}}
on session/new
  reply {"sessionId":"s-$pid","modes":MODES,"configOptions":OPTIONS}
on session/resume
  reply {"modes":MODES,"configOptions":OPTIONS}
on session/set_config_option
  reply {"configOptions":OPTIONS}
on session/fork
  reply {"sessionId":"f-$pid"}
on session/list
  reply {"sessions":[{"sessionId":"s-1","cwd":"/home/me/project","title":"The parser"}]}
"#;

const MODES: &str = r#"{"currentModeId":"default","availableModes":[{"id":"default","name":"Default"},{"id":"plan","name":"Plan"}]}"#;

const OPTIONS: &str = r#"[{"id":"model","name":"Model","category":"model","type":"select","currentValue":"fast","options":[{"value":"fast","name":"Fast"},{"value":"smart","name":"Smart"}]}]"#;

/// Asks whether it may edit a file, and edits it if it may.
const EDITS: &str = r##"on session/prompt
  update {"sessionUpdate":"tool_call","toolCallId":"t1","title":"Edit notes.md","kind":"edit","status":"pending"}
  call session/request_permission {"toolCall":{"toolCallId":"t1","title":"Edit notes.md","kind":"edit","locations":[{"path":"$cwd/notes.md"}]},"options":[{"optionId":"y","name":"Allow","kind":"allow_once"},{"optionId":"a","name":"Always","kind":"allow_always"},{"optionId":"n","name":"No","kind":"reject_once"}]}
  call fs/write_text_file {"path":"$cwd/notes.md","content":"# Notes\n"}
  update {"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}
  say I am done.
  done end_turn
"##;

/// Writes a file without a question.
const RUDE: &str = r##"on session/prompt
  call fs/write_text_file {"path":"$cwd/notes.md","content":"# Mine\n"}
  say The answer was: $last
  done end_turn
"##;

/// Wants a file of another user.
const NOSY: &str = r##"on session/prompt
  call fs/read_text_file {"path":"/etc/hostname"}
  say The answer was: $last
  done end_turn
"##;

/// Wants to know something.
const CURIOUS: &str = r##"on session/prompt
  call elicitation/create {"mode":"form","message":"Where to?","requestedSchema":{"type":"object","required":["region"],"properties":{"region":{"type":"string"}}}}
  say The answer was: $last
  done end_turn
"##;

/// Costs something.
const DEAR: &str = r##"on session/prompt
  update {"sessionUpdate":"usage_update","used":1200,"size":200000,"cost":{"amount":0.5,"currency":"USD"}}
  wait never
"##;

const SLOW: &str = "on session/prompt\n  wait never\n";

const SAYS: &str = "on session/prompt\n  say It is a parser.\n  done end_turn\n";

const CRASHES: &str = "on session/prompt\n  stderr the key is not valid\n  exit 3\n";

/// A model that runs commands: one that only reads, then one that changes something.
const WORKS: &str = r##"name: Works
== when "look"
call run {"command": "ls"}
-- forever
say There are notes.
== when "test"
call run {"command": "sh test.sh"}
-- when result "exit code 0"
say The test passes.
-- forever
say The test did not run.
== when "hooks"
call write {"path": ".git/hooks/pre-commit", "content": "#!/bin/sh\n"}
-- forever
say Done.
== when "download"
call run {"command": "curl -sS https://example.org/data.json"}
-- forever
say Done.
"##;

/// The script of a model for our own agent.
pub(crate) fn model(name: &str) -> &'static str {
    match name {
        "works" => WORKS,
        other => panic!("the guide has no model `{other}`"),
    }
}

pub(crate) fn script(name: &str) -> String {
    let hello = HELLO.replace("MODES", MODES).replace("OPTIONS", OPTIONS);
    let prompt = match name {
        "says" => SAYS,
        "edits" => EDITS,
        "rude" => RUDE,
        "nosy" => NOSY,
        "curious" => CURIOUS,
        "dear" => DEAR,
        "slow" => SLOW,
        "crashes" => CRASHES,
        other => panic!("the guide has no agent `{other}`"),
    };
    format!("{hello}{prompt}")
}
