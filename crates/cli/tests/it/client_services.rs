//! Files and terminals that the agent uses without asking.

use crate::world::World;

fn call(method: &str, params: &str) -> String {
    format!("on session/prompt\n  call {method} {params}\n  say $last\n  done end_turn\n")
}

#[test]
fn files_of_the_session_and_no_others() {
    let world = World::new().agent(&call("fs/read_text_file", r#"{"path":"$cwd/a.txt","line":2,"limit":1}"#));
    world.write("a.txt", "one\ntwo\nthree\n");
    let read = world.run(&["--format", "quiet", "exec", "x"]).ok();
    assert!(read.contains("two") && !read.contains("one"), "{read}");
    let denied = world.run(&["--format", "quiet", "--deny-all", "exec", "x"]);
    assert!(denied.stdout.contains("\"code\""), "{denied:?}");

    let outside = World::new().agent(&call("fs/read_text_file", r#"{"path":"/etc/hostname"}"#));
    let run = outside.run(&["--format", "quiet", "--approve-all", "exec", "x"]);
    assert!(run.stdout.contains("\"code\""), "{run:?}");
}

#[test]
fn writes_need_permission() {
    let script = call("fs/write_text_file", r#"{"path":"$cwd/new/b.txt","content":"text"}"#);
    let world = World::new().agent(&script);
    let run = world.run(&["--format", "quiet", "exec", "x"]).code(5);
    assert!(run.stdout.contains("\"code\""), "{run:?}");
    assert!(!world.dir.join("new/b.txt").exists());
    world.run(&["--approve-all", "exec", "x"]).ok();
    assert_eq!(world.read("new/b.txt"), "text");
    let args = ["--policy", r#"{"autoDeny":["edit"]}"#, "--approve-all", "--format", "quiet", "exec", "x"];
    std::fs::remove_file(world.dir.join("new/b.txt")).unwrap();
    world.run(&args).code(5);
    assert!(!world.dir.join("new/b.txt").exists());
    // A refusal counts from the user and from a rule.
    let run = world.run(&["--deny-all", "exec", "x"]).code(5);
    assert!(run.stdout.contains("PERMISSION_DENIED"), "{run:?}");
    assert!(!world.dir.join("new/b.txt").exists());
    // Without a terminal that is reported, and it can be a failure of its own.
    let run = world.run(&["exec", "x"]).code(5);
    assert!(run.stdout.contains("[permission] denied (not a terminal): write "), "{run:?}");
    assert!(run.stdout.contains("--approve-all"), "{run:?}");
    let run = world.run(&["--non-interactive-permissions", "fail", "exec", "x"]).code(5);
    assert!(run.stdout.contains("PERMISSION_PROMPT_UNAVAILABLE"), "{run:?}");
}

#[test]
fn one_thing_allowed_is_enough() {
    let world = World::new().agent(
        r#"on session/prompt
  call fs/write_text_file {"path":"$cwd/a.md","content":"yes"}
  call fs/write_text_file {"path":"$cwd/b.txt","content":"no"}
  done end_turn
"#,
    );
    let policy = r#"{"autoApprove":[{"kind":"edit","path":"*.md"}],"defaultAction":"deny"}"#;
    world.run(&["--policy", policy, "exec", "x"]).code(0);
    assert_eq!(world.read("a.md"), "yes");
    assert!(!world.dir.join("b.txt").exists());
}

#[test]
fn terminals() {
    let world = World::new().agent(
        r#"on session/prompt
  call terminal/create {"command":"sh","args":["-c","echo from the terminal; exit 3"]}
  raw {"jsonrpc":"2.0","method":"_created","params":$last}
  call terminal/wait_for_exit {"terminalId":"term-1"}
  say $last
  call terminal/output {"terminalId":"term-1"}
  say $last
  done end_turn
"#,
    );
    let run = world.run(&["--approve-all", "--format", "quiet", "exec", "x"]).ok();
    assert!(run.contains("\"exitCode\":3") && run.contains("from the terminal"), "{run}");
}

#[test]
fn services_that_are_not_provided_are_not_advertised() {
    let world = World::new().agent(&call("fs/read_text_file", r#"{"path":"$cwd/a.txt"}"#));
    world.write("a.txt", "x");
    let run =
        world.run(&["--no-fs", "--no-terminal", "--approve-all", "--format", "quiet", "exec", "x"]).ok();
    assert!(run.contains("-32601"), "{run}");
    let hello = &world.log()[0]["params"]["clientCapabilities"];
    assert_ne!(hello["fs"]["readTextFile"], true);
    assert_ne!(hello["terminal"], true);
}

#[test]
fn further_directories() {
    let can = r#"on initialize
  reply {"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"additionalDirectories":{}}}}
"#;
    let world = World::new();
    let other = world.path("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("c.txt"), "elsewhere").unwrap();
    let script =
        format!("{can}{}", call("fs/read_text_file", &format!("{{\"path\":{:?}}}", other.join("c.txt"))));
    let world = world.agent(&script);
    let dir = other.to_str().unwrap().to_owned();
    let run = world.run(&["--add-dir", &dir, "--format", "quiet", "exec", "x"]).ok();
    assert!(run.contains("elsewhere"), "{run}");
}
