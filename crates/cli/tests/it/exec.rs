//! `attache exec`, its input and its exit codes.

use crate::world::World;

const ECHO: &str = "on session/prompt\n  say [$prompt]\n  done end_turn\n";

#[test]
fn the_prompt_comes_from_words_a_file_or_standard_input() {
    let world = World::new().agent(ECHO);
    assert_eq!(world.run(&["--format", "quiet", "exec", "two", "words"]).ok(), "[two words]\n");
    assert_eq!(world.pipe(&["--format", "quiet", "exec"], "piped\n").ok(), "[piped]\n");
    world.write("prompt.md", "from a file\n");
    assert_eq!(world.run(&["--format", "quiet", "exec", "-f", "prompt.md"]).ok(), "[from a file]\n");
    let both = world.pipe(&["--format", "quiet", "exec", "--file", "-", "and this"], "piped");
    assert_eq!(both.ok(), "[piped and this]\n");
    let blocks = r#"[{"type":"text","text":"one"},{"type":"resource_link","name":"n","uri":"file:///n"}]"#;
    assert_eq!(world.pipe(&["--format", "quiet", "exec"], blocks).ok(), "[one]\n");
    let sent = world.log().into_iter().rev().find(|line| line["method"] == "session/prompt").unwrap();
    assert_eq!(sent["params"]["prompt"][1]["type"], "resource_link");
}

#[test]
fn text_that_is_piped_in_without_a_command_is_one_shot() {
    let world = World::new().agent(ECHO);
    assert_eq!(world.pipe(&["--format", "quiet"], "hi").ok(), "[hi]\n");
    assert_eq!(world.pipe(&["scripted", "--format=quiet"], "hi").ok(), "[hi]\n");
}

#[test]
fn without_a_prompt_it_is_a_usage_error() {
    let world = World::new().agent(ECHO);
    let run = world.pipe(&["exec"], "  \n").code(2);
    assert!(run.stderr.contains("the prompt is empty"), "{}", run.stderr);
    world.run(&["exec", "-f", "missing.md"]).code(2);
}

#[test]
fn an_agent_can_be_any_command_or_an_address() {
    let world = World::new().agent(ECHO);
    let command =
        format!("{} {}", crate::world::test_agent().display(), world.path("scripted.script").display());
    assert_eq!(world.run(&["--agent", &command, "--format", "quiet", "exec", "hi"]).ok(), "[hi]\n");
    let refused = world.run(&["--agent", "tcp://127.0.0.1:1", "exec", "hi"]).code(1);
    assert!(refused.stdout.contains("cannot reach the agent at tcp://127.0.0.1:1"), "{}", refused.stdout);
    world.run(&["--agent", "tcp://nowhere", "exec", "hi"]).code(2);
    world.run(&["--agent", "x", "scripted", "exec", "hi"]).code(2);
    world.run(&["--agent", "'open", "exec", "hi"]).code(2);
}

#[test]
fn a_refusal_is_shown_once() {
    let world = World::new().agent("on session/prompt\n  fail -32603 the model is out\n");
    let text = world.run(&["exec", "hi"]).code(1);
    assert_eq!(text.stdout, "[error] RUNTIME: the model is out\nhint: attache doctor scripted\n");
    assert_eq!(text.stderr, "");
    let quiet = world.run(&["--format", "quiet", "exec", "hi"]).code(1);
    assert_eq!(
        (quiet.stdout.as_str(), quiet.stderr.as_str()),
        ("", "[attache] error: RUNTIME the model is out\n")
    );
    let json = world.run(&["--format", "json", "exec", "hi"]).code(1);
    let errors: Vec<_> = json.json().into_iter().filter(|line| line.get("error").is_some()).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["error"]["message"], "the model is out");
}

#[test]
fn a_failed_start_comes_with_advice() {
    let world = World::new();
    let run = world.run(&["--agent", "/nowhere/agent", "exec", "hi"]).code(1);
    assert!(run.stdout.contains("cannot start `/nowhere/agent`"), "{}", run.stdout);
    assert!(run.stdout.contains("hint:"), "{}", run.stdout);
    let run = world.run(&["--format", "json", "--agent", "/nowhere/agent", "exec", "hi"]).code(1);
    let error = &run.json()[0]["error"];
    assert_eq!(error["data"]["detailCode"], "AGENT_SPAWN_ENOENT");
    assert_eq!(error["code"], -32603);
    let world = world.env("PATH", "/nowhere");
    let run = world.run(&["gemini", "exec", "hi"]).code(1);
    assert!(run.stdout.contains("install it: npm install -g @google/gemini-cli"), "{}", run.stdout);
}

#[test]
fn options_and_the_model_are_set_before_the_prompt() {
    let world = World::new().agent(
        r#"on session/new
  reply {"sessionId":"s","configOptions":[{"id":"m","name":"Model","category":"model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]},{"id":"web","name":"Web","type":"boolean","currentValue":false}]}
on session/set_config_option
  reply {"configOptions":[{"id":"m","name":"Model","category":"model","type":"select","currentValue":"b","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]},{"id":"web","name":"Web","type":"boolean","currentValue":true}]}
"#,
    );
    world.run(&["--model", "b", "exec", "--config-option", "web=on", "hi"]).ok();
    let set: Vec<_> =
        world.log().into_iter().filter(|line| line["method"] == "session/set_config_option").collect();
    assert_eq!(set[0]["params"]["value"], "b");
    assert_eq!((&set[1]["params"]["configId"], &set[1]["params"]["value"]), (&"web".into(), &true.into()));
    assert_eq!(world.methods().last().unwrap(), "session/prompt");
    let wrong = world.run(&["exec", "--config-option", "nothing=1", "hi"]).code(1);
    assert!(wrong.stdout.contains("it offers: m, web"), "{}", wrong.stdout);
    world.run(&["exec", "--config-option", "nothing", "hi"]).code(2);
}

#[test]
fn session_options_travel_in_the_way_that_the_agent_knows() {
    let world = World::new().agent(ECHO);
    world
        .run(&[
            "--append-system-prompt",
            "Be brief.",
            "--allowed-tools",
            "Read, Grep",
            "--max-turns",
            "3",
            "exec",
            "x",
        ])
        .ok();
    let new = world.log().into_iter().find(|line| line["method"] == "session/new").unwrap();
    let meta = &new["params"]["_meta"];
    assert_eq!(meta["systemPrompt"]["append"], "Be brief.");
    assert_eq!(meta["claudeCode"]["options"]["allowedTools"][1], "Grep");
    assert_eq!(meta["claudeCode"]["options"]["maxTurns"], 3);
    world.run(&["--system-prompt", "a", "--append-system-prompt", "b", "exec", "x"]).code(2);

    let native = World::new().agent(
        "on initialize\n  reply {\"protocolVersion\":1,\"agentCapabilities\":{\"sessionCapabilities\":{\"systemPrompt\":{}}}}\n",
    );
    native.run(&["--append-system-prompt", "Be brief.", "exec", "x"]).ok();
    let new = native.log().into_iter().find(|line| line["method"] == "session/new").unwrap();
    assert_eq!(new["params"]["systemPrompt"]["mode"], "append");
    assert!(new["params"].get("_meta").is_none());
}

#[test]
fn mcp_servers_come_from_a_file_or_from_the_settings() {
    let world = World::new().agent(ECHO);
    world.write("mcp.json", r#"{"mcpServers":{"tools":{"command":"/bin/tools","env":{"A":"1"}}}}"#);
    world.run(&["--mcp-config", "mcp.json", "exec", "x"]).ok();
    let server = |world: &World| {
        let new = world.log().into_iter().rev().find(|line| line["method"] == "session/new").unwrap();
        new["params"]["mcpServers"][0].clone()
    };
    assert_eq!(server(&world)["name"], "tools");
    assert_eq!(server(&world)["env"][0]["name"], "A");
    world.named_agent("other", ECHO);
    let file = world.home().join("config.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        format!("{text}\n[[mcp_servers]]\nname = \"mine\"\ncommand = \"/bin/mine\"\nargs = [\"x\"]\n"),
    )
    .unwrap();
    world.run(&["exec", "x"]).ok();
    assert_eq!(server(&world)["args"][0], "x");
}

#[test]
fn credentials_reach_the_agent_and_nothing_else() {
    let world = World::new()
        .agent(
            r#"on initialize
  reply {"protocolVersion":1,"authMethods":[{"id":"api-key","name":"Key"}]}
on authenticate
  reply {}
on session/prompt
  say key: $env.API_KEY ours: $env.ATTACHE_AUTH_API_KEY
  done end_turn
"#,
        )
        .env("ATTACHE_AUTH_API_KEY", "sekret-12345");
    let run = world.run(&["-v", "--log", "wire.log", "exec", "x"]).code(0);
    assert!(world.methods().contains(&"authenticate".to_owned()));
    assert!(run.stdout.contains("key: sekret-12345 ours: \n"), "{}", run.stdout);
    // Logs never show them.
    assert!(!run.stderr.contains("sekret"), "{}", run.stderr);
    assert!(!world.read("wire.log").contains("sekret"));
    assert!(world.read("wire.log").contains("\"method\":\"session/prompt\""));

    let nobody = World::new().agent(
        "on initialize\n  reply {\"protocolVersion\":1,\"authMethods\":[{\"id\":\"k\",\"name\":\"K\"}]}\n",
    );
    nobody.run(&["exec", "x"]).ok();
    let run = nobody.run(&["--auth-policy", "fail", "--format", "json", "exec", "x"]).code(1);
    assert_eq!(run.json().last().unwrap()["error"]["data"]["detailCode"], "AUTH_REQUIRED");
}

#[test]
fn a_required_login_is_reported() {
    let world = World::new().agent(
        "on initialize\n  reply {\"protocolVersion\":1,\"authMethods\":[{\"id\":\"web\",\"name\":\"Web\"}]}\non session/new\n  fail -32000 log in first\n",
    );
    let run = world.run(&["exec", "x"]).code(1);
    assert!(run.stdout.contains("log in first"), "{}", run.stdout);
    assert!(run.stdout.contains("attache auth login scripted"), "{}", run.stdout);
    assert!(run.stdout.contains("ATTACHE_AUTH_WEB"), "{}", run.stdout);
    // An agent without a name is named by its command.
    let script = world.write("login.script", "on session/new\n  fail -32000 log in first\n");
    let agent = format!("{} {}", crate::world::test_agent().display(), script.display());
    let run = world.run(&["--agent", &agent, "exec", "x"]).code(1);
    assert!(run.stdout.contains(&format!("attache auth login '{agent}'")), "{}", run.stdout);
}

#[test]
fn attempts_are_made_again_only_where_nothing_was_done() {
    let script =
        "on session/prompt 1\n  fail -32603 overloaded\non session/prompt\n  say fine\n  done end_turn\n";
    let world = World::new().agent(script);
    assert_eq!(world.run(&["--prompt-retries", "2", "--format", "quiet", "exec", "x"]).ok(), "fine\n");
    let limited = World::new().agent(&script.replace("-32603 overloaded", "429 slow down"));
    assert_eq!(limited.run(&["--prompt-retries", "2", "--format", "quiet", "exec", "x"]).ok(), "fine\n");
    // What an error says does not make it temporary.
    let refused = World::new().agent(&script.replace("-32603 overloaded", "-32602 overloaded"));
    refused.run(&["--prompt-retries", "2", "exec", "x"]).code(1);
    assert_eq!(refused.methods().iter().filter(|method| *method == "session/prompt").count(), 1);
    let touched = World::new().agent(
        "on session/prompt\n  update {\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"t\",\"title\":\"x\"}\n  fail -32603 overloaded\n",
    );
    touched.run(&["--prompt-retries", "2", "exec", "x"]).code(1);
    assert_eq!(touched.methods().iter().filter(|method| *method == "session/prompt").count(), 1);
}

#[test]
fn budgets_cancel_the_turn_and_say_why() {
    let script = r#"on session/prompt
  update {"sessionUpdate":"usage_update","used":5000,"size":10000,"cost":{"amount":2.5,"currency":"USD"}}
  wait nothing
"#;
    let world = World::new().agent(script);
    let run = world.run(&["--max-tokens", "1000", "exec", "x"]).code(1);
    assert!(run.stdout.contains("5000 tokens are used, the limit is 1000"), "{}", run.stdout);
    let run = world.run(&["--max-cost", "1.5", "--format", "json", "exec", "x"]).code(1);
    assert_eq!(run.json().last().unwrap()["error"]["data"]["detailCode"], "BUDGET_EXCEEDED");
    assert!(world.methods().contains(&"session/cancel".to_owned()));
}

#[test]
fn a_finished_answer_counts_despite_its_cost() {
    let script = r#"on session/prompt
  say the answer
  update {"sessionUpdate":"usage_update","used":5000,"size":10000,"cost":{"amount":2.5,"currency":"USD"}}
  raw {"jsonrpc":"2.0","id":$id,"result":{"stopReason":"end_turn","usage":{"inputTokens":4000,"outputTokens":1000,"totalTokens":5000}}}
"#;
    let world = World::new().agent(script);
    for limit in [["--max-cost", "1.5"], ["--max-tokens", "1000"]] {
        let run = world.run(&[limit[0], limit[1], "exec", "x"]).code(0);
        assert!(run.stdout.contains("[done] end_turn"), "{}", run.stdout);
        assert!(run.stderr.contains("the budget is used up: "), "{}", run.stderr);
    }
}

#[test]
fn an_older_version_is_started_as_it_was_started_then() {
    let world = World::new().agent(ECHO);
    let bin = world.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let agent = crate::world::test_agent();
    let script = world.path("scripted.script");
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = --experimental-acp ] || {{ echo 'Unknown arguments: acp' >&2; exit 1; }}\nexec '{}' '{}'\n",
        agent.display(),
        script.display()
    );
    let gemini = bin.join("gemini");
    std::fs::write(&gemini, text).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&gemini, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let world = world.env("PATH", &path);
    assert_eq!(world.run(&["gemini", "--format", "quiet", "exec", "hi"]).ok(), "[hi]\n");
}

#[test]
fn a_name_that_is_nearly_right() {
    let run = World::new().env("PATH", "/nowhere").run(&["gemni", "exec", "hi"]).code(1);
    assert!(run.stdout.contains("did you mean `gemini`?"), "{}", run.stdout);
}

#[test]
fn notices_and_lines_that_are_no_messages_have_a_line() {
    // shows NOTE-02
    let world = World::new().agent(
        r#"on session/prompt
  raw Debugger attached.
  raw Debugger detached.
  update {"sessionUpdate":"notice","severity":"warning","title":"the model does not answer; retrying in 3 s","description":"attempt 2 of 5"}
  say Hello.
  done end_turn
"#,
    );
    let shown = world.run(&["--protocol", "1", "exec", "go"]).ok();
    assert!(shown.contains("! the agent prints lines that are no messages: Debugger attached.\n"), "{shown}");
    assert!(!shown.contains("detached"), "one line is enough: {shown}");
    assert!(shown.contains("! the model does not answer; retrying in 3 s\n  attempt 2 of 5\n"), "{shown}");
    let hello = world.log()[0].to_string();
    assert!(hello.contains("\"notices\":{}"), "{hello}");
    // An answer alone has none of it.
    assert_eq!(world.run(&["--format", "quiet", "exec", "go"]).ok(), "Hello.\n");
}
