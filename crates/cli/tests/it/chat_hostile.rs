//! Agents that would like to have the terminal: none of their bytes is a command to it, wherever
//! they put them.

use serde_json::json;

use crate::chat_rig::{Chat, ENTER, ESC, Start};
use crate::clean_cases::{COLUMNS, WORD, evil, parts, problem};
use crate::clean_tty::{WITH_KEYS, run};
use crate::world::World;

/// What the program itself writes; anything else came from the agent.
pub(crate) fn is_ours(sequence: &str) -> bool {
    let fixed = [
        "[?2004h", "[?2004l", "[>1u", "[<1u", "[?2026h", "[?2026l", "[?25h", "[?25l", "[H", "[2J", "[J",
        "[K", "[A", "[m",
    ];
    let Some(body) = sequence.strip_prefix('[') else { return false };
    let number = |end: char| body.strip_suffix(end).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    fixed.contains(&sequence) || number('A') || number('G') || number('m')
}

/// Every escape sequence, without its ESC, and every other control character.
fn commands(written: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut chars = written.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => {
                let mut sequence = String::new();
                for c in chars.by_ref() {
                    sequence.push(c);
                    let first = sequence.len() == 1;
                    if (first && c != '[') || (!first && ('\x40'..='\x7e').contains(&c)) {
                        break;
                    }
                }
                found.push(sequence);
            }
            '\r' | '\n' => {}
            c if c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c) => found.push(c.to_string()),
            _ => {}
        }
    }
    found
}

/// All but a sequence at the end that is there only in part: the program may be writing it.
fn complete(written: &str) -> &str {
    let Some(start) = written.rfind('\x1b') else { return written };
    let body = &written[start + 1..];
    let is_complete = match body.strip_prefix('[') {
        Some(rest) => rest.contains(|c| ('\x40'..='\x7e').contains(&c)),
        None => !body.is_empty(),
    };
    if is_complete { written } else { &written[..start] }
}

fn is_untouched(chat: &Chat) {
    let written = chat.written();
    let strange: Vec<String> = commands(complete(&written)).into_iter().filter(|it| !is_ours(it)).collect();
    assert!(strange.is_empty(), "{strange:?}");
    assert!(chat.titles().is_empty(), "{:?}", chat.titles());
}

/// Clears the screen, sets the title, rings, reorders, and writes an eight-bit command, as JSON has
/// it.
const EVIL: &str = r"\u001b[2J\u001b]0;evil\u0007\u001b[31m\u0007\u202e\u009b2J\u001bc\r";

const SCRIPT: &str = r#"
on initialize
  reply {"protocolVersion":1,"agentInfo":{"name":"n EVIL","title":"Title EVIL","version":"v EVIL"},"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{}}}}
on session/new
  reply {"sessionId":"s-1","modes":{"currentModeId":"m EVIL","availableModes":[{"id":"m EVIL","name":"Mode EVIL","description":"d EVIL"}]},"configOptions":[{"id":"o EVIL","name":"Option EVIL","type":"select","currentValue":"v EVIL","options":[{"value":"v EVIL","name":"Value EVIL"}]}]}
on session/list
  reply {"sessions":[{"sessionId":"l EVIL","cwd":"/c EVIL","title":"Listed EVIL","updatedAt":"now EVIL"}]}
on session/prompt
  update {"sessionUpdate":"session_info_update","title":"Info EVIL"}
  update {"sessionUpdate":"available_commands_update","availableCommands":[{"name":"do EVIL","description":"Does EVIL","input":{"hint":"h EVIL"}}]}
  update {"sessionUpdate":"plan","entries":[{"content":"Step EVIL","priority":"high","status":"pending"}]}
  think thought EVIL
  say # Heading EVIL\n\n- item EVIL\n\n| a EVIL | b |\n|--|--|\n| c | d EVIL |\n\n```rust\ncode EVIL\n```\n\n[link EVIL](http://EVIL) `code EVIL` <b EVIL>
  update {"sessionUpdate":"tool_call","toolCallId":"t EVIL","title":"Tool EVIL","kind":"edit","status":"completed","locations":[{"path":"/p EVIL"}],"rawInput":{"EVIL":"EVIL"},"rawOutput":"EVIL","content":[{"type":"diff","path":"/d EVIL","oldText":"o EVIL","newText":"n EVIL"},{"type":"content","content":{"type":"text","text":"out EVIL"}},{"type":"content","content":{"type":"resource_link","name":"r EVIL","uri":"u EVIL"}}]}
  update {"sessionUpdate":"notice","severity":"error","title":"Notice EVIL","description":"more EVIL"}
  update {"sessionUpdate":"subagent_update","sessionId":"k EVIL","title":"Kid EVIL","description":"kd EVIL","state":{"state":"running"}}
  update {"sessionUpdate":"session_message","messageId":"m","senderSessionId":"k EVIL","content":[{"type":"text","text":"letter EVIL"}]}
  update {"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":1,"currency":"C EVIL"}}
  update {"sessionUpdate":"_new EVIL"}
  raw noise EVIL
  stderr words EVIL
  call session/request_permission {"sessionId":"$session","toolCall":{"toolCallId":"q","title":"Ask EVIL","kind":"execute","rawInput":{"command":"rm EVIL"}},"options":[{"optionId":"y","name":"Yes EVIL","kind":"allow_once"},{"optionId":"n","name":"No EVIL","kind":"reject_once"}]}
  call elicitation/create {"sessionId":"$session","mode":"form","message":"Form EVIL","requestedSchema":{"type":"object","title":"T EVIL","description":"D EVIL","properties":{"a EVIL":{"type":"string","title":"Field EVIL","description":"About EVIL","pattern":"EVIL","default":"x EVIL"},"b":{"type":"string","oneOf":[{"const":"c","title":"Choice EVIL"}]}}}}
  call elicitation/create {"sessionId":"$session","mode":"url","message":"Page EVIL","elicitationId":"e","url":"https://host.org/x"}
  fail -32603 Failed EVIL
on session/prompt 2
  stderr last words EVIL
  exit 3
"#;

async fn visit(start: Start) -> Chat {
    // In JSON the letters of a command are escaped, in the script's own texts they are what they
    // are.
    let mut script = String::new();
    for line in SCRIPT.lines() {
        let json = ["  reply", "  update", "  call"].iter().any(|word| line.starts_with(word));
        let evil = match json {
            true => EVIL.to_owned(),
            false => "\x1b[2J\x1b]0;evil\x07\x1b[31m\x07\u{202e}\u{9b}2J\x1bc".to_owned(),
        };
        script.push_str(&line.replace("EVIL", &evil));
        script.push('\n');
    }
    let mut chat = start.with_script(&script).await;
    chat.say("go");
    chat.asks("rm ^[").await;
    chat.keys("y");
    chat.asks_for("Form").await;
    chat.keys(&format!("{ENTER}1{ENTER}"));
    chat.sees("Send this?").await;
    chat.keys(ENTER);
    chat.asks_for("Page").await;
    chat.keys("n");
    chat.sees("Failed").await;
    for command in ["/help", "/mode", "/set", "/cost", "/diff", "/show", "/show 2", "/sessions"] {
        chat.say(command);
    }
    chat.sees("Listed").await;
    chat.sees("Enter chooses").await;
    chat.keys(ESC);
    chat.sees_no_more("Enter chooses").await;
    chat.keys("/do\t\x15\x0f\x0f");
    chat.prompts("").await;
    chat.say("again");
    chat.sees("the agent has exited").await;
    chat.sees("last words").await;
    chat
}

#[tokio::test]
async fn text_of_an_agent_never_controls_the_terminal() {
    let chat = visit(Start::new().args(&["--ask", "-v"]).size(60, 100)).await;
    is_untouched(&chat);
    // Its words are there.
    let history = chat.history();
    for word in ["Heading", "Tool", "Notice", "Kid", "Letter".to_lowercase().as_str(), "Info", "noise"] {
        assert!(history.contains(word) || chat.written().contains(word), "{word} in\n{history}");
    }
}

#[tokio::test]
async fn every_hostile_text_is_only_text() {
    let text = json!({ "type": "text", "text": evil() });
    let mut script = String::from("on session/prompt\n");
    let mut update = |value: serde_json::Value| script.push_str(&format!("  update {value}\n"));
    update(json!({ "sessionUpdate": "agent_thought_chunk", "content": text }));
    update(json!({ "sessionUpdate": "agent_message_chunk", "content": text }));
    for part in parts() {
        update(json!({
            "sessionUpdate": "tool_call", "toolCallId": part, "title": part, "kind": "edit", "status": "completed",
            "locations": [{ "path": part }], "rawInput": { "command": part }, "rawOutput": part,
            "content": [{ "type": "content", "content": { "type": "text", "text": part } }, { "type": "diff", "path": part, "newText": part }],
        }));
    }
    script.push_str("  say that was all of it\n  done end_turn\n");
    let mut chat = Start::new().args(&["--ask", "-v"]).size(40, COLUMNS).with_script(&script).await;
    chat.say("go");
    chat.sees("that was all of it").await;
    chat.sees_no_more("working").await;
    let written = chat.written();
    assert!(written.contains(WORD), "{written}");
    assert_eq!(problem(complete(&written).as_bytes(), is_ours), None);
    is_untouched(&chat);
}

#[test]
fn a_hub_never_controls_the_terminal_that_shows_its_sessions() {
    let sessions: Vec<_> = parts()
        .iter()
        .map(|part| {
            let meta = json!({ "attache": { "state": part, "clients": part, "agent": part } });
            json!({ "sessionId": part, "title": part, "_meta": meta })
        })
        .collect();
    let hello =
        json!({ "protocolVersion": 1, "agentCapabilities": { "_meta": { "attache": { "hub": "1" } } } });
    let status = json!({ "clients": 1, "sessions": sessions });
    let script = format!("on initialize\n  reply {hello}\non _attache/status\n  reply {status}\n");
    // The table is drawn once; the second question ends it.
    let world = World::new().agent(&format!("{script}on _attache/status 2\n  exit 0\n"));
    let bytes = run(&world, WITH_KEYS, &["hub", "top", "scripted"], &[]);
    let written = String::from_utf8_lossy(&bytes);
    assert!(written.contains("session") && written.contains(WORD), "{written}");
    assert_eq!(problem(&bytes, is_ours), None, "{written}");
}

#[tokio::test]
async fn not_on_a_narrow_one_without_unicode_or_colours_either() {
    let start = Start::new().args(&["--ask", "-v"]).size(40, 24).env("NO_COLOR", "1").env("LC_ALL", "C");
    let script = "on session/prompt\n  say wide \u{1f600}\u{1f468}\u{200d}\u{1f469} e\u{301}\u{301}\u{301} \u{4e2d}\u{6587} \x1b[31mred\n  done end_turn\n";
    let mut chat = start.with_script(script).await;
    chat.say("go");
    chat.sees("red").await;
    chat.sees_no_more("working").await;
    is_untouched(&chat);
    assert!(chat.written().is_ascii(), "{}", chat.written());
    assert!(!chat.written().contains("\x1b[31m"));
}

#[tokio::test]
async fn wide_characters_and_accents_keep_their_columns() {
    let text = "\u{4e2d}\u{6587}\u{1f600} e\u{301}a\u{308} \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} end";
    let script = format!("on session/prompt\n  say {text} {text} {text}\n  done end_turn\n");
    let mut chat = Start::new().size(24, 20).with_script(&script).await;
    chat.keys("\u{4e2d}\u{6587}x\u{1f600}");
    chat.until("the cursor behind all of it", |screen| screen.cursor_position().1 == 9).await;
    chat.keys("\x1b[D\x1b[D");
    chat.until("the cursor before the letter", |screen| screen.cursor_position().1 == 6).await;
    chat.keys("\x05\x15go\r");
    chat.sees("end").await;
    chat.sees_no_more("working").await;
    // Nothing was written beyond the last column, where terminals differ.
    chat.look(|screen| {
        // The first lines are from before the chat.
        let first = screen.rows(0, 20).position(|line| line.starts_with('·')).unwrap();
        for row in first as u16..screen.size().0 {
            assert!(!screen.row_wrapped(row), "row {row}:\n{}", screen.contents());
        }
    });
    is_untouched(&chat);
}

#[tokio::test]
async fn a_terminal_that_cannot_move_its_cursor_has_no_chat() {
    let mut chat = Start::new().env("TERM", "dumb").run_with("no-such-agent");
    assert_eq!(chat.exit().await.code(), Some(1));
    chat.sees("TERM=dumb").await;
    chat.sees("attache exec").await;
    assert!(chat.is_cooked());
}
