//! text, json and quiet.

use crate::clean_tty::{WITH_KEYS, run};
use crate::world::World;

const BUSY: &str = r#"on session/prompt
  think first\nthen
  say Hello
  say , world\n
  update {"sessionUpdate":"tool_call","toolCallId":"t1","title":"Read notes","kind":"read","rawInput":{"path":"/notes"},"locations":[{"path":"/notes","line":3}]}
  update {"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress"}
  update {"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"secret notes\nline two"}}]}
  update {"sessionUpdate":"tool_call","toolCallId":"t2","title":"Edit a","kind":"edit","status":"completed","content":[{"type":"diff","path":"/a","oldText":"1","newText":"1\n2"}]}
  update {"sessionUpdate":"plan","entries":[{"content":"look","priority":"high","status":"completed"},{"content":"leap","priority":"low","status":"pending"}]}
  update {"sessionUpdate":"something_new","x":1}
  say Bye
  reply {"stopReason":"end_turn","usage":{"totalTokens":30,"inputTokens":10,"outputTokens":20}}
"#;

#[test]
fn text_is_for_people() {
    let world = World::new().agent(BUSY);
    let expected = "\
[thinking] first
           then
Hello, world

[tool] Read notes (running)
  input: /notes
  files: /notes:3

[tool] Read notes (completed)
  kind: read
  input: /notes
  files: /notes:3
  output:
    secret notes
    line two

[tool] Edit a (completed)
  kind: edit
  output:
    diff /a (+1 line)

[plan]
  - [completed] look
  - [pending] leap
Bye

[done] end_turn
";
    let run = world.run(&["exec", "hi"]).code(0);
    assert_eq!(run.stdout, expected);
    assert_eq!(run.stderr, "");
}

#[test]
fn json_is_the_wire() {
    let world = World::new().agent(BUSY);
    let run = world.run(&["--format", "json", "--json-strict", "exec", "hi"]).code(0);
    let lines = run.json();
    assert_eq!(run.stderr, "");
    assert_eq!(lines[0]["method"], "initialize");
    assert_eq!(lines[2]["method"], "session/new");
    assert_eq!(lines[4]["method"], "session/prompt");
    assert_eq!(lines.last().unwrap()["result"]["stopReason"], "end_turn");
    let kinds = lines.iter().filter_map(|line| line["params"]["update"]["sessionUpdate"].as_str());
    assert_eq!(kinds.filter(|kind| *kind == "something_new").count(), 1);
    // As it came, not as we would write it.
    assert!(run.stdout.contains(r#"{"content":"look","priority":"high","status":"completed"}"#));
}

#[test]
fn quiet_is_the_answer() {
    let world = World::new().agent(BUSY);
    let run = world.run(&["--format", "quiet", "exec", "hi"]).code(0);
    assert_eq!(run.stdout, "Hello, world\nBye\n");
    assert_eq!(run.stderr, "[attache] tokens: input=10 output=20 total=30\n");
}

#[test]
fn read_output_can_be_suppressed() {
    let world = World::new().agent(&format!("{BUSY}  ignore\n"));
    let text = world.run(&["--suppress-reads", "exec", "hi"]).ok();
    assert!(text.contains("[read output suppressed]") && !text.contains("secret notes"), "{text}");
    let json = world.run(&["--suppress-reads", "--format", "json", "exec", "hi"]).ok();
    assert!(json.contains("[read output suppressed]") && !json.contains("secret notes"), "{json}");

    world.write("a.txt", "secret text");
    let reader = World::new()
        .agent("on session/prompt\n  call fs/read_text_file {\"path\":\"$cwd/a.txt\"}\n  done end_turn\n");
    reader.write("a.txt", "secret text");
    let json = reader.run(&["--suppress-reads", "--format", "json", "exec", "hi"]).ok();
    assert!(json.contains("[read output suppressed]") && !json.contains("secret text"), "{json}");
}

#[test]
fn formats_that_exclude_each_other_are_refused() {
    let world = World::new().agent(BUSY);
    world.run(&["--json-strict", "--format", "text", "exec", "hi"]).code(2);
    world.run(&["--json-strict", "--format", "json", "--verbose", "exec", "hi"]).code(2);
    let run = world.run(&["--format", "json", "--nonsense"]).code(2);
    assert_eq!(run.json()[0]["error"]["data"]["acpxCode"], "USAGE");
}

#[test]
fn the_wire_is_shown_on_stderr() {
    let world = World::new().agent(BUSY);
    let run = world.run(&["-v", "--format", "quiet", "exec", "hi"]).code(0);
    assert!(
        run.stderr.contains("[attache] -> {\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\""),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("[attache] <- "), "{}", run.stderr);
    assert_eq!(run.stdout, "Hello, world\nBye\n");
}

#[test]
fn a_reader_that_leaves_ends_the_turn() {
    let world = World::new()
        .agent("on session/prompt\n  flood 200000 some text that nobody wants to read\n  wait nothing\n");
    let mut command = world.command(&["exec", "hi"]);
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    // A reader that left knows, and one that stays needs no message.
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_full_disk_is_reported() {
    let world = World::new().agent("on session/prompt\n  flood 20000 some text\\n\n  done end_turn\n");
    world.run(&["sessions", "new", "--name", "kept"]).ok();
    for args in [
        &["exec", "hi"][..],
        &["--format", "json", "exec", "hi"],
        &["--format", "quiet", "exec", "hi"],
        &["--format", "quiet", "prompt", "-s", "kept", "hi"],
        &["--help"],
        &["config", "show"],
        &["--format", "json", "agents"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = world.command(args);
        command.stdin(std::process::Stdio::null()).stdout(full);
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        assert!(stderr.contains("cannot write the output: No space left on device"), "{args:?}: {stderr}");
    }
}

#[test]
fn output_of_codex_commands_is_shown() {
    let world = World::new().agent(
        r#"on session/prompt
  update {"sessionUpdate":"tool_call","toolCallId":"t","title":"make","kind":"execute","status":"in_progress","content":[{"type":"terminal","terminalId":"t"}],"_meta":{"terminal_info":{"terminal_id":"t"}}}
  update {"sessionUpdate":"tool_call_update","toolCallId":"t","_meta":{"terminal_output_delta":{"terminal_id":"t","data":"first li"}}}
  update {"sessionUpdate":"tool_call_update","toolCallId":"t","_meta":{"terminal_output_delta":{"terminal_id":"t","data":"ne\nsecond line\n"}}}
  update {"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","_meta":{"terminal_exit":{"terminal_id":"t","exit_code":0,"signal":null}}}
  done end_turn
"#,
    );
    let text = world.run(&["exec", "x"]).ok();
    assert!(text.contains("  output:\n    first line\n    second line\n"), "{text}");
}

#[test]
fn an_answer_is_drawn_on_a_terminal_and_unchanged_elsewhere() {
    let answer = "# Title\n\nSome **bold** text.\n\n- one\n- two\n\n```sh\necho hi\n```\n\n[permission] no mark of ours";
    let (first, second) = answer.split_at(20);
    let piece = |text: &str| {
        let text = serde_json::to_string(text).unwrap();
        format!(
            "  update {{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":{text}}}}}\n"
        )
    };
    let tool = "  update {\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"t\",\"title\":\"Run\",\"status\":\"completed\",\"content\":[{\"type\":\"content\",\"content\":{\"type\":\"text\",\"text\":\"```console\\nfrom the tool\\n```\"}}]}\n";
    let script =
        format!("on session/prompt\n{}{}{tool}  say done\n  done end_turn\n", piece(first), piece(second));
    let world = World::new().agent(&script);

    let plain = world.run(&["exec", "go"]).code(0).stdout;
    assert!(plain.starts_with(answer), "{plain}");
    assert!(plain.contains("    ```console\n    from the tool\n"), "{plain}");

    let drawn = String::from_utf8(run(&world, WITH_KEYS, &["exec", "go"], &[])).unwrap();
    let drawn = drawn.replace('\r', "");
    let at = drawn.find("Title").unwrap_or_else(|| panic!("{drawn}"));
    let styles: &[&str] = &["\x1b[m", "\x1b[0m", "\x1b[1m"];
    let text = styles.iter().fold(drawn[at..].to_owned(), |text, style| text.replace(style, ""));
    assert!(text.contains("\n\nSome bold text.\n\n"), "{text}");
    assert!(text.contains("one\n") && text.contains("two\n\n"), "{text}");
    assert!(text.contains("echo") && !text.contains("```"), "{text}");
    assert!(text.contains("    from the tool\n"), "{text}");
    // Text of the agent cannot pass for ours, drawn or not.
    assert!(!text.contains("\n[permission]") && text.contains("[permission] no mark of ours"), "{text}");
    assert!(text.contains("\n\ndone\n\n"), "{text}");
}
