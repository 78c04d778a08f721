//! Our agent driven by npm's acpx, one process for each scene, as a user would.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::pair::{self, Start};
use super::super::real;
use super::super::report::{Report, Row};
use super::super::tap::{self, From};
use super::NAME;
use super::played::{Played, Tally};

const TIME: Duration = Duration::from_secs(60);
/// acpx keeps the agent for a second after a prompt.
const AFTER: Duration = Duration::from_secs(20);

struct Scene {
    name: &'static str,
    args: &'static [&'static str],
    /// How acpx ends. `None`: what it says after an interrupt depends on who is faster.
    code: Option<i32>,
    /// Interrupted once this has come over the wire.
    interrupted_at: Option<&'static str>,
    judge: fn(&Played<'_>) -> Vec<(&'static str, bool)>,
}

const SCENES: &[Scene] = &[
    Scene {
        name: "answer",
        args: &["--format", "quiet", "exec", "say one"],
        code: Some(0),
        interrupted_at: None,
        judge: |played| vec![("the answer is printed", played.ended.stdout == ["one"])],
    },
    Scene {
        name: "read",
        args: &["exec", "read lines.txt"],
        code: Some(0),
        interrupted_at: None,
        judge: |played| {
            vec![
                ("the file is read by the client", played.said(From::Agent, "fs/read_text_file")),
                ("what was read is printed", played.shows("gamma")),
            ]
        },
    },
    Scene {
        name: "edit-denied",
        args: &["exec", "edit draft.txt"],
        code: Some(5),
        interrupted_at: None,
        judge: |played| {
            vec![
                ("it was asked for", played.said(From::Agent, "session/request_permission")),
                ("nothing is written", !played.said(From::Agent, "fs/write_text_file")),
                ("the file is as before", played.file("draft.txt") == "one\ntwo\n"),
                ("the answer is printed", played.shows("denied")),
            ]
        },
    },
    Scene {
        name: "edit",
        args: &["--approve-all", "exec", "edit draft.txt"],
        code: Some(0),
        interrupted_at: None,
        judge: |played| {
            vec![
                ("it was asked for", played.said(From::Agent, "session/request_permission")),
                ("the file is edited", played.file("draft.txt") == "one\nTWO\n"),
                ("the answer is printed", played.shows("applied")),
            ]
        },
    },
    Scene {
        name: "run",
        args: &["--approve-all", "exec", "run"],
        code: Some(0),
        interrupted_at: None,
        judge: |played| {
            vec![
                ("it runs in the client's terminal", played.said(From::Agent, "terminal/create")),
                ("the terminal is released", played.said(From::Agent, "terminal/release")),
                ("its end reaches the model", played.shows("(exit code 3)")),
            ]
        },
    },
    Scene {
        name: "cancel",
        args: &["exec", "forever"],
        code: None,
        interrupted_at: Some("tick"),
        judge: |played| {
            vec![
                ("the turn is cancelled", played.said(From::Client, "session/cancel")),
                ("it ends as cancelled", played.said(From::Agent, r#""stopReason":"cancelled""#)),
            ]
        },
    },
    Scene {
        name: "new",
        args: &["--ttl", "1", "sessions", "new"],
        code: Some(0),
        interrupted_at: None,
        judge: |played| vec![("there is a session", !played.ended.stdout.is_empty())],
    },
    Scene {
        name: "first",
        args: &["--ttl", "1", "prompt", "do you remember"],
        code: Some(0),
        interrupted_at: None,
        judge: |played| vec![("the answer is printed", played.shows("for the first time"))],
    },
    // In another process, which must know what was said.
    Scene {
        name: "again",
        args: &["--ttl", "1", "prompt", "do you remember"],
        code: Some(0),
        interrupted_at: None,
        judge: |played| {
            let taken_up =
                ["session/load", "session/resume"].iter().any(|method| played.said(From::Client, method));
            vec![
                ("the session is taken up again", taken_up),
                ("the model knows what was said", played.shows("for the second time")),
            ]
        },
    },
];

/// Plays all scenes; without npm it says so.
pub(super) fn run(agent: &[String], cache: &Path, report: &mut Report) -> Result<(), String> {
    let installed = real::package("node", cache).and_then(|node| Ok((node, real::package("acpx", cache)?)));
    match installed {
        Ok((node, acpx)) => {
            let node = node.join("node_modules/node/bin");
            let script = acpx.join("node_modules/acpx/dist/cli.js");
            let program = [node.join("node"), script].map(|path| path.display().to_string());
            play(&program, &node, agent, cache, report)
        }
        Err(why) => {
            println!("note    acpx is left out: {why}");
            Ok(())
        }
    }
}

fn play(
    program: &[String],
    node: &Path,
    agent: &[String],
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    Report::start("acpx", NAME);
    let started = Instant::now();
    let dir = pair::workspace(cache, &format!("acpx-{NAME}"))?;
    let env = environment(&dir, node);
    let mut tally = Tally::default();
    for scene in SCENES {
        // acpx finds a session by the agent's command line, so that has to stay the same.
        let log = dir.join("wire.log");
        let _ = fs::remove_file(&log);
        let words = tap::command(&log, agent)?.join(" ");
        let command = [program, &["--agent".to_owned(), words]].concat();
        let command: Vec<String> =
            command.into_iter().chain(scene.args.iter().map(|arg| (*arg).to_owned())).collect();
        let is_time = |text: &str| fs::read_to_string(&log).is_ok_and(|log| log.contains(text));
        let interrupt = scene.interrupted_at.map(|text| move || is_time(text));
        let ended = pair::finish_as(&Start {
            command: &command,
            cwd: &dir.join("work"),
            input: "",
            env: Some(&env),
            interrupt: interrupt.as_ref().map(|is_time| is_time as &dyn Fn() -> bool),
            time: TIME,
            after: AFTER,
        })?;
        let exchange = tap::read(&log).unwrap_or_default();
        let (shown, work) = (ended.stdout.join("\n"), dir.join("work"));
        let played = Played { ended: &ended, shown: &shown, log: &exchange, work: &work };
        let mut checks = (scene.judge)(&played);
        checks.push(("it ends with the right code", scene.code.is_none_or(|code| ended.code == Some(code))));
        tally.add(scene.name, &played, &checks);
    }
    let (client, agent) = ("acpx".to_owned(), NAME.to_owned());
    report.add(Row {
        client,
        agent,
        good: tally.good,
        messages: tally.messages,
        bad: tally.bad,
        traces: dir,
        left_out: Vec::new(),
        took: started.elapsed(),
    });
    Ok(())
}

/// A home of its own, so that no session of the user is touched.
fn environment(dir: &Path, node: &Path) -> Vec<(String, String)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(PathBuf::from(node)).chain(std::env::split_paths(&path));
    let path =
        std::env::join_paths(paths).map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let home = dir.join("home");
    let _ = fs::create_dir_all(&home);
    vec![("PATH".to_owned(), path), ("HOME".to_owned(), home.display().to_string())]
}
