//! Our agent driven from neovim by CodeCompanion, one process for each scene, with the settings
//! that our guide prints.
//!
//! `tests/interop/neovim/drive.lua` types and presses keys as a user would, and prints what the
//! chat shows at the end. The settings start `attache agent`; an `attache` that comes first on the
//! path puts the tap in between and names the scripted model. Where the editor and the plugin come
//! from is in `install`.

mod install;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::pair::{self, Start};
use super::super::report::{Report, Row};
use super::super::tap::{self, From};
use super::super::{home, shipped};
use super::NAME;
use super::played::{Played, Tally};
use install::Editor;

const CLIENT: &str = "neovim CodeCompanion";
const TIME: Duration = Duration::from_secs(60);
const AFTER: Duration = Duration::from_secs(10);

struct Scene {
    name: &'static str,
    /// What is typed and pressed; see `drive.lua`.
    steps: &'static str,
    judge: fn(&Played<'_>) -> shipped::Checks,
}

const SCENES: &[Scene] = &[
    Scene {
        name: "answer",
        steps: r#"[{"type":"say one"},{"rest":true}]"#,
        judge: |played| {
            vec![
                ("the answer is shown", played.shows("\n\none\n")),
                ("it ends well", played.said(From::Agent, r#""stopReason":"end_turn""#)),
            ]
        },
    },
    Scene {
        name: "read",
        steps: r#"[{"type":"read lines.txt"},{"rest":true}]"#,
        judge: |played| {
            vec![
                ("the file is read by the client", played.said(From::Agent, "fs/read_text_file")),
                ("the tool is shown", played.shows("Read: lines.txt")),
                ("what was read is shown", played.shows("3\tgamma")),
            ]
        },
    },
    // It answers that what is not there is empty.
    Scene {
        name: "read-nothing",
        steps: r#"[{"type":"read nowhere.txt"},{"rest":true}]"#,
        judge: |played| {
            vec![
                ("it does not count as empty", !played.shows("is empty")),
                ("that it is not there is shown", played.shows("no such file: nowhere.txt")),
            ]
        },
    },
    Scene {
        name: "edit-denied",
        steps: r#"[{"type":"edit draft.txt"},{"see":"Please select"},{"press":"g3"},{"rest":true}]"#,
        judge: |played| {
            vec![
                ("the change is shown", played.shows("-two\n+TWO")),
                ("nothing is written", !played.said(From::Agent, "fs/write_text_file")),
                ("the file is as before", played.file("draft.txt") == "one\ntwo\n"),
                ("the answer is shown", played.shows("denied")),
            ]
        },
    },
    Scene {
        name: "edit",
        steps: r#"[{"type":"edit draft.txt"},{"see":"Please select"},{"press":"g2"},{"rest":true}]"#,
        judge: |played| {
            vec![
                ("the change is shown", played.shows("-two\n+TWO")),
                ("it is written by the client", played.said(From::Agent, "fs/write_text_file")),
                ("the file is edited", played.file("draft.txt") == "one\nTWO\n"),
                ("the answer is shown", played.shows("applied")),
            ]
        },
    },
    // It writes through the buffer, and gives a file that ends with a line feed one more.
    Scene {
        name: "edit-open",
        steps: r#"[{"open":"kept.txt"},{"type":"edit kept.txt"},{"see":"Please select"},{"press":"g2"},{"rest":true}]"#,
        judge: |played| {
            vec![
                ("the open buffer shows the edit", played.shows("the file: one\nTWO")),
                ("the file is edited", played.file("kept.txt").trim_end() == "one\nTWO"),
            ]
        },
    },
    // Exactly, although the editor wrote something else than it was given. Agents' commands begin
    // with a backslash there.
    Scene {
        name: "undo",
        steps: r#"[{"open":"kept.txt"},{"type":"edit kept.txt"},{"see":"Please select"},{"press":"g2"},{"rest":true},
            {"type":"\\undo"},{"rest":true}]"#,
        judge: |played| {
            vec![
                ("the change was made", played.shows("edited kept.txt")),
                ("the command arrives", played.said(From::Client, r#""/undo""#)),
                ("the file is as before", played.file("kept.txt") == "one\ntwo\n"),
            ]
        },
    },
    Scene {
        name: "write",
        steps: r#"[{"type":"new.txt"},{"see":"Please select"},{"press":"g2"},{"rest":true}]"#,
        judge: |played| {
            vec![
                ("the file is made", played.file("new.txt") == "hello"),
                ("the answer is shown", played.shows("created new.txt")),
            ]
        },
    },
    // CodeCompanion provides no terminal.
    Scene {
        name: "run",
        steps: r#"[{"type":"run"},{"see":"Please select"},{"press":"g2"},{"rest":true}]"#,
        judge: |played| {
            vec![
                ("no terminal is asked for", !played.said(From::Agent, "terminal/create")),
                ("the question names the command", played.shows("Execute: `printf")),
                ("its end reaches the model", played.shows("(exit code 3)")),
            ]
        },
    },
    Scene {
        name: "cancel",
        steps: r#"[{"type":"forever"},{"see":"tick"},{"press":"q"},{"rest":true},{"type":"say one"},{"rest":true}]"#,
        judge: |played| {
            vec![
                ("the turn is cancelled", played.said(From::Client, "session/cancel")),
                ("it ends as cancelled", played.said(From::Agent, r#""stopReason":"cancelled""#)),
                ("the session goes on", played.shows("\n\none\n")),
            ]
        },
    },
    // The next prompt comes before the agent has answered the cancelled one.
    Scene {
        name: "cancel-at-once",
        steps: r#"[{"type":"forever"},{"see":"tick"},{"press":"q"},{"idle":true},{"type":"say one"},{"rest":true}]"#,
        judge: |played| {
            vec![
                ("the first ends as cancelled", played.said(From::Agent, r#""stopReason":"cancelled""#)),
                ("the second is answered", played.said(From::Agent, r#""text":"one""#)),
                ("it ends well", played.said(From::Agent, r#""stopReason":"end_turn""#)),
            ]
        },
    },
    Scene {
        name: "cancel-asked",
        steps: r#"[{"type":"ask"},{"see":"Please select"},{"press":"q"},{"rest":true},{"type":"say one"},{"rest":true}]"#,
        judge: |played| {
            vec![
                ("the question is cancelled", played.said(From::Client, r#""outcome":"cancelled""#)),
                ("it ends as cancelled", played.said(From::Agent, r#""stopReason":"cancelled""#)),
                ("nothing is written", !played.work.join("never.txt").exists()),
                ("the session goes on", played.shows("\n\none\n")),
            ]
        },
    },
    Scene {
        name: "first",
        steps: r#"[{"type":"do you remember"},{"rest":true}]"#,
        judge: |played| vec![("the answer is shown", played.shows("for the first time"))],
    },
    // In another process, which must know what was said.
    Scene {
        name: "load",
        steps: r#"[{"resume":"do you remember"},{"type":"do you remember"},{"rest":true}]"#,
        judge: |played| {
            vec![
                ("the sessions are listed", played.said(From::Client, "session/list")),
                ("the session is loaded", played.said(From::Client, "session/load")),
                ("what was said is shown again", played.shows("for the first time")),
                ("the model knows what was said", played.shows("for the second time")),
            ]
        },
    },
];

/// Plays all scenes; where there is no editor or no plugin it says so, and counts it as left out.
pub(super) fn run(agent: &[String], cache: &Path, report: &mut Report) -> Result<(), String> {
    match Editor::find(cache) {
        Ok(editor) => play(&editor, agent, cache, report),
        Err(why) => {
            Report::start(CLIENT, NAME);
            report.add(Row { left_out: vec![format!("all scenes: {why}")], ..row(Tally::default(), cache) });
            Ok(())
        }
    }
}

fn play(editor: &Editor, agent: &[String], cache: &Path, report: &mut Report) -> Result<(), String> {
    Report::start(CLIENT, NAME);
    let started = Instant::now();
    let dir = pair::workspace(cache, &format!("neovim-{NAME}"))?;
    let work = dir.join("work");
    let settings = dir.join("settings.lua");
    write(&settings, &printed()?)?;
    let command = [&*editor.command, &arguments()].concat();
    let mut tally = Tally::default();
    for scene in SCENES {
        let log = dir.join(format!("{}.log", scene.name));
        stand_in(&dir, &log, agent)?;
        write(&work.join("kept.txt"), "one\ntwo\n")?;
        let env = environment(&dir, &settings, scene.steps, editor);
        let ended = pair::finish_as(&Start {
            command: &command,
            cwd: &work,
            input: "",
            env: Some(&env),
            interrupt: None,
            time: TIME,
            after: AFTER,
        })?;
        let exchange = tap::read(&log).unwrap_or_default();
        let seen: Value = serde_json::from_str(&ended.stdout.join("\n")).unwrap_or_default();
        let word = |key: &str| seen[key].as_str().unwrap_or_default();
        let shown = format!("{}\nthe file: {}", word("chat"), word("file"));
        let played = Played { ended: &ended, shown: &shown, log: &exchange, work: &work };
        let mut checks = (scene.judge)(&played);
        checks.push(("the editor ends well", ended.code == Some(0)));
        checks.push(("it complains of nothing", seen["notes"] == Value::Array(Vec::new())));
        tally.add(scene.name, &played, &checks);
    }
    report.add(Row { took: started.elapsed(), ..row(tally, &dir) });
    Ok(())
}

fn row(tally: Tally, traces: &Path) -> Row {
    Row {
        client: CLIENT.to_owned(),
        agent: NAME.to_owned(),
        good: tally.good,
        messages: tally.messages,
        bad: tally.bad,
        traces: traces.to_owned(),
        left_out: Vec::new(),
        took: Duration::ZERO,
    }
}

/// The settings for neovim, as they stand in the guide.
fn printed() -> Result<String, String> {
    let path = crate::repo::root().join("docs/guide/agent.md");
    let guide = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let block = |guide: &str| {
        let (_, rest) = guide.split_once("**Neovim**")?;
        let (_, rest) = rest.split_once("```lua\n")?;
        Some(rest.split_once("```")?.0.to_owned())
    };
    block(&guide).ok_or(format!("{}: no settings for neovim", path.display()))
}

fn arguments() -> Vec<String> {
    let script = home().join("neovim/drive.lua").display().to_string();
    ["--headless", "--clean", "-u", &script].map(str::to_owned).to_vec()
}

/// What the settings find as `attache`: ours, behind a tap, with the model of the scenes.
fn stand_in(dir: &Path, log: &Path, agent: &[String]) -> Result<(), String> {
    let all = tap::command(log, agent)?;
    let at = all.iter().rposition(|word| word == "agent").ok_or("the agent's command names no agent")?;
    let script = format!(
        "#!/bin/sh\nexec {} \"$@\" {}\n",
        shipped::quoted(&all[..at]),
        shipped::quoted(&all[at + 1..])
    );
    let path = dir.join("bin/attache");
    fs::create_dir_all(dir.join("bin")).map_err(|error| format!("{}: {error}", dir.display()))?;
    write(&path, &script)?;
    super::super::install::ok(std::process::Command::new("chmod").arg("+x").arg(&path))
}

/// A home of its own, so that no settings of the user are used.
fn environment(dir: &Path, settings: &Path, steps: &str, editor: &Editor) -> Vec<(String, String)> {
    let path = std::env::var("PATH").unwrap_or_default();
    let at = |path: &Path| path.display().to_string();
    let mut env = editor.env.clone();
    let mut set = |name: &str, value: String| env.push((name.to_owned(), value));
    set("PATH", format!("{}:{path}", at(&dir.join("bin"))));
    for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
        set(name, at(&dir.join("home").join(name)));
    }
    set("SETTINGS", at(settings));
    set("STEPS", steps.to_owned());
    set("PLUGINS", editor.plugins.iter().map(|dir| at(dir)).collect::<Vec<_>>().join("\n"));
    env
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_the_guide_start_our_agent() {
        let settings = printed().unwrap_or_default();
        assert!(settings.contains(r#"{ "attache", "agent" }"#), "{settings}");
        assert!(settings.contains("require(\"codecompanion\").setup"), "{settings}");
    }

    #[test]
    fn steps_are_lists_of_steps() {
        for scene in SCENES {
            let steps: Vec<Value> = serde_json::from_str(scene.steps).unwrap_or_default();
            assert!(!steps.is_empty(), "{}", scene.name);
        }
    }
}
