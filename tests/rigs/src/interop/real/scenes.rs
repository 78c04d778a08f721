//! What is played with every agent, and what must come of it.

use std::fs;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::super::report::{Report, Row};
use super::super::wire;
use super::agents::Agent;
use super::drive::{self, Driver, Pairing, Played, Programs, Run, Version};
use super::environment::{AgentEnvironment, BEFORE};
use super::model::{Model, ModelRequests};
use super::seen::{self, Seen};

/// What happens in a turn.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum How {
    Allow,
    Deny,
    /// It is cancelled as soon as the prompt is sent.
    Now,
    /// It is cancelled when the agent asks.
    Asked,
    /// It is cancelled when the agent has said this.
    Cancel(&'static str),
    /// Everything is allowed, and it is cancelled when this file is there.
    Stop(&'static str),
    /// Everything is allowed; when the turn is over, this file is created, and the work in the
    /// background ends.
    Background(&'static str),
    /// Everything is allowed, and the agent has the tools of our MCP server.
    OurTool,
}

impl How {
    /// Whether this client can do it with this agent, in this version.
    pub(super) fn fits(self, pairing: Pairing<'_>) -> bool {
        match self {
            How::Now | How::Asked => pairing.driver == Driver::Sdk,
            How::Background(_) => {
                pairing.driver == Driver::Sdk
                    && pairing.version == Version::V2
                    && pairing.agent.has_background
            }
            How::OurTool => {
                pairing.driver == Driver::Program
                    && pairing.version == Version::V2
                    && pairing.agent.offers_mcp_tools
            }
            _ => true,
        }
    }
}

pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) how: How,
    /// What the model is to do; `@` is the session's directory.
    marker: &'static str,
    /// Whether the session is continued later, and whether it begins here.
    pub(super) kept: bool,
    pub(super) begins: bool,
    judge: fn(&Stage<'_>) -> Checks,
}

type Checks = Vec<(&'static str, bool)>;

/// What a scene is judged by.
struct Stage<'a> {
    agent: &'a Agent,
    version: Version,
    driver: Driver,
    marker: &'a str,
    work: &'a Path,
    seen: &'a Seen,
    /// How the turn ended, as our client reported it.
    told: &'a str,
    asked: &'a ModelRequests,
}

const WORDS: &str = "pong über 4711";
const AFTER: &str = "one\nTWO\nthree\n";

const FIRST: &[Scene] = &[
    Scene {
        name: "answer",
        how: How::Allow,
        marker: "answer pong über 4711",
        kept: true,
        begins: true,
        judge: answer,
    },
    Scene {
        name: "edit",
        how: How::Allow,
        marker: "edit @/note.txt two TWO",
        kept: false,
        begins: false,
        judge: edit,
    },
    Scene {
        name: "create",
        how: How::Allow,
        marker: "create @/new.txt hello",
        kept: false,
        begins: false,
        judge: create,
    },
    Scene {
        name: "edit-denied",
        how: How::Deny,
        marker: "edit @/kept.txt two TWO",
        kept: false,
        begins: false,
        judge: edit_denied,
    },
    Scene {
        name: "run",
        how: How::Allow,
        marker: "run expr 7000 + 653 | tee made.txt",
        kept: false,
        begins: false,
        judge: run,
    },
    Scene {
        name: "cancel",
        how: How::Cancel("word"),
        marker: "slow",
        kept: false,
        begins: false,
        judge: cancel,
    },
    Scene {
        name: "cancel-run",
        how: How::Stop("begun.txt"),
        marker: "run touch begun.txt; sleep 611",
        kept: false,
        begins: false,
        judge: cancel_run,
    },
    Scene {
        name: "cancel-at-once",
        how: How::Now,
        marker: "slow",
        kept: false,
        begins: false,
        judge: cancel_at_once,
    },
    Scene {
        name: "cancel-asked",
        how: How::Asked,
        marker: "run touch asked.txt",
        kept: false,
        begins: false,
        judge: cancel_asked,
    },
    Scene {
        name: "background",
        how: How::Background("go.txt"),
        marker: "background until [ -e go.txt ]; do sleep 0.05; done; expr 7000 + 654 > late.txt",
        kept: false,
        begins: false,
        judge: background,
    },
    Scene {
        name: "our-tool",
        how: How::OurTool,
        marker: "tool run_command expr 7000 + 655 | tee ours.txt",
        kept: false,
        begins: false,
        judge: our_tool,
    },
];

const SECOND: &[Scene] =
    &[Scene { name: "again", how: How::Allow, marker: "recall", kept: true, begins: false, judge: again }];

impl Scene {
    fn marker(&self, place: &AgentEnvironment) -> String {
        self.marker.replace('@', &place.work.to_string_lossy())
    }

    pub(super) fn prompt(&self, place: &AgentEnvironment) -> String {
        format!("Please do this: [[{}]]", self.marker(place))
    }

    /// The exit code of the program.
    pub(super) fn exit(&self) -> i32 {
        match self.how {
            How::Allow | How::Background(_) | How::OurTool => 0,
            How::Deny => 5,
            How::Now | How::Asked | How::Cancel(_) | How::Stop(_) => 130,
        }
    }
}

fn answer(stage: &Stage<'_>) -> Checks {
    let asked = stage.asked.with(stage.marker);
    vec![
        ("the words arrive", stage.seen.text.ends_with(WORDS)),
        ("the turn ends well", stage.seen.stop == "end_turn"),
        ("nothing is asked", stage.seen.asks.is_empty()),
        (
            "the model is asked, with the prompt and as a stream",
            asked.iter().any(|one| one["stream"] == true),
        ),
    ]
}

fn file(stage: &Stage<'_>, name: &str) -> String {
    fs::read_to_string(stage.work.join(name)).unwrap_or_default()
}

fn edit(stage: &Stage<'_>) -> Checks {
    let seen = stage.seen;
    let place = |method: &str| seen.calls.iter().position(|(call, _)| call == method);
    let asked_first = match (place("session/request_permission"), place("fs/write_text_file")) {
        (Some(asked), Some(written)) => asked < written,
        (asked, _) => asked.is_some(),
    };
    vec![
        ("the file is changed", file(stage, "note.txt") == AFTER),
        ("it is asked before", asked_first),
        ("once, and allowed once", one_ask(seen, "edit", "allow_once")),
        (
            "a tool call of kind edit is completed",
            seen.of_kind("edit").any(|tool| tool.status == "completed"),
        ),
        (
            "the change is shown as a diff",
            seen.tools.values().any(|tool| tool.diffs.iter().any(|text| text.contains("TWO"))),
        ),
        ("the model hears of it and ends", seen.text.ends_with("finished")),
        ("the turn ends well", seen.stop == "end_turn"),
    ]
}

fn create(stage: &Stage<'_>) -> Checks {
    let seen = stage.seen;
    vec![
        ("the file is created", file(stage, "new.txt") == "hello\n"),
        ("it is asked once, and allowed once", one_ask(seen, "edit", "allow_once")),
        ("the model hears of it and ends", seen.text.ends_with("finished")),
        ("the turn ends well", seen.stop == "end_turn"),
    ]
}

fn one_ask(seen: &Seen, kind: &str, chosen: &str) -> bool {
    matches!(&seen.asks[..], [ask] if ask.kind == kind && ask.chosen == chosen)
}

fn edit_denied(stage: &Stage<'_>) -> Checks {
    let seen = stage.seen;
    vec![
        ("the file is as before", file(stage, "kept.txt") == BEFORE),
        ("it is asked once, and rejected once", one_ask(seen, "edit", "reject_once")),
        ("nothing is written", !seen.calls.iter().any(|(method, _)| method == "fs/write_text_file")),
        ("no edit is completed", !seen.of_kind("edit").any(|tool| tool.status == "completed")),
        ("the turn ends as this agent ends it", seen.stop == stage.agent.denied),
    ]
}

fn run(stage: &Stage<'_>) -> Checks {
    let seen = stage.seen;
    let printed = seen.of_kind("execute").any(|tool| tool.texts.contains("7653"));
    let told = stage.asked.with(stage.marker).iter().any(|asked| asked["body"].to_string().contains("7653"));
    vec![
        ("the command ran", file(stage, "made.txt") == "7653\n"),
        ("it is asked once, and allowed once", one_ask(seen, "execute", "allow_once")),
        (
            "a tool call of kind execute is completed",
            seen.of_kind("execute").any(|tool| tool.status == "completed"),
        ),
        ("what it printed is shown", printed == stage.agent.shows_output),
        ("its output reaches the model", told),
        ("the model hears of it and ends", seen.text.ends_with("finished")),
        ("the turn ends well", seen.stop == "end_turn"),
    ]
}

fn cancel(stage: &Stage<'_>) -> Checks {
    vec![
        ("the agent speaks before", stage.seen.text.contains("word 0")),
        ("the agent is cancelled", stage.seen.methods.iter().any(|method| method == "session/cancel")),
        ("the turn ends as cancelled", stage.seen.stop == "cancelled"),
        ("the agent hangs up on the model", stage.asked.dropped(stage.marker)),
    ]
}

/// That the command itself is gone is seen when processes are counted at the end.
fn cancel_run(stage: &Stage<'_>) -> Checks {
    let seen = stage.seen;
    vec![
        ("the command began", stage.work.join("begun.txt").exists()),
        ("it is asked once, and allowed once", one_ask(seen, "execute", "allow_once")),
        ("the agent is cancelled", seen.methods.iter().any(|method| method == "session/cancel")),
        ("the turn ends as cancelled", seen.stop == "cancelled"),
    ]
}

/// Whatever the agent makes of it, our user reads that the turn was cancelled.
fn cancel_at_once(stage: &Stage<'_>) -> Checks {
    vec![
        ("the agent is cancelled", stage.seen.methods.iter().any(|method| method == "session/cancel")),
        ("our user reads that the turn was cancelled", stage.told == "cancelled"),
    ]
}

fn cancel_asked(stage: &Stage<'_>) -> Checks {
    let seen = stage.seen;
    vec![
        ("the question is answered as cancelled", one_ask(seen, "execute", "cancelled")),
        ("nothing ran", !stage.work.join("asked.txt").exists()),
        ("the agent is cancelled", seen.methods.iter().any(|method| method == "session/cancel")),
        ("the turn ends as cancelled", seen.stop == "cancelled"),
    ]
}

/// The work begins in the turn, and ends after it.
fn background(stage: &Stage<'_>) -> Checks {
    let told = stage.told.split_once(' ');
    vec![
        ("the turn ends well while the work goes on", told == Some(("end_turn", "1 0"))),
        ("the work is done", file(stage, "late.txt") == "7654\n"),
        ("it is asked once, and allowed once", one_ask(stage.seen, "execute", "allow_once")),
    ]
}

fn our_tool(stage: &Stage<'_>) -> Checks {
    let seen = stage.seen;
    let told = stage.asked.with(stage.marker).iter().any(|asked| asked["body"].to_string().contains("7655"));
    vec![
        ("the command ran", file(stage, "ours.txt") == "7655\n"),
        ("its output reaches the model", told),
        ("a tool call is completed", seen.tools.values().any(|tool| tool.status == "completed")),
        ("the model hears of it and ends", seen.text.ends_with("finished")),
        ("the turn ends well", seen.stop == "end_turn"),
    ]
}

fn again(stage: &Stage<'_>) -> Checks {
    let seen = stage.seen;
    let called = |name: &str| seen.methods.iter().any(|method| method == name);
    // The client on the SDK wants the history, the program does not.
    let is_replayed = stage.version == Version::V1 || stage.driver == Driver::Program;
    vec![
        ("the history is replayed", is_replayed || seen.replayed.ends_with(WORDS)),
        ("the session is loaded or resumed", called("session/load") || called("session/resume")),
        ("the model gets the earlier conversation", seen.text.ends_with(WORDS)),
        ("the turn ends well", seen.stop == "end_turn"),
    ]
}

/// What is needed to continue a session.
pub(super) struct Begun {
    session: Option<String>,
    /// The minute, since the epoch, in which it began.
    minute: u64,
}

fn minute() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() / 60)
}

/// Plays all scenes but the last.
pub(super) fn play(
    pairing: Pairing<'_>,
    programs: &Programs,
    cache: &Path,
    report: &mut Report,
) -> Result<Begun, String> {
    let dir = pairing.directory(cache);
    AgentEnvironment::clear(&dir)?;
    let runs = act(pairing, programs, &dir, FIRST, None, report)?;
    let kept = runs.iter().flat_map(|run| &run.scenes).find(|played| played.scene.kept);
    Ok(Begun { session: kept.and_then(|played| played.session.clone()), minute: minute() })
}

/// Continues the kept session in another process.
pub(super) fn play_again(
    pairing: Pairing<'_>,
    begun: Begun,
    programs: &Programs,
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    let Some(session) = begun.session else { return Ok(()) };
    let agent = pairing.agent;
    if !agent.loads_at_once && minute() == begun.minute {
        println!("note    {}: a session can be loaded only after the minute in which it began", agent.name);
        while minute() == begun.minute {
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }
    act(pairing, programs, &pairing.directory(cache), SECOND, Some(&session), report).map(drop)
}

fn act(
    pairing: Pairing<'_>,
    programs: &Programs,
    dir: &Path,
    scenes: &'static [Scene],
    again: Option<&str>,
    report: &mut Report,
) -> Result<Vec<Run>, String> {
    let Pairing { agent, driver, version } = pairing;
    let mut name = format!("{} {}", agent.name, programs.version(agent));
    name += if version == Version::V2 { " v2" } else { "" };
    name += if again.is_some() { " again" } else { "" };
    let client = format!("ours {}", driver.name());
    Report::start(&client, &name);
    let started = Instant::now();
    let model = Model::start(&programs.model, &dir.join(format!("model-{}.log", scenes[0].name)))?;
    let place = AgentEnvironment::new(dir, &model.url, agent, programs);
    let runs = drive::play(pairing, programs, &place, &(agent.setup)(&place)?, scenes, again)?;
    let asked = model.finish()?;
    let (mut good, mut bad, mut messages, mut odd) = (0, Vec::new(), 0, Vec::new());
    for run in &runs {
        messages += run.log.lines.len();
        bad.extend(run.bad.iter().cloned());
        for Played { scene, session, told } in &run.scenes {
            let marker = scene.marker(&place);
            let seen = seen::read(&run.log, session.as_deref().unwrap_or_default());
            let told = told.as_deref().unwrap_or(&seen.stop);
            let (marker, work, seen, asked) = (&*marker, &*place.work, &seen, &asked);
            let stage = Stage { agent, version, driver, marker, work, seen, told, asked };
            for (what, held) in (scene.judge)(&stage) {
                good += usize::from(held);
                if !held {
                    bad.push(format!("{}: not so: {what}", scene.name));
                }
            }
        }
        if seen::version(&run.log) != Some(if version == Version::V2 { 2 } else { 1 }) {
            bad.push("another version of the protocol was negotiated".to_owned());
        }
        for problem in wire::check(&run.log) {
            match agent.odd.iter().find(|(words, _)| problem.contains(words)) {
                Some((_, why)) => odd.push(*why),
                None => bad.push(problem),
            }
        }
        // The program does not wait as long as some agents take.
        let by_itself = run.log.exit.is_some_and(|code| agent.exits.contains(&code));
        if driver == Driver::Sdk && !by_itself {
            bad.push(format!("the agent ended with {:?}", run.log.exit));
        }
    }
    bad.extend(asked.outside().iter().map(|target| format!("the agent wanted to reach {target}")));
    for (_, why) in agent.odd.iter().filter(|(_, why)| odd.contains(why)) {
        println!("        odd     {why}");
    }
    report.add(Row {
        client,
        agent: name,
        good,
        messages,
        bad,
        traces: dir.to_owned(),
        left_out: Vec::new(),
        took: started.elapsed(),
    });
    Ok(runs)
}
