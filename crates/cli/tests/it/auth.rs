//! `attache auth`: every way to log in that an agent can offer.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::auth_terminal::Terminal;
use super::world::{Run, World};

fn object(run: Run) -> Value {
    run.json().pop().unwrap()
}

/// An agent with these ways to log in, which wants one before the first session.
fn wants_login(methods: &Value, more: &str) -> String {
    let hello = json!({
        "protocolVersion": 1,
        "agentCapabilities": { "auth": { "logout": {} } },
        "authMethods": methods,
    });
    format!("on initialize\n  reply {hello}\non session/new 1\n  fail -32000 who are you?\n{more}")
}

#[test]
fn the_agent_logs_in_by_itself() {
    // shows AUTH-02, AUTH-03, AUTH-07, AUTH-20
    let methods = json!([{ "id": "browser", "name": "With a browser" }]);
    // The probe behind the login is the first session here, so it must work.
    let script = wants_login(&methods, "on authenticate\n  stderr please look at the browser\n  reply {}\n")
        .replace("on session/new 1\n  fail -32000 who are you?\n", "");
    let world = World::new().agent(&script);
    let run = world.run(&["auth", "login"]);
    assert!(run.stderr.contains("| please look at the browser"), "{}", run.stderr);
    assert_eq!(run.ok(), "logged in to scripted\n");
    let sent = world.log().into_iter().find(|line| line["method"] == "authenticate").unwrap();
    assert_eq!(sent["params"], json!({ "methodId": "browser" }));
}

#[test]
fn a_login_without_effect_is_reported() {
    let methods = json!([{ "id": "browser", "name": "With a browser" }]);
    let world = World::new().agent(&wants_login(&methods, "on authenticate\n  reply {}\n"));
    let run = world.run(&["auth", "login", "scripted"]).code(1);
    assert!(run.stderr.contains("still requires a login"), "{}", run.stderr);
    let world = World::new().agent(&wants_login(&methods, "on authenticate\n  fail -32603 wrong password\n"));
    let run = world.run(&["auth", "login"]).code(1);
    assert!(run.stderr.contains("wrong password"), "{}", run.stderr);
}

#[test]
fn of_several_ways_one_is_named() {
    // shows AUTH-10, AUTH-21
    let methods = json!([
        { "id": "a", "name": "First" },
        { "id": "b", "name": "Second", "description": "the other one" },
        { "id": "x", "name": "New", "type": "telepathy" },
    ]);
    let script =
        wants_login(&methods, "on session/new\n  reply {\"sessionId\":\"s\"}\non authenticate\n  reply {}\n")
            .replace("on session/new 1\n  fail -32000 who are you?\n", "");
    let world = World::new().agent(&script);
    let run = world.run(&["auth", "login"]).code(2);
    assert!(
        run.stderr.contains("--method") && run.stderr.contains("b  Second: the other one"),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("telepathy"), "{}", run.stderr);
    for unknown in ["x", "c"] {
        assert!(
            world
                .run(&["auth", "login", "--method", unknown])
                .code(2)
                .stderr
                .contains("has no way to log in called")
        );
    }
    assert!(!world.methods().contains(&"authenticate".to_owned()));
    let done = object(world.run(&["--format", "json", "auth", "login", "--method", "b"]));
    assert_eq!(
        (&done["method"], &done["type"], &done["state"]),
        (&json!("b"), &json!("agent"), &json!("authenticated"))
    );
}

#[test]
fn a_page_is_accepted_only_on_request() {
    // shows ELIC-28, ELIC-29
    let methods = json!([{ "id": "web", "name": "Web" }]);
    let ask = json!({
        "mode": "url", "requestId": 0, "elicitationId": "e1", "url": "https://example.com/login?code=42",
        "message": "Please sign in",
    });
    let ask = ask.to_string().replace("\"requestId\":0", "\"requestId\":$id");
    let more =
        format!("on authenticate\n  call elicitation/create {ask}\n  stderr answer $last\n  reply {{}}\n");
    let script = wants_login(&methods, &more).replace("on session/new 1\n  fail -32000 who are you?\n", "");
    let world = World::new().agent(&script);
    let run = world.run(&["auth", "login", "--yes"]).code(0);
    assert!(run.stderr.contains("scripted asks: Please sign in"), "{}", run.stderr);
    assert!(run.stderr.contains("https://example.com/login?code=42"), "{}", run.stderr);
    assert!(run.stderr.contains("\"action\":\"accept\""), "{}", run.stderr);
    // Without a terminal and without a setting such questions are not even offered.
    let run = world.run(&["auth", "login"]).code(0);
    assert!(!run.stderr.contains("\"action\":\"accept\""), "{}", run.stderr);
    // In a terminal the user decides.
    let mut terminal = Terminal::start(&world, &["auth", "login", "scripted"], &[]);
    terminal.sees("https://example.com/login?code=42");
    terminal.sees("Visit this page?");
    terminal.keys("n\n");
    terminal.sees("\"action\":\"decline\"");
    assert!(terminal.end().0.success());
}

/// An agent that wants a variable, and says with which it was started.
fn wants_variable() -> World {
    let methods = json!([{
        "id": "key", "name": "API key", "type": "env_var", "link": "https://example.com/keys",
        "vars": [{ "name": "MY_AGENT_KEY", "label": "Key" }, { "name": "MY_AGENT_REGION", "secret": false, "optional": true }],
    }]);
    let world = World::new();
    let agent = world.path("key-agent");
    let script = format!(
        r#"#!/bin/sh
while read -r line; do
  id=${{line#*\"id\":}}; id=${{id%%[,\}}]*}}
  case "$line" in
    *'"initialize"'*) echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"protocolVersion":1,"authMethods":{methods}}}}}';;
    *'"session/new"'*)
      if [ "$MY_AGENT_KEY" = sesame-123 ]; then echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"sessionId":"s"}}}}'
      else echo '{{"jsonrpc":"2.0","id":'$id',"error":{{"code":-32000,"message":"a key is needed"}}}}'; fi;;
    *'"authenticate"'*) echo called > authenticate.called;;
  esac
done
"#
    );
    fs::write(&agent, script).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    world.settings(&format!("[agents.keyed]\nargv = [{agent:?}]"));
    world
}

#[test]
fn variables_are_asked_for_and_kept_only_with_consent() {
    // shows AUTH-21
    let world = wants_variable();
    let file = world.home().join("credentials.json");
    let run = world.run(&["auth", "login", "keyed"]).code(1);
    assert!(run.stderr.contains("needs MY_AGENT_KEY in its environment"), "{}", run.stderr);
    // Given for once, it is not kept.
    world.run(&["auth", "login", "keyed", "--env", "MY_AGENT_KEY=sesame-123"]).ok();
    assert!(!file.exists());
    // Typed, it is not shown; declined, it is not kept.
    let mut terminal = Terminal::start(&world, &["auth", "login", "keyed"], &[]);
    terminal.sees("https://example.com/keys");
    terminal.sees("Key: ");
    terminal.keys("sesame-123\r");
    terminal.sees("MY_AGENT_REGION (optional): ");
    terminal.keys("\n");
    terminal.sees("which only you can read? [y/N]");
    terminal.keys("n\n");
    let (status, text) = terminal.end();
    assert!(
        status.success() && text.contains("logged in to keyed") && !text.contains("sesame-123"),
        "{text}"
    );
    assert!(!file.exists());
    // A wrong one is not kept either way.
    let run = world.run(&["auth", "login", "keyed", "--env", "MY_AGENT_KEY=wrong", "--save"]).code(1);
    assert!(run.stderr.contains("still requires a login") && !file.exists(), "{}", run.stderr);
    // With consent it is, where only the user can read it, and it is used from then on.
    let mut terminal = Terminal::start(&world, &["auth", "login", "keyed"], &[]);
    terminal.sees("Key: ");
    terminal.keys("sesame-123\r");
    terminal.sees("(optional): ");
    terminal.keys("\n");
    terminal.sees("[y/N]");
    terminal.keys("y\n");
    assert!(terminal.end().0.success());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let status = object(world.run(&["--format", "json", "auth", "status", "keyed"]));
    assert_eq!(
        (&status["state"], &status["keptVariables"]),
        (&json!("authenticated"), &json!(["MY_AGENT_KEY"]))
    );
    assert!(world.run(&["doctor", "keyed"]).ok().contains("keyed works"));
    // A secret of one agent is not for another.
    let other = world.run(&["auth", "status", &world.path("key-agent").to_string_lossy()]).code(1);
    assert!(other.stderr.contains("needs a login"), "{}", other.stderr);
    assert_eq!(world.run(&["auth", "logout", "keyed"]).ok(), "forgot MY_AGENT_KEY\n");
    assert!(!file.exists() && !world.dir.join("authenticate.called").exists());
    assert!(world.run(&["auth", "logout", "keyed"]).code(1).stderr.contains("cannot log out"));
}

/// An agent that is logged in by running it in a terminal. What it is started with goes to a file.
fn wants_terminal() -> World {
    let methods = json!([{
        "id": "tty", "name": "In the terminal", "type": "terminal", "args": ["--login", "now"], "env": { "MODE": "login", "BASE": "method" },
    }]);
    let world = World::new();
    let agent = world.path("tty-agent");
    let script = format!(
        r#"#!/bin/sh
echo "$MODE $BASE $*" >> starts
if [ "$MODE" = login ]; then
  [ -t 0 ] && [ -t 1 ] || exit 9
  printf 'password: '; read -r password
  [ "$password" = sesame ] || exit 3
  echo in > token; exit 0
fi
while read -r line; do
  id=${{line#*\"id\":}}; id=${{id%%[,\}}]*}}
  case "$line" in
    *'"initialize"'*)
      methods='[]'
      case "$line" in *'"auth":{{"terminal":true}}'*) methods='{methods}';; esac
      echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"protocolVersion":1,"authMethods":'$methods'}}}}';;
    *'"session/new"'*)
      if [ -e token ]; then echo '{{"jsonrpc":"2.0","id":'$id',"result":{{"sessionId":"s"}}}}'
      else echo '{{"jsonrpc":"2.0","id":'$id',"error":{{"code":-32000,"message":"log in"}}}}'; fi;;
  esac
done
"#
    );
    fs::write(&agent, script).unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    world.settings(&format!("[agents.tty]\nargv = [{agent:?}, '--acp']\nenv = {{ BASE = 'settings' }}"));
    world
}

#[test]
fn a_login_in_the_terminal_runs_the_agents_program_there() {
    // shows AUTH-08, AUTH-09, AUTH-10, AUTH-11, AUTH-12, AUTH-13
    let world = wants_terminal();
    // Without a terminal it is not offered.
    let run = world.run(&["auth", "login", "tty"]).code(1);
    assert!(run.stderr.contains("offers no login method"), "{}", run.stderr);
    fs::remove_file(world.dir.join("starts")).unwrap();
    let mut terminal = Terminal::start(&world, &["auth", "login", "tty"], &[]);
    terminal.sees("password: ");
    terminal.keys("wrong\n");
    let (status, text) = terminal.end();
    assert_eq!(status.code(), Some(1));
    assert!(text.contains("did not succeed (exit code 3)"), "{text}");
    let mut terminal = Terminal::start(&world, &["auth", "login", "tty"], &[]);
    terminal.sees("password: ");
    terminal.keys("sesame\n");
    let (status, text) = terminal.end();
    assert!(status.success() && text.contains("logged in to tty"), "{text}");
    let starts = world.read("starts");
    let lines: Vec<&str> = starts.lines().map(str::trim).collect();
    // The agent, the login; the agent, the login, and the agent again.
    let login = "login method --acp --login now";
    assert_eq!(lines, ["settings --acp", login, "settings --acp", login, "settings --acp"]);
}

#[test]
fn ctrl_c_ends_a_login_in_the_terminal() {
    let world = wants_terminal();
    let mut terminal = Terminal::start(&world, &["auth", "login", "tty"], &[]);
    terminal.sees("password: ");
    terminal.keys("\x03");
    let (status, text) = terminal.end();
    assert!(!status.success(), "{text}");
    assert!(!world.dir.join("token").exists());
}

#[test]
fn the_login_status_is_shown() {
    // shows AUTH-16, AUTH-22, AUTH-23
    let hello = |status: &str| {
        let hello = json!({
            "protocolVersion": 1,
            "agentCapabilities": { "auth": { "status": {}, "logout": {} } },
            "authMethods": [{ "id": "a", "name": "First" }],
        });
        format!("on initialize\n  reply {hello}\non auth/status\n  reply {status}\non logout\n  reply {{}}\n")
    };
    let world = World::new().agent(&hello(
        r#"{"state":"authenticated","accounts":[{"label":"Ann","email":"ann@example.com","active":true},{"label":"Bob"}]}"#,
    ));
    assert_eq!(world.run(&["auth", "status"]).ok(), "scripted: logged in\n* Ann (ann@example.com)\n  Bob\n");
    assert!(!world.methods().contains(&"session/new".to_owned()), "the agent reported it, nothing was tried");
    assert_eq!(world.run(&["auth", "logout"]).ok(), "logged out of scripted\n");
    assert!(world.methods().contains(&"logout".to_owned()));
    let world = World::new().agent(&hello(r#"{"state":"unauthenticated"}"#));
    let run = world.run(&["auth", "status"]).code(1);
    assert!(run.stdout.contains("a login is needed\n  a  First\n"), "{}", run.stdout);
    assert!(run.stderr.contains("attache auth login scripted"), "{}", run.stderr);
    // An unknown state says nothing: a session does.
    let world = World::new().agent(&hello(r#"{"state":"_moonwalking"}"#));
    assert_eq!(world.run(&["--format", "quiet", "auth", "status"]).ok(), "authenticated\n");
    // An agent without any of this.
    let world = World::new().agent("");
    assert_eq!(world.run(&["auth", "status"]).ok(), "scripted: no login is needed\n");
    assert_eq!(world.run(&["auth", "login"]).ok(), "scripted needs no login\n");
    assert!(world.run(&["auth", "logout"]).code(1).stderr.contains("cannot log out"));
    assert!(!world.methods().contains(&"logout".to_owned()));
}
