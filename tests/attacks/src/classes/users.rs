//! Other processes and users of the same machine: they use a session's socket, or what lies in
//! shared directories.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::grants::{terminal, write};
use crate::peer::command_line;
use crate::report::{Group, Report};
use crate::world::{PATIENCE, SECRET, Suite, World, changed, created, finish};

const CLASS: &str = "users";

pub(crate) const GROUPS: &[Group] = &[
    Group::new(CLASS, "session-socket", "a process raises the rights of a session", session_socket),
    Group::new(CLASS, "own-commands", "a command of an agent uses the session that runs it", own_commands),
    Group::new(CLASS, "private-files", "files of the program can be read by others", private_files),
    Group::new(CLASS, "second-user", "another user takes over directories and sockets", second_user),
];

/// A session whose agent writes a file for every prompt, and whose process runs.
/// A prompt for the control socket of a session.
fn prompt_message(session: &str, text: &str, permits: &Value, attended: bool) -> Value {
    let prompt = json!({
        "blocks": [{ "type": "text", "text": text }], "permits": permits, "wait": true, "attended": attended,
    });
    json!({ "version": 4, "session": session, "command": { "prompt": prompt } })
}

fn session<'a>(suite: &'a Suite) -> (World<'a>, String) {
    let world = suite.world();
    let agent = command_line(&world, &json!({ "steps": [write("$cwd/written", "$prompt")] }));
    world.run(&["--agent", &agent, "sessions", "new"]);
    world.run(&["--agent", &agent, "prompt", "first"]);
    (world, agent)
}

fn socket(world: &World<'_>) -> Option<PathBuf> {
    let entries = fs::read_dir(world.root.join("run/attache")).ok()?.flatten();
    entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|kind| kind == "sock"))
}

fn id(world: &World<'_>, agent: &str) -> String {
    let run = world.run(&["--format", "json", "--agent", agent, "sessions", "show"]);
    let value: Value =
        serde_json::from_str(run.stdout.lines().next().unwrap_or_default()).unwrap_or_default();
    value["acpxRecordId"].as_str().unwrap_or_default().to_owned()
}

fn speak(path: &Path, message: &Value) -> String {
    let Ok(mut stream) = UnixStream::connect(path) else { return "no connection".to_owned() };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
    let _ = stream.write_all(format!("{message}\n").as_bytes());
    let mut seen = Vec::new();
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        seen.extend_from_slice(&bytes[..count]);
        if String::from_utf8_lossy(&seen).contains("\"failure\"")
            || String::from_utf8_lossy(&seen).contains("\"done\"")
        {
            break;
        }
    }
    String::from_utf8_lossy(&seen).into_owned()
}

fn session_socket(suite: &Suite, report: &mut Report) {
    let (world, agent) = session(suite);
    let (Some(path), id) = (socket(&world), id(&world, &agent)) else {
        return report.control("a session has a socket", false, "none found");
    };
    let base = json!({ "mode": "ask", "unanswered": "deny", "retries": 0 });
    let permits: Vec<(&str, Value)> = vec![
        ("approve-all", json!({ "mode": "approve-all" })),
        ("rules", json!({ "rules": "{\"autoApprove\":[\"edit\"]}" })),
        ("rules with a mode", json!({ "rules": "{\"mode\":\"approve-all\"}" })),
        ("default of rules", json!({ "rules": "{\"defaultAction\":\"approve\"}" })),
        ("unknown mode", json!({ "mode": "APPROVE-ALL" })),
        ("mode as a list", json!({ "mode": ["approve-all"] })),
        ("no mode", json!({ "mode": null })),
    ];
    for (name, change) in permits {
        for attended in [true, false] {
            let mut permits = base.clone();
            permits.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            let message = prompt_message(&id, "raised", &permits, attended);
            let _ = fs::remove_file(world.path("written"));
            let answer = speak(&path, &message);
            report.attack(
                format!("{name}, attended {attended}"),
                format!("to the session's socket: {message}"),
                created(&world.path("written")).map(|what| format!("{what}: {answer}")),
            );
        }
    }
    for (name, message) in [
        (
            "set mode",
            json!({ "version": 4, "session": id, "command": { "set": { "option": ["permissions", "approve-all"] } } }),
        ),
        ("open a page", json!({ "version": 4, "session": id, "command": { "open": "file:///etc/passwd" } })),
        (
            "other session",
            prompt_message(
                "x",
                "raised",
                &json!({ "mode": "approve-all", "unanswered": "deny", "retries": 0 }),
                false,
            ),
        ),
        (
            "no version",
            json!({ "session": id, "command": { "prompt": { "permits": { "mode": "approve-all" }, "blocks": [] } } }),
        ),
    ] {
        let _ = fs::remove_file(world.path("written"));
        let answer = speak(&path, &message);
        report.attack(
            name,
            format!("to the session's socket: {message}"),
            created(&world.path("written")).map(|what| format!("{what}: {answer}")),
        );
    }
    let _ = fs::remove_file(world.path("written"));
    let run = world.run(&["--approve-all", "--agent", &agent, "prompt", "allowed"]);
    report.control("the user raises the mode", world.path("written").exists(), run.tail());
}

/// A command of an agent calls the program for the session that runs it, or for another one.
fn own_commands(suite: &Suite, report: &mut Report) {
    let lines: &[(&str, &[&str])] = &[
        ("prompt with more rights", &["--approve-all", "--agent", "$A", "prompt", "evil"]),
        ("prompt without waiting", &["--approve-all", "--agent", "$A", "--no-wait", "prompt", "evil"]),
        ("set-mode", &["--agent", "$A", "set-mode", "auto"]),
        ("trust", &["trust", "add", "--nothing"]),
    ];
    for (name, words) in lines {
        let world = suite.world();
        let writer = command_line(&world, &json!({ "steps": [write("$cwd/written", "evil")] }));
        world.run(&["--agent", &writer, "sessions", "new"]);
        world.run(&["--agent", &writer, "prompt", "first"]);
        let words: Vec<String> = words.iter().map(|word| word.replace("$A", &writer)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let program = suite.program.display().to_string();
        // The user allowed this command to run, in a sandbox; not what it asks a session outside to
        // do.
        let steps = terminal(&program, &words, json!({}));
        let agent = command_line(&world, &json!({ "steps": steps }));
        world.run(&["--approve-all", "--sandbox", "--agent", &agent, "exec", "go"]);
        report.attack(
            *name,
            format!("a sandboxed command runs attache {}", words.join(" ")),
            created(&world.path("written")),
        );
    }
}

/// Everything that the program writes, with an open umask.
fn private_files(suite: &Suite, report: &mut Report) {
    let (world, agent) = session(suite);
    let open = |world: &World<'_>, args: &[&str], input: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 000; exec \"$@\"", "sh"]).arg(&suite.program).args(args);
        command.current_dir(&world.dir).env_clear().envs(world.env());
        finish(command.stdin(Stdio::piped()), Some(input), PATIENCE)
    };
    let fresh = suite.world();
    let agent2 = command_line(&fresh, &json!({ "steps": [write("$cwd/written", "x")] }));
    let recordings = fresh.root.join("recordings");
    let recording = recordings.join("r.jsonl").display().to_string();
    fs::create_dir(&recordings).unwrap();
    let log = recordings.join("wire.log").display().to_string();
    let words: Vec<&str> = agent2.split(' ').collect();
    open(&fresh, &["--approve-all", "--log", &log, "--agent", &agent2, "exec", "go"], "");
    open(&fresh, &["--agent", &agent2, "sessions", "new"], "");
    open(&fresh, &["--approve-all", "--agent", &agent2, "prompt", "go"], "");
    open(
        &fresh,
        &[&["record", &recording, "--"], words.as_slice()].concat(),
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n",
    );
    open(&fresh, &["config", "set", "format", "text"], "");
    open(&fresh, &["agent", "--login", "openai"], "sk-stored-key\n");
    fresh.write("AGENTS.md", "x");
    open(&fresh, &["trust", "add"], "");
    let mut count = 0;
    let mut check = |dir: &Path| {
        let mut queue = vec![dir.to_owned()];
        while let Some(path) = queue.pop() {
            let Ok(meta) = path.symlink_metadata() else { continue };
            if meta.is_dir() {
                queue.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
            let shown = path.strip_prefix(&fresh.root).unwrap_or(&path).display().to_string();
            let happened = (meta.mode() & 0o077 != 0 && !meta.is_symlink())
                .then(|| format!("its mode is {:o}", meta.mode() & 0o7777));
            report.attack(
                format!("mode of {}", normal(&shown)),
                format!("umask 000; attache; {shown}"),
                happened,
            );
            count += 1;
        }
    };
    for dir in
        ["home/.config/attache", "home/.local/state/attache", "home/.local/share/attache", "run/attache"]
    {
        check(&fresh.root.join(dir));
    }
    for file in fs::read_dir(&recordings).unwrap().flatten() {
        check(&file.path());
    }
    report.control("files are found", count > 8, format!("{count} files"));
    let plain = fresh.root.join("plain");
    open(&fresh, &["--version"], "");
    Command::new("sh").args(["-c", "umask 000; echo x > \"$0\""]).arg(&plain).status().unwrap();
    report.control("an open umask", plain.metadata().is_ok_and(|meta| meta.mode() & 0o077 != 0), "not open");
    drop((world, agent));
}

/// A path without what differs from run to run.
fn normal(path: &str) -> String {
    path.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
}

const NOBODY: &str = "65534";

fn as_nobody(world: &World<'_>, program: &Path, args: &[&str]) -> crate::world::Run {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(program).args(args);
    command.current_dir("/").env_clear().envs(world.env());
    finish(command.stdin(Stdio::null()), None, PATIENCE)
}

fn second_user(suite: &Suite, report: &mut Report) {
    let world = suite.world();
    let probe = as_nobody(&world, &suite.this, &["--help"]);
    if probe.code != Some(0) {
        return report.skip("all", "this needs root, setpriv, and programs that other users can run");
    }
    let nobody = |line: &str| as_nobody(&world, Path::new("/bin/sh"), &["-c", line]);
    let shared = |name: &str| {
        let dir = suite.root.join(format!("{name}-{}", suite.number()));
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o1777)).unwrap();
        dir
    };
    // A runtime directory that was there before.
    for (name, squat) in [
        ("directory", "mkdir -m 777 $D/attache"),
        ("link", "mkdir -m 777 $D/mine; ln -s $D/mine $D/attache"),
        ("private directory", "mkdir -m 700 $D/attache"),
        ("file", "touch $D/attache"),
    ] {
        for variable in ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            let dir = shared("runtime");
            nobody(&squat.replace("$D", &dir.display().to_string()));
            let mut world = suite.world();
            world.set(variable, &dir);
            let agent = command_line(&world, &json!({ "steps": [write("$cwd/written", "x")] }));
            world.run(&["--agent", &agent, "sessions", "new"]);
            world.run(&["--approve-all", "--agent", &agent, "prompt", SECRET]);
            world.run(&["--approve-all", "--agent", &agent, "exec", SECRET]);
            let inside = |name: &str| fs::read_dir(dir.join(name)).into_iter().flatten().flatten().count();
            let count = inside("attache") + inside("mine");
            let happened =
                (count > 0).then(|| format!("{count} files were put into another user's directory"));
            report.attack(
                format!("{variable}/attache is another user's {name}"),
                format!("as nobody: {squat}; {variable}=$D attache"),
                happened,
            );
        }
    }
    // The socket of a session.
    let (owner, agent) = session(suite);
    if let Some(path) = socket(&owner) {
        let shown = path.display().to_string();
        let run = as_nobody(&owner, &suite.this, &["probe", "unix", &shown, "{}"]);
        report.attack(
            "connect to a session",
            "as nobody: connect to the socket",
            run.stdout.contains("probe: done").then(|| run.tail()),
        );
        // Even if its directory were open.
        for dir in [path.parent().unwrap(), path.parent().unwrap().parent().unwrap()] {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let permits = json!({ "mode": "ask", "unanswered": "deny", "retries": 0 });
        let message = prompt_message(&id(&owner, &agent), "evil", &permits, true).to_string();
        let run = as_nobody(&owner, &suite.this, &["probe", "unix", &shown, &message]);
        let answered = run.stdout.contains("queued") || run.stdout.contains("\"update\"");
        report.attack(
            "speak to a session with an open socket",
            "as nobody: a prompt to the socket",
            answered.then(|| run.tail()),
        );
    }
    // Recordings, logs and exports in shared directories.
    let agent = command_line(&world, &json!({ "steps": [] }));
    let words: Vec<&str> = agent.split(' ').collect();
    for (name, prepare) in [
        ("link", "ln -s $T $F"),
        ("dangling link", "ln -s $D/new $F"),
        ("file", "touch $F; chmod 666 $F"),
        ("pipe", "mkfifo -m 666 $F"),
        ("link to a pipe", "mkfifo -m 666 $D/new; ln -s $D/new $F"),
    ] {
        let dir = shared("recording");
        let (file, target) = (dir.join("r.jsonl"), world.outside("precious"));
        fs::write(&target, "precious\n").unwrap();
        let line = prepare
            .replace("$T", &target.display().to_string())
            .replace("$F", &file.display().to_string())
            .replace("$D", &dir.display().to_string());
        nobody(&line);
        let shown = file.display().to_string();
        let recorded = world.pipe(
            &[&["record", "--overwrite", &shown, "--"], words.as_slice()].concat(),
            "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n",
        );
        let logged = world.run_for(&["--log", &shown, "--agent", &agent, "exec", SECRET], PATIENCE);
        let read = format!("for f in {shown} {}/new; do test -p $f || cat $f; done", dir.display());
        let readable = nobody(&read).output().contains(SECRET);
        let hung = (recorded.hung || logged.hung).then(|| "the program hangs".to_owned());
        let happened = hung
            .or_else(|| changed(&target, "precious\n"))
            .or_else(|| readable.then(|| "another user can read it".to_owned()));
        report.attack(
            format!("recording over another user's {name}"),
            format!("as nobody: {line}; attache record"),
            happened,
        );
    }
    // Temporary directories of the demonstration.
    let dir = shared("demo");
    let mut demo = suite.world();
    demo.set("TMPDIR", &dir);
    let mut child = demo
        .command(&["demo"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut seen = Vec::new();
    let start = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() && start.elapsed() < PATIENCE {
        for entry in fs::read_dir(&dir).unwrap().flatten() {
            if let Ok(meta) = entry.metadata()
                && meta.mode() & 0o077 != 0
            {
                seen.push(format!("{} has mode {:o}", entry.path().display(), meta.mode() & 0o7777));
            }
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
    report.attack(
        "temporary directory of the demo",
        "attache demo with a shared TMPDIR",
        seen.first().cloned(),
    );
    let left = fs::read_dir(&dir)
        .unwrap()
        .flatten()
        .next()
        .map(|entry| format!("{} is left", entry.path().display()));
    report.attack("leftovers of the demo", "attache demo", left);
    // Projects of another user.
    let dir = shared("project");
    nobody(&format!(
        "mkdir -m 777 {0}/p; mkdir {0}/p/.git; echo 'permissions = \"approve-all\"' > {0}/p/.attache.toml; chmod -R 777 {0}/p",
        dir.display()
    ));
    let mut other = suite.world();
    other.dir = dir.join("p");
    let agent = command_line(&other, &json!({ "steps": [write("$cwd/written", "x")] }));
    other.run(&["--agent", &agent, "exec", "go"]);
    report.attack(
        "settings in another user's directory",
        "as nobody: .attache.toml",
        created(&other.path("written")),
    );
    let _ = symlink("x", dir.join("unused"));
    let run = nobody("id -u");
    report.control("another user acts", run.stdout.trim() == NOBODY, run.tail());
    let secret = suite.root.join("readable");
    fs::write(&secret, SECRET).unwrap();
    report.control(
        "another user reads an open file",
        nobody(&format!("cat {}", secret.display())).stdout.contains(SECRET),
        "not read",
    );
}
