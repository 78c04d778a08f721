//! Attacks on the socket of a session, from both sides.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::second_user::{NOBODY, as_nobody, mode, shared_dir};
use super::world::{World, eventually, test_agent};

/// An agent that can be found again and writes a file when it is asked to.
const WRITES: &str = r#"on initialize
  reply {"protocolVersion":1,"agentCapabilities":{"loadSession":true}}
on session/load
  reply {}
on session/prompt
  call fs/write_text_file {"path":"$cwd/b.txt","content":"$prompt"}
  say done $pid\n
  done end_turn
"#;

/// A session of this agent, whose process runs.
fn started(script: &str, args: &[&str]) -> World {
    let world = World::new().agent(script);
    world.run(&["sessions", "new"]).ok();
    world.run(&[args, &["prompt", "first"]].concat());
    world
}

fn socket(world: &World) -> PathBuf {
    let entries = fs::read_dir(world.home().join("run")).unwrap().map(|entry| entry.unwrap().path());
    entries.into_iter().find(|path| path.extension().is_some_and(|it| it == "sock")).unwrap()
}

/// Where the socket of a session is looked for.
fn socket_of(world: &World, id: &str) -> PathBuf {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    world.home().join(format!("run/{hash:016x}.sock"))
}

fn session(world: &World) -> String {
    let show = world.run(&["--format", "json", "sessions", "show"]).json().remove(0);
    show["acpxRecordId"].as_str().unwrap().to_owned()
}

fn owner(world: &World) -> u64 {
    world.run(&["--format", "json", "status"]).json()[0]["pid"].as_u64().unwrap()
}

fn log(world: &World) -> String {
    let entries = fs::read_dir(world.home().join("state/logs")).into_iter().flatten().flatten();
    entries.map(|entry| fs::read_to_string(entry.path()).unwrap()).collect()
}

/// A raw connection to the owner.
struct Raw(BufReader<UnixStream>);

impl Raw {
    fn new(world: &World) -> Raw {
        let stream = UnixStream::connect(socket(world)).unwrap();
        // Nothing takes as long; what does, hangs.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Raw(BufReader::new(stream))
    }

    fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    /// The next object of the owner's own; `None` at the end.
    fn hear(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(own) = line.strip_prefix('=') {
                return Some(serde_json::from_str(own).unwrap());
            }
        }
    }

    fn failure(&mut self) -> String {
        let value = self.hear().unwrap();
        value["failure"]["message"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
    }
}

fn permits(mode: &str) -> Value {
    json!({ "mode": mode, "unanswered": "deny", "retries": 0 })
}

fn prompt(world: &World, permits: Value) -> Value {
    let blocks = json!([{ "type": "text", "text": "raw" }]);
    let prompt = json!({ "blocks": blocks, "permits": permits, "wait": true, "attended": true });
    json!({ "version": 4, "session": session(world), "command": { "prompt": prompt } })
}

#[test]
fn invalid_requests_are_answered_with_an_error() {
    let world = started(WRITES, &[]);
    let id = session(&world);
    let request = |value: Value| {
        let mut request = json!({ "version": 4, "session": id });
        request.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        request.to_string()
    };
    let prompt = |permits: Value, blocks: Value| json!({ "blocks": blocks, "permits": permits, "wait": true, "attended": true });
    let deep = "[".repeat(100_000);
    for (line, why) in [
        ("", "not valid"),
        ("hello", "not valid"),
        (deep.as_str(), "not valid"),
        ("\u{0}\u{1b}[2J", "not valid"),
        ("[]", "not valid"),
        ("null", "not valid"),
        ("{}", "missing field `version`"),
        (&request(json!({ "version": 1, "do": "status" })), "another version"),
        (&request(json!({ "version": 2, "command": "status" })), "another version"),
        (&request(json!({ "version": "3", "command": "status" })), "another version"),
        (&request(json!({ "session": "x", "command": "status" })), "not the process of that session"),
        (&request(json!({})), "missing field `command`"),
        (&request(json!({ "command": "explode" })), "unknown variant `explode`"),
        (&request(json!({ "command": ["prompt"] })), "not valid"),
        (&request(json!({ "command": "set" })), "not valid"),
        (&request(json!({ "command": { "prompt": {} } })), "missing field `blocks`"),
        (
            &request(json!({ "command": { "prompt": prompt(permits("ask"), json!([{ "type": 1 }])) } })),
            "not valid",
        ),
        (&request(json!({ "command": { "prompt": prompt(permits("root"), json!([])) } })), "not valid"),
    ] {
        let mut raw = Raw::new(&world);
        raw.send(line);
        let failure = raw.failure();
        assert!(failure.contains(why), "{line:.60}: {failure}");
        assert_eq!(raw.hear(), None);
    }
    // Bytes that are no text, and the end in the middle of a line.
    let mut raw = Raw::new(&world);
    raw.0.get_mut().write_all(b"\xff\xfe{\n").unwrap();
    assert!(raw.failure().contains("not valid"));
    let mut raw = Raw::new(&world);
    raw.0.get_mut().write_all(b"{\"version\":4").unwrap();
    raw.0.get_mut().shutdown(std::net::Shutdown::Write).unwrap();
    assert!(raw.failure().contains("has no end"));
    assert!(world.run(&["--approve-all", "prompt", "still there"]).stdout.contains("done"));
}

#[test]
fn an_endless_line_is_not_gathered() {
    let world = started(WRITES, &[]);
    let pid = owner(&world);
    let mut raw = Raw::new(&world);
    let chunk = vec![b'a'; 1 << 20];
    // The owner stops reading before all of it was sent.
    let sent = (0..80).take_while(|_| raw.0.get_mut().write_all(&chunk).is_ok()).count();
    assert!((64..80).contains(&sent), "{sent} MiB were taken");
    let mut text = String::new();
    let _ = raw.0.read_to_string(&mut text);
    assert!(text.is_empty() || text.contains("longer than"), "{text}");
    assert_eq!(owner(&world), pid);
    assert!(log(&world).contains("longer than"), "{}", log(&world));
}

#[test]
fn connections_that_say_nothing_do_not_keep_others_out() {
    let world = started(WRITES, &[]);
    let mut silent: Vec<Raw> = (0..60).map(|_| Raw::new(&world)).collect();
    assert!(world.run(&["prompt", "meanwhile"]).code == Some(5), "the prompt was not run");
    // A connection beyond the limit gets a message, and silent ones are closed.
    let mut crowd: Vec<Raw> = (0..60).map(|_| Raw::new(&world)).collect();
    assert!(crowd.last_mut().unwrap().failure().contains("too many"));
    assert!(silent[0].failure().contains("took longer"));
    assert_eq!(silent[0].hear(), None);
    drop((silent, crowd));
    eventually("room", || world.run(&["prompt", "after"]).code == Some(5));
}

#[test]
fn a_command_that_does_not_read_can_be_cancelled() {
    let world = started(
        "on session/prompt 1\n  done end_turn\non session/prompt 2\n  flood 20000 words that nobody reads\n  done end_turn\n",
        &[],
    );
    let mut raw = Raw::new(&world);
    raw.send(&prompt(&world, permits("ask")).to_string());
    assert!(raw.hear().unwrap().get("queued").is_some());
    // It has its answer and takes nothing more, so that the next prompt waits behind it.
    assert!(world.run(&["--no-wait", "prompt", "next"]).ok().starts_with("[queued]"));
    world.run(&["cancel"]).ok();
    eventually("the next prompt", || {
        world.methods().iter().filter(|method| *method == "session/prompt").count() == 3
    });
    drop(raw);
}

#[test]
fn a_mode_cannot_be_raised_through_the_socket() {
    let world = started(WRITES, &["--approve-reads"]);
    let file = world.dir.join("b.txt");
    let rules = r#"{"autoApprove":[{"tool":"*"}],"defaultAction":"approve"}"#;
    let more = |member: &str, value: Value| {
        let mut permits = permits("ask");
        permits[member] = value;
        permits
    };
    for permits in
        [permits("approve-all"), more("rules", json!(rules)), more("answers", json!({ "sure": true }))]
    {
        let mut raw = Raw::new(&world);
        raw.send(&prompt(&world, permits.clone()).to_string());
        let failure = raw.failure();
        assert!(failure.contains("was not started for"), "{permits}: {failure}");
        assert_eq!(raw.hear(), None);
    }
    let before = world.methods().len();
    // What is within its bounds is run.
    let mut raw = Raw::new(&world);
    let mut quiet = prompt(&world, permits("approve-reads"));
    quiet["command"]["prompt"]["attended"] = json!(false);
    raw.send(&quiet.to_string());
    let last = std::iter::from_fn(|| raw.hear()).last().unwrap();
    assert!(last.get("failure").is_some() || last == "ended", "{last}");
    assert!(world.methods().len() > before);
    assert!(!file.exists());
}

#[test]
fn more_permissions_start_a_new_process() {
    let world = started(WRITES, &[]);
    let first = owner(&world);
    world.run(&["--deny-all", "prompt", "less"]).code(5);
    assert_eq!(owner(&world), first);
    world.run(&["--approve-all", "prompt", "more"]).ok();
    assert_eq!(world.read("b.txt"), "more");
    let second = owner(&world);
    assert_ne!(second, first);
    // From now on both are within its bounds.
    world.run(&["prompt", "less"]).code(5);
    world.run(&["--approve-all", "prompt", "again"]).ok();
    assert_eq!((world.read("b.txt").as_str(), owner(&world)), ("again", second));
    // The conversation is the same one.
    assert!(world.methods().contains(&"session/load".to_owned()));
    let prompts: Vec<Value> =
        world.log().into_iter().filter(|line| line["method"] == "session/prompt").collect();
    assert!(prompts.iter().all(|prompt| prompt["params"]["sessionId"] == prompts[0]["params"]["sessionId"]));
}

#[test]
fn a_running_turn_is_not_ended_to_allow_more() {
    let world = World::new().agent("on session/prompt\n  say begun\\n\n  wait nothing\n");
    world.run(&["sessions", "new"]).ok();
    let mut running = world.start(&["prompt", "go"]);
    running.until("begun");
    let run = world.run(&["--approve-all", "prompt", "more"]).code(1);
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(
        said.contains("approve-all") && said.contains("a prompt runs") && said.contains("cancel"),
        "{said}"
    );
    world.run(&["cancel"]).ok();
    running.end().code(0);
}

#[test]
fn settings_are_made_by_a_process_with_the_rights_that_were_typed() {
    let world = World::new().agent(WRITES);
    world.run(&["sessions", "new"]).ok();
    world.run(&["--approve-all", "set", "model", "x"]);
    let first = owner(&world);
    world.run(&["--approve-all", "prompt", "more"]).ok();
    assert_eq!(owner(&world), first);
}

const ASKS: &str = r#"on session/prompt 1
  done end_turn
on session/prompt
  call session/request_permission {"toolCall":{"toolCallId":"t","title":"Edit","kind":"edit"},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}
  say $last
  done end_turn
"#;

fn answer(question: Value, choice: usize) -> Value {
    json!({ "answer": { "question": question, "answer": { "choice": choice } } })
}

#[test]
fn only_the_question_that_was_asked_is_answered() {
    let world = started(ASKS, &[]);
    let mut raw = Raw::new(&world);
    // Answers that come before the question, and to others.
    let early: String = [2, 7, u64::MAX].iter().map(|id| format!("\n{}", answer(json!(id), 0))).collect();
    raw.send(&format!("{}{early}", prompt(&world, permits("ask"))));
    let question = std::iter::from_fn(|| raw.hear()).find(|value| value.get("choose").is_some()).unwrap();
    let id = question["choose"]["question"].as_u64().unwrap();
    for wrong in [
        json!({ "answer": { "answer": { "choice": 0 } } }),
        answer(Value::Null, 0),
        answer(json!(id + 1), 0),
        answer(json!(id - 1), 0),
        answer(json!(id.to_string()), 0),
        json!(["answer"]),
    ] {
        raw.send(&wrong.to_string());
    }
    raw.send("not json");
    raw.send(&answer(json!(id), 1).to_string());
    while raw.hear().is_some_and(|value| value != "ended" && value.get("failure").is_none()) {}
    let answers: Vec<String> = world
        .log()
        .iter()
        .filter_map(|line| Some(line.pointer("/result/outcome/optionId")?.as_str()?.to_owned()))
        .collect();
    assert_eq!(answers, ["no"]);
}

#[test]
fn a_command_of_the_agent_cannot_drive_its_own_session() {
    let program = env!("CARGO_BIN_EXE_attache");
    let script = format!(
        r#"on session/prompt
  call terminal/create {{"command":"sh","args":["-c","for what in 'prompt raise' 'set-mode auto'; do {program} --approve-all $what; echo code $?; done > {{out}} 2>&1"]}}
  say started\n
  wait session/cancel
"#
    );
    let world = World::new();
    let out = world.path("out");
    let world = world.agent(&script.replace("{out}", &out.display().to_string()));
    world.run(&["sessions", "new"]).ok();
    let mut running = world.start(&["--approve-all", "prompt", "go"]);
    running.until("started");
    eventually("both answers", || {
        fs::read_to_string(&out).unwrap_or_default().matches("code 1").count() == 2
    });
    let said = fs::read_to_string(&out).unwrap();
    assert_eq!(said.matches("a command of an agent cannot use a session").count(), 2, "{said}");
    assert!(!world.methods().contains(&"session/set_mode".to_owned()));
    assert_eq!(world.methods().iter().filter(|method| *method == "session/prompt").count(), 1);
    world.run(&["cancel"]).ok();
    running.end();
}

#[test]
fn a_page_without_consent_is_not_opened() {
    let world = World::new().agent(WRITES);
    world.run(&["sessions", "new"]).ok();
    // A process that plays the owner of the session: it has the lock and the socket.
    let (id, opened) = (session(&world), world.path("opened"));
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(world.home().join(format!("state/sessions/{id}.lock")))
        .unwrap();
    lock.lock().unwrap();
    fs::DirBuilder::new().mode(0o700).create(world.home().join("run")).unwrap();
    let listener = UnixListener::bind(socket_of(&world, &id)).unwrap();
    let browser = world.write("browser", &format!("#!/bin/sh\necho \"$1\" >> {}\n", opened.display()));
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let client = world
        .command(&["prompt", "go"])
        .env("BROWSER", &browser)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (stream, _) = listener.accept().unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert!(serde_json::from_str::<Value>(&line).unwrap()["command"]["prompt"].is_object());
    let page = "https://example.org/";
    for message in [
        json!({ "queued": { "request": "q", "ahead": 0 } }),
        json!({ "open": "file:///etc/passwd" }),
        json!({ "open": page }),
        json!({ "tell": page }),
        json!({ "open": page }),
        json!("ended"),
    ] {
        stream.get_mut().write_all(format!("={message}\n").as_bytes()).unwrap();
    }
    let output = client.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(text.matches("did not agree to").count(), 3, "{text}");
    assert!(!opened.exists(), "{}", fs::read_to_string(&opened).unwrap_or_default());
}

#[test]
fn the_socket_and_its_directory_are_private() {
    let world = started(WRITES, &[]);
    assert_eq!((mode(&world.home().join("run")), mode(&socket(&world))), (0o700, 0o600));
}

#[test]
fn a_process_of_another_user_gets_nothing_from_a_session() {
    let world = started(WRITES, &[]);
    // As if a careless person had opened it to everybody.
    for (path, mode) in [(world.home().join("run"), 0o755), (socket(&world), 0o777)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let Some(mut command) = as_nobody(env!("CARGO_BIN_EXE_attache")) else { return };
    shared_dir(&world.path("shared"));
    let address = format!("unix:{}", socket(&world).display());
    let output = command
        .args(["--agent", &address, "exec", "hi"])
        .env("ATTACHE_HOME", world.path("shared/home"))
        .env("ATTACHE_PERMISSIONS", "deny-all")
        .current_dir("/")
        .output()
        .unwrap();
    assert!(!output.status.success());
    eventually("a line in the log", || log(&world).contains(&format!("runs as user {NOBODY}")));
    assert!(world.run(&["--approve-all", "prompt", "mine"]).stdout.contains("done"));
}

#[test]
fn a_socket_that_another_user_serves_is_not_talked_to() {
    let world = World::new().agent(WRITES);
    world.run(&["sessions", "new"]).ok();
    let id = session(&world);
    let Some(_) = as_nobody("true") else { return };
    // A session of the other user, whose socket lies where ours should be.
    let theirs = world.path("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("agent.script"), WRITES).unwrap();
    let config =
        format!("[agents.scripted]\nargv = [{:?}, {:?}]\n", test_agent(), theirs.join("agent.script"));
    fs::create_dir(theirs.join("home")).unwrap();
    fs::create_dir(theirs.join("work")).unwrap();
    fs::write(theirs.join("home/config.toml"), config).unwrap();
    let owned = std::process::Command::new("chown").args(["-R", &NOBODY.to_string()]).arg(&theirs).status();
    assert!(owned.unwrap().success());
    let run = |args: &[&str]| {
        let mut command = as_nobody(env!("CARGO_BIN_EXE_attache")).unwrap();
        command.args(args).current_dir(theirs.join("work"));
        command.env("ATTACHE_HOME", theirs.join("home")).env("ATTACHE_AGENT", "scripted");
        command.env("ATTACHE_TTL", "60").env("HOME", &theirs);
        command.output().unwrap()
    };
    assert!(run(&["sessions", "new"]).status.success());
    let output = run(&["--approve-all", "prompt", "theirs"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ours = socket_of(&world, &id);
    fs::create_dir_all(world.home().join("run")).unwrap();
    let entries = fs::read_dir(theirs.join("home/run")).unwrap().map(|entry| entry.unwrap().path());
    fs::rename(entries.into_iter().next().unwrap(), &ours).unwrap();
    for args in [&["prompt", "secret words"][..], &["cancel"], &["set-mode", "code"], &["sessions", "close"]]
    {
        let run = world.run(args).code(1);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(
            said.contains("runs as user 65534") && said.contains("remove the socket"),
            "{args:?}: {said}"
        );
    }
    let heard = fs::read_to_string(theirs.join("agent.log")).unwrap();
    assert!(heard.contains("theirs") && !heard.contains("secret words"));
    fs::rename(&ours, theirs.join("home/run").join(ours.file_name().unwrap())).unwrap();
    // Its own user can still end it.
    let pid = fs::read_dir(theirs.join("home/state/sessions")).unwrap().find_map(|entry| {
        let text = fs::read_to_string(entry.unwrap().path()).ok()?;
        serde_json::from_str::<Value>(&text).ok()?["pid"].as_u64()
    });
    let killed = std::process::Command::new("kill").arg(pid.unwrap().to_string()).status();
    assert!(killed.unwrap().success());
}
