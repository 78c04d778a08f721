//! Files and directories that other users must not read, replace or put in our way.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::auth_terminal::Terminal;
use super::second_user::{as_nobody, files_with, mode, shared_dir};
use super::world::{World, eventually, test_agent};

const KEY: &str = "sk-ant-REDACTED0123456789abcdef";

/// A command with the usual places of the system instead of one home.
fn with_xdg(world: &World, args: &[&str], runtime: &Path) -> Command {
    let mut command = world.command(args);
    command.env_remove("ATTACHE_HOME").env("HOME", world.path("xdg")).env("XDG_RUNTIME_DIR", runtime);
    for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
        command.env(name, world.path("xdg").join(name));
    }
    command
}

/// Settings for [`with_xdg`], with a scripted agent.
fn xdg_world() -> World {
    let world = World::new().agent("on session/prompt\n  say fine\n  done end_turn\n");
    let config = world.path("xdg/XDG_CONFIG_HOME/attache");
    fs::create_dir_all(&config).unwrap();
    fs::copy(world.home().join("config.toml"), config.join("config.toml")).unwrap();
    world
}

fn run(mut command: Command) -> (Option<i32>, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_runtime_directory_of_another_user_is_refused() {
    let world = xdg_world();
    let shared = world.path("shared");
    shared_dir(&shared);
    let Some(mut squat) = as_nobody("mkdir") else { return };
    assert!(squat.args(["-m", "777"]).arg(shared.join("attache")).status().unwrap().success());
    assert_eq!(run(with_xdg(&world, &["sessions", "new"], &shared)).0, Some(0));
    let (code, text) = run(with_xdg(&world, &["prompt", "hi"], &shared));
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("belongs to user 65534") && text.contains("ATTACHE_HOME"), "{text}");
}

#[test]
fn a_runtime_directory_that_belongs_to_another_user_is_not_used() {
    let world = xdg_world();
    let theirs = world.path("theirs");
    shared_dir(&world.path("shared"));
    let Some(mut make) = as_nobody("mkdir") else { return };
    assert!(make.args(["-m", "777"]).arg(world.path("shared/theirs")).status().unwrap().success());
    fs::rename(world.path("shared/theirs"), &theirs).unwrap();
    assert_eq!(run(with_xdg(&world, &["sessions", "new"], &theirs)).0, Some(0));
    let (code, text) = run(with_xdg(&world, &["prompt", "hi"], &theirs));
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0);
    assert!(world.path("xdg/XDG_STATE_HOME/attache/run").is_dir());
    assert_eq!(run(with_xdg(&world, &["sessions", "close"], &theirs)).0, Some(0));
}

#[test]
fn a_link_or_an_open_directory_is_refused_and_left_alone() {
    let world = World::new().agent("");
    world.run(&["sessions", "new"]).ok();
    let (run_dir, elsewhere) = (world.home().join("run"), world.path("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    let _ = fs::remove_dir_all(&run_dir);
    symlink(&elsewhere, &run_dir).unwrap();
    let run = world.run(&["prompt", "hi"]).code(1);
    assert!(format!("{}{}", run.stdout, run.stderr).contains("is a symbolic link"), "{run:?}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    fs::remove_file(&run_dir).unwrap();
    shared_dir(&run_dir);
    let run = world.run(&["prompt", "hi"]).code(1);
    assert!(format!("{}{}", run.stdout, run.stderr).contains("chmod 700"), "{run:?}");
    // The same holds for the state, where answers to questions are remembered.
    let state = world.home().join("state");
    fs::rename(&state, world.path("state")).unwrap();
    symlink(world.path("state"), &state).unwrap();
    let run = world.run(&["exec", "hi"]).code(1);
    assert!(format!("{}{}", run.stdout, run.stderr).contains("is a symbolic link"), "{run:?}");
}

/// Runs a shell line without any protection by the umask.
fn openly(world: &World, line: &str) -> std::process::Output {
    let program = env!("CARGO_BIN_EXE_attache");
    let plain = world.command(&[]);
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("umask 000; {}", line.replace("attache ", &format!("{program} "))));
    command.current_dir(&world.dir).stdin(Stdio::null());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.output().unwrap()
}

#[test]
fn written_files_are_private_with_any_umask() {
    let world = World::new().agent("on session/prompt\n  say fine\n  done end_turn\n");
    let agent = format!("{} {}", test_agent().display(), world.path("scripted.script").display());
    fs::create_dir(world.dir.join("talks")).unwrap();
    for line in [
        format!("attache --agent 'attache record talk.jsonl -- {agent}' exec hi"),
        format!("attache --agent 'attache record talks -- {agent}' exec hi"),
        "attache --log wire.log exec hi".to_owned(),
        "attache trace --html talk.html talk.jsonl".to_owned(),
        "attache --agent 'attache replay talk.jsonl --report replay.json' exec hi".to_owned(),
        "attache check trace --report json=check.json --report html=check.html --out check.txt talk.jsonl; true".to_owned(),
        format!("attache check agent --scenario version-1 --traces traces -- {agent}; true"),
        "attache sessions new".to_owned(),
        "attache hello".to_owned(),
        "attache sessions export --output archive.json".to_owned(),
        "attache sessions close".to_owned(),
    ] {
        let done = openly(&world, &line);
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let mut files: Vec<PathBuf> = [
        "talk.jsonl",
        "wire.log",
        "talk.html",
        "replay.json",
        "check.json",
        "check.html",
        "check.txt",
        "archive.json",
    ]
    .iter()
    .map(|name| world.dir.join(name))
    .collect();
    for dir in ["talks", "traces"] {
        let inner = fs::read_dir(world.dir.join(dir)).unwrap().map(|entry| entry.unwrap().path());
        let before = files.len();
        files.extend(inner);
        assert!(files.len() > before, "nothing in {dir}");
    }
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    let mut dirs = vec![world.home().join("state"), world.home().join("run")];
    while let Some(dir) = dirs.pop() {
        assert_eq!(mode(&dir), 0o700, "{}", dir.display());
        for entry in fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap()) {
            match entry.file_type().unwrap().is_dir() {
                true => dirs.push(entry.path()),
                false => assert_eq!(mode(&entry.path()) & 0o077, 0, "{}", entry.path().display()),
            }
        }
    }
}

#[test]
fn a_login_makes_a_private_directory_and_a_readable_key_is_refused() {
    let world = World::new().agent("");
    fs::remove_dir_all(world.home()).unwrap();
    let home = world.home().display().to_string();
    let done = openly(
        &world,
        &format!(
            "echo {KEY} | ATTACHE_HOME={home} DBUS_SESSION_BUS_ADDRESS=none PATH=/nowhere attache agent --login openai"
        ),
    );
    let text = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    assert!(done.status.success(), "{text}");
    assert!(!text.contains(KEY), "{text}");
    let keys = world.home().join("agent-keys.json");
    assert_eq!((mode(&world.home()), mode(&keys)), (0o700, 0o600));
    let credentials = world.home().join("credentials.json");
    fs::write(&credentials, r#"{"version":2,"agents":{}}"#).unwrap();
    for path in [&keys, &credentials] {
        assert!(Command::new("chmod").arg("644").arg(path).status().unwrap().success());
    }
    let run = world.run(&["auth", "status", "attache"]).code(1);
    assert!(run.stderr.contains("credentials.json") && run.stderr.contains("chmod 600"), "{}", run.stderr);
    let run = world.run(&["agent"]).code(0);
    assert!(run.stderr.contains("agent-keys.json") && run.stderr.contains("chmod 600"), "{}", run.stderr);
}

/// Nothing that this program keeps holds a key, wherever it appeared.
#[test]
fn keys_are_not_kept() {
    let script = format!(
        r#"on session/prompt 1
  say the key {KEY} is long
  say and once more: sk-ant-
  say REDACTED01234
  say 56789abcdef, split
  update {{"sessionUpdate":"tool_call","toolCallId":"t","title":"cat .env with {KEY}","kind":"read","status":"completed","rawOutput":"OPENAI_API_KEY={KEY}","content":[{{"type":"content","content":{{"type":"text","text":"KEY={KEY}\nand plain-secret-1"}}}}]}}
  update {{"sessionUpdate":"session_info_update","title":"about {KEY}"}}
  stderr the key is {KEY}
  call fs/read_text_file {{"path":"$cwd/{KEY}.txt"}}
  say bye
  done end_turn
on session/prompt
  fail -32603 the key {KEY} is wrong
"#
    );
    let world = World::new().agent(&script).env("MY_SECRET", "plain-secret-1");
    world.run(&["sessions", "new"]).ok();
    let run = world.run(&["--approve-all", &format!("use {KEY} please")]);
    assert!(run.stdout.contains("plain-secret-1") || run.stdout.contains(KEY), "{run:?}");
    world.run(&["again"]).code(1);
    let history = world.run(&["sessions", "history"]).ok();
    assert!(history.contains("use ***") && history.contains("and once more: ***, split"), "{history}");
    world.run(&["sessions", "export", "--output", "archive.json"]).ok();
    world.run(&["sessions", "close"]).ok();
    for secret in [KEY, "plain-secret-1", "REDACTED0123456789"] {
        assert_eq!(files_with(&world.home(), secret), Vec::<PathBuf>::new());
        assert_eq!(files_with(&world.dir, secret), Vec::<PathBuf>::new());
    }
    // An archive of another user is not trusted to be clean.
    let archive = world.read("archive.json").replace("use ***", &format!("use {KEY}"));
    let archive = world.write("theirs.json", &archive);
    world.run(&["sessions", "delete"]);
    world.run(&["sessions", "prune", "--include-history"]).ok();
    world.run(&["sessions", "import", &archive.to_string_lossy()]).ok();
    fs::remove_file(archive).unwrap();
    assert_eq!(files_with(&world.home(), KEY), Vec::<PathBuf>::new());
}

#[test]
fn recordings_are_masked_and_can_be_replayed() {
    let script = format!(
        r#"on session/prompt
  call terminal/create {{"command":"sh","args":["-c","echo $GREETING"],"env":[{{"name":"GREETING","value":"hello"}},{{"name":"MY_TOKEN","value":"tok-1"}}]}}
  say with {KEY}
  done end_turn
"#
    );
    let world = World::new().agent(&script).env("MY_SECRET", "plain-secret-1");
    let agent = format!("{} {}", test_agent().display(), world.path("scripted.script").display());
    let program = env!("CARGO_BIN_EXE_attache");
    let exec =
        |command: &str| world.run(&["--approve-all", "--agent", command, "exec", "say plain-secret-1"]);
    let plain = exec(&format!("{program} record --no-mask plain.jsonl -- {agent} --api-key abcdefgh")).ok();
    let masked = exec(&format!("{program} record masked.jsonl -- {agent} --api-key abcdefgh")).ok();
    assert_eq!(plain, masked, "the bytes pass unchanged");
    for secret in [KEY, "plain-secret-1", "tok-1", "abcdefgh"] {
        assert!(world.read("plain.jsonl").contains(secret), "{secret}");
        assert!(!world.read("masked.jsonl").contains(secret), "{secret}");
    }
    assert!(world.read("masked.jsonl").contains(r#"\"value\":\"hello\""#), "{}", world.read("masked.jsonl"));
    let replayed = exec(&format!("{program} replay masked.jsonl --report report.json"));
    assert!(replayed.stdout.contains("with ***"), "{replayed:?}");
    assert!(world.read("report.json").contains("\"faithful\": true"), "{}", world.read("report.json"));
    world.run(&["record", "--mask", "--no-mask", "x.jsonl", "--", "true"]).code(2);
}

#[test]
fn the_demo_works_in_a_directory_of_its_own_and_removes_it() {
    for signal in ["INT", "TERM", "HUP"] {
        let world = World::new();
        shared_dir(&world.path("tmp"));
        let tmp = world.path("tmp").display().to_string();
        let mut terminal = Terminal::start(&world, &["demo"], &[("TMPDIR", &tmp)]);
        terminal.sees(" 1 y ");
        let entries: Vec<PathBuf> = fs::read_dir(&tmp).unwrap().map(|entry| entry.unwrap().path()).collect();
        let [dir] = entries.as_slice() else { panic!("{entries:?}") };
        assert_eq!(mode(dir), 0o700);
        let name = dir.file_name().unwrap().to_string_lossy().into_owned();
        assert!(!name.contains(&terminal.pid().to_string()), "{name} can be guessed");
        let pid = terminal.pid().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap().success());
        let (status, text) = terminal.end();
        assert_eq!(status.code(), Some(130), "{text}");
        eventually("the end of the directory", || fs::read_dir(&tmp).unwrap().count() == 0);
    }
}

#[test]
fn a_place_for_temporary_files_that_others_rule_is_refused() {
    let world = World::new();
    let open = world.path("open");
    shared_dir(&open);
    Command::new("chmod").arg("777").arg(&open).status().unwrap();
    let run = |tmp: &Path| {
        let output = world.command(&["demo"]).env("TMPDIR", tmp).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = run(&open);
    assert!(code == Some(1) && text.contains("not sticky"), "{text}");
    let Some(mut make) = as_nobody("mkdir") else { return };
    assert!(make.arg(open.join("theirs")).status().unwrap().success());
    let (code, text) = run(&open.join("theirs"));
    assert!(code == Some(1) && text.contains("belongs to user 65534"), "{text}");
    assert_eq!(fs::read_dir(open.join("theirs")).unwrap().count(), 0);
}
