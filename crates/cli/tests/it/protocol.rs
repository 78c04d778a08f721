//! Which version of the protocol is spoken, and that users see no difference.

use crate::world::World;

/// The command of our own agent with a scripted model.
fn own_agent(world: &World, script: &str) -> String {
    let path = world.write("model.script", script);
    format!("'{}' agent --model 'script:{}' --no-store", env!("CARGO_BIN_EXE_attache"), path.display())
}

#[test]
fn both_versions_print_the_same() {
    let world = World::new();
    let script = "== when \"hello\"\n--\nthink a greeting\nsay Hello yourself.\n";
    let agent = own_agent(&world, script);
    for format in ["text", "quiet"] {
        let printed = |version: &str| {
            world.run(&["--protocol", version, "--format", format, "--agent", &agent, "exec", "hello"]).ok()
        };
        let one = printed("1");
        assert!(one.contains("Hello yourself."), "{one}");
        assert_eq!(one, printed("2"));
        assert_eq!(one, printed("auto"));
    }
    let run = world.run(&["--protocol", "2", "--format", "json", "--agent", &agent, "exec", "hello"]);
    let lines = run.code(0).json();
    assert_eq!(lines[1]["result"]["protocolVersion"], 2);
    // Later lines have the form of version 1.
    let last = lines.last().unwrap();
    assert_eq!(last["result"]["stopReason"], "end_turn", "{last}");
    assert!(lines.iter().all(|line| line["params"]["update"]["sessionUpdate"] != "state_update"));
}

#[test]
fn a_change_is_asked_about_and_made_in_version_2() {
    let world = World::new();
    let script = "== when \"write\"\n--\ncall write {\"path\":\"new.txt\",\"content\":\"hello\\n\"}\n--\nsay Written.\n";
    let agent = own_agent(&world, script);
    let args = |mode: &'static str| {
        ["--protocol", "2", mode, "--agent", &agent, "exec", "write it"].map(str::to_owned)
    };
    let run = |mode| {
        let args = args(mode);
        world.run(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    run("--deny-all");
    assert!(!world.path("new.txt").exists());
    let text = run("--approve-all").ok();
    assert_eq!(world.read("new.txt"), "hello\n", "{text}");
    assert!(text.contains("new.txt") && text.contains("Written."), "{text}");
}

#[test]
fn an_agent_of_version_1_is_started_twice_once() {
    let world = World::new().agent("");
    let offers = |world: &World| {
        let hellos = world.log().into_iter().filter(|line| line["method"] == "initialize");
        hellos.map(|line| line["params"]["protocolVersion"].clone()).collect::<Vec<_>>()
    };
    world.run(&["exec", "hello"]).ok();
    assert_eq!(offers(&world), [2, 1]);
    world.run(&["exec", "hello"]).ok();
    assert_eq!(offers(&world), [2, 1, 1]);
    let agents = world.run(&["--format", "json", "agents"]).json().remove(0);
    let default = agents.as_array().unwrap().iter().find(|agent| agent["default"] == true).unwrap();
    assert_eq!(default["protocolVersion"], 1, "{default}");
    assert!(world.run(&["agents"]).ok().contains("(config, protocol 1)"));
    world.run(&["--protocol", "1", "exec", "hello"]).ok();
    let run = world.run(&["--protocol", "2", "exec", "hello"]).code(1);
    assert!(run.stdout.contains("version"), "{}", run.stdout);
}

#[test]
fn a_command_line_with_version_2_alone_is_started_once() {
    let world = World::new();
    let agent = own_agent(&world, "== when \"hello\"\n--\nsay Hello yourself.\n");
    // It refuses the offer of version 1, names version 2 and goes on as our own agent.
    let script = format!(
        r#"echo started >>starts
read -r line
case $line in *'"protocolVersion":1'*) ;; *) exit 9 ;; esac
id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32022,"message":"no","data":{{"requested":1,"supported":[2]}}}}}}\n' "$id"
exec {agent}
"#
    );
    let path = world.write("agent.sh", &script);
    let agent = format!("sh '{}'", path.display());
    let lines = world.run(&["--format", "json", "--agent", &agent, "exec", "hello"]).code(0).json();
    assert!(lines.iter().any(|line| line["result"]["protocolVersion"] == 2), "{lines:?}");
    assert_eq!(lines.last().unwrap()["result"]["stopReason"], "end_turn");
    assert_eq!(world.read("starts"), "started\n");
}

#[test]
fn status_and_agents_name_the_version() {
    let world = World::new();
    let agent = own_agent(&world, "== when \"hello\"\n--\nsay Hello.\n");
    world.settings(&format!("[agents.mine]\ncommand = \"\"\"{agent}\"\"\""));
    for version in ["1", "2"] {
        let session = format!("session-{version}");
        let run = |args: &[&str]| world.run(&[&["--protocol", version, "mine"], args].concat()).ok();
        run(&["sessions", "new", "--name", &session]);
        run(&["prompt", "-s", &session, "hello"]);
        let status = run(&["status", "-s", &session]);
        assert!(status.contains(&format!("\nprotocol: {version}\n")), "{status}");
    }
    let agents = world.run(&["--format", "json", "agents"]).json().remove(0);
    let mine = agents.as_array().unwrap().iter().find(|agent| agent["name"] == "mine").unwrap();
    assert_eq!(mine["protocolVersion"], 2, "{mine}");
}

#[test]
fn agents_of_version_2_get_files_as_an_mcp_server_on_request() {
    let world = World::new().env("ATTACHE_MCP_SERVER", "true");
    let agent = own_agent(&world, "== when \"hello\"\n--\nsay Hello.\n");
    let run = world.run(&["--protocol", "2", "--format", "json", "--agent", &agent, "exec", "hello"]);
    let lines = run.code(0).json();
    let new = lines.iter().find(|line| line["method"] == "session/new").unwrap();
    let server = &new["params"]["mcpServers"][0];
    assert_eq!((&server["type"], &server["args"][0]), (&"stdio".into(), &"mcp-server".into()), "{new}");
    let run = world.run(&["--protocol", "1", "--format", "json", "--agent", &agent, "exec", "hello"]);
    let lines = run.code(0).json();
    let new = lines.iter().find(|line| line["method"] == "session/new").unwrap();
    assert_eq!(new["params"]["mcpServers"], serde_json::json!([]));
}
