//! Tools: files, commands, plans, permission.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{begin, is_question, ping, turn, unseen};
use crate::judge::Message;
use crate::prompts::PromptKind;
use crate::scenarios::scenario_table;
use crate::stage::{Permission, Reply};
use crate::{Need, Stage, Step, Stop};

scenario_table! { Agent:
    "read": "the agent reads a file",
        ["FS-04", "FS-05", "FS-07", "ROOT-04", "ROOT-05", "TOOL-01", "TOOL-02", "TOOL-03", "TOOL-05",
         "TOOL-10", "TOOL-11", "TOOL-12", "TOOL-14", "TOOL-18"]
        needs [Need::Prompt(PromptKind::Read)] => read;
    "write": "the agent writes a file",
        ["PERM-02", "PERM-03", "PERM-16", "FS-04", "FS-07", "TOOL-08", "TOOL-15"]
        needs [Need::Prompt(PromptKind::Write)] => write;
    "run": "the agent runs a command",
        ["TERM-05", "TERM-13", "TOOL-16"] needs [Need::Prompt(PromptKind::Run)] => run;
    "plan": "the agent makes a plan", ["PLAN-01", "PLAN-03", "PLAN-06", "PLAN-09"]
        needs [Need::Prompt(PromptKind::Plan)] => plan(super::capabilities());
    "plan-plain": "the agent makes a plan for a client that knows one only",
        ["PLAN-01", "PLAN-03", "PLAN-06", "PLAN-08"]
        needs [Need::Prompt(PromptKind::Plan)] => plan(json!({}));
    "plan-progress": "the agent does what it planned", ["PLAN-02", "PLAN-03"] => progress;
    "permission-waits": "nothing happens before a permission is given",
        ["PERM-13"] needs [Need::Prompt(PromptKind::Write)] => waits(PromptKind::Write);
    "permission-waits-run": "no command runs before a permission is given",
        ["PERM-13"] needs [Need::Prompt(PromptKind::Run)] => waits(PromptKind::Run);
    "permission-refused-run": "a rejected command does not run",
        ["PERM-15"] needs [Need::Prompt(PromptKind::Run)] => refused(Effect::Run, Permission::Reject);
    "permission-refused": "a rejected tool does not run",
        ["PERM-10", "PERM-15"] needs [Need::Prompt(PromptKind::Write)] => refused(Effect::Write, Permission::Reject);
    "permission-unknown": "an option that was not offered is no approval",
        ["PERM-09"] needs [Need::Prompt(PromptKind::Write)] => refused(Effect::Write, Permission::Unknown);
    "permission-error": "an error is no approval",
        ["PERM-09"] needs [Need::Prompt(PromptKind::Write)] => refused(Effect::Write, Permission::Error);
    "null-results": "results that are null",
        ["RPC-22"] needs [Need::Prompt(PromptKind::Write)] => null_results;
}

/// The agent reports its actions.
// TOOL-01
fn reported(stage: &mut Stage, mark: usize, did: impl Fn(&Message) -> bool) {
    let message = stage.received(mark);
    let used = message.iter().any(|message| did(message));
    let reported =
        message.iter().any(|message| message.update().is_some_and(|(_, kind, _)| kind == "tool_call"));
    if used {
        stage.check("TOOL-01", reported, "a tool was used and no `tool_call` reports it");
    }
}

async fn read(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let mark = stage.mark();
    stage.turn(&session, PromptKind::Read).await?.ok();
    reported(stage, mark, |message| message.asks("fs/read_text_file"));
    stage.turn(&session, PromptKind::Read).await?.ok();
    ping(stage).await
}

async fn write(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let mark = stage.mark();
    stage.turn(&session, PromptKind::Write).await?.ok();
    reported(stage, mark, |message| message.asks("fs/write_text_file"));
    // TOOL-08: between the permission and the end it runs.
    let statuses: Vec<String> = stage
        .received(mark)
        .iter()
        .filter_map(|message| {
            let (_, kind, update) = message.update()?;
            kind.starts_with("tool_call").then(|| update["status"].as_str().map(str::to_owned)).flatten()
        })
        .collect();
    if statuses.iter().any(|status| status == "completed")
        && stage.received(mark).iter().any(|message| message.asks("fs/write_text_file"))
    {
        stage.check(
            "TOOL-08",
            statuses.iter().any(|status| status == "in_progress"),
            "a tool ran and was never reported as `in_progress`",
        );
    }
    ping(stage).await
}

async fn run(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.turn(&session, PromptKind::Run).await?.ok();
    stage.quiet(IMPATIENCE).await?;
    // TERM-05: a watcher knows of the end only what the agent asked for.
    let left = stage.services.ended_terminals();
    let made = |id: &String| stage.log().terminals.get(id).map(|terminal| terminal.created);
    if let Some((id, at)) = left.first().and_then(|id| Some((id, made(id)?))) {
        let why = format!("the command in terminal {id:?} has ended, its turn too, and it was not released");
        stage.fail_at("TERM-05", &[at], why);
    }
    ping(stage).await
}

async fn plan(stage: &mut Stage, capabilities: Value) -> Step {
    stage.initialize(capabilities).await?;
    let session = stage.new_session().await?;
    let mark = stage.mark();
    stage.turn(&session, PromptKind::Plan).await?.ok();
    if stage.received(mark).iter().any(|message| is_plan(message)) {
        stage.pass("PLAN-01");
        return ping(stage).await;
    }
    match plan_of_a_tool(stage.received(mark)) {
        Some(at) => {
            stage.fail_at("PLAN-01", &[at], "a tool made a plan, and no `plan` reports it");
            Ok(())
        }
        None => unseen("the agent made no plan"),
    }
}

fn is_plan(message: &Message) -> bool {
    message.update().is_some_and(|(_, kind, _)| matches!(kind, "plan" | "plan_update" | "plan_removed"))
}

/// The entry of a successful tool call whose input is a plan: a list of at least two steps with a
/// status.
fn plan_of_a_tool(message: &[Rc<Message>]) -> Option<usize> {
    let tools = message.iter().filter_map(|message| {
        let (_, kind, update) = message.update()?;
        kind.starts_with("tool_call").then_some((message.index, update))
    });
    let tools: Vec<(usize, &Value)> = tools.collect();
    let is_step = |step: &Value| {
        matches!(step["status"].as_str(), Some("pending" | "in_progress" | "completed"))
            && step
                .as_object()
                .is_some_and(|step| step.values().filter(|value| value.is_string()).count() > 1)
    };
    let is_list =
        |list: &Value| list.as_array().is_some_and(|list| list.len() > 1 && list.iter().all(is_step));
    let planned =
        |update: &Value| update["rawInput"].as_object().is_some_and(|input| input.values().any(is_list));
    let ended = |id: &Value| {
        tools.iter().any(|(_, update)| update["toolCallId"] == *id && update["status"] == "completed")
    };
    tools.iter().find(|(_, update)| planned(update) && ended(&update["toolCallId"])).map(|(at, _)| *at)
}

/// A plan that leaves out a step which an earlier one lists and which is carried out only
/// afterwards. Returns the entries of the plan and of the step, and its file.
// PLAN-03
fn dropped(messages: &[Rc<Message>], writes: &[(&str, usize)]) -> Option<(usize, usize, String)> {
    let plans: Vec<(usize, String)> = messages
        .iter()
        .filter_map(|message| {
            let (_, kind, update) = message.update()?;
            let entries = match kind {
                "plan" => &update["entries"],
                "plan_update" if update["plan"]["type"] == "items" => &update["plan"]["entries"],
                _ => return None,
            };
            Some((message.index, entries.to_string()))
        })
        .collect();
    // Only steps that the first plan names by their files can be known again.
    let (_, first) = plans.first()?;
    if !writes.iter().all(|(file, _)| first.contains(file)) {
        return None;
    }
    writes.iter().find_map(|(file, written)| {
        let left_out = plans.iter().find(|(at, plan)| at < written && !plan.contains(file));
        // Another plan in other words is a new plan.
        let others = |plan: &str| writes.iter().any(|(other, _)| other != file && plan.contains(other));
        left_out.filter(|(_, plan)| others(plan)).map(|(at, _)| (*at, *written, (*file).to_owned()))
    })
}

/// A plan that is sent before files are written and never again shows no progress.
// PLAN-02
async fn progress(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    let mark = stage.mark();
    let paths =
        ["one.txt", "two.txt", "three.txt"].map(|name| stage.cwd().join(name).to_string_lossy().into_owned());
    let [one, two, three] = &paths;
    let words = format!(
        "Make a plan of three steps: write `1` to {one}, write `2` to {two}, write `3` to {three}. Then carry it out step by step, and keep the plan up to date."
    );
    let ended = turn(stage, &session, &words).await?;
    let message = stage.received(mark);
    let write = |path: &str| {
        let writes =
            |message: &&Rc<Message>| message.asks("fs/write_text_file") && message.params()["path"] == path;
        message.iter().find(writes).map(|message| message.index)
    };
    let writes: Vec<(&str, usize)> =
        paths.iter().filter_map(|path| Some((path.rsplit('/').next()?, write(path)?))).collect();
    if writes.len() < paths.len() {
        return unseen("the agent did not write all files through the client");
    }
    let plans: Vec<usize> =
        message.iter().filter(|message| is_plan(message)).map(|message| message.index).collect();
    let begun = writes.iter().map(|(_, at)| *at).min().unwrap_or_default();
    let dropped = dropped(message, &writes);
    if plans.first().is_none_or(|plan| *plan > begun) {
        return unseen("the agent made no plan before it began");
    }
    if let Some((plan, write, step)) = dropped {
        let why = format!("the plan leaves out {step}, which is then carried out");
        stage.fail_at("PLAN-03", &[plan, write], why);
    }
    let fine = ended.is_ok_and(|result| result["stopReason"] == "end_turn");
    if plans.iter().any(|plan| *plan > begun) {
        stage.pass("PLAN-02");
    } else if fine {
        stage.fail_at(
            "PLAN-02",
            &[plans[0], begun],
            "what was planned was done, and the plan was not reported again",
        );
    }
    Ok(())
}

/// The time in which an agent that does not wait for an answer acts.
const IMPATIENCE: Duration = Duration::from_secs(2);

/// What a prompt asks for and a permission is needed for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// `out.txt` is written.
    Write,
    /// The command of [`PromptKind::Run`] runs. It leaves a file, since an agent may have a shell
    /// of its own.
    Run,
}

impl Effect {
    fn of(kind: PromptKind) -> Effect {
        if kind == PromptKind::Run { Effect::Run } else { Effect::Write }
    }

    fn prompt(self) -> PromptKind {
        match self {
            Effect::Write => PromptKind::Write,
            Effect::Run => PromptKind::Run,
        }
    }

    /// The file that shows it.
    fn file(self) -> &'static str {
        match self {
            Effect::Write => "out.txt",
            Effect::Run => "ran.txt",
        }
    }

    /// Whether a text names it. The user may have set a prompt without the file.
    fn is_in(self, text: &str) -> bool {
        text.contains(self.file())
            || (self == Effect::Run && text.contains("echo") && text.contains("attache"))
    }

    /// Whether a message of the agent brings it about through the client.
    fn is_begun_by(self, message: &Message) -> bool {
        match self {
            Effect::Write => {
                message.asks("fs/write_text_file")
                    && message.params()["path"].as_str().is_some_and(|path| path.ends_with(self.file()))
            }
            Effect::Run => message.asks("terminal/create") && self.is_in(&message.params().to_string()),
        }
    }

    /// Whether a question is about it: its tool call names it, there or in an earlier report.
    fn is_asked(self, messages: &[Rc<Message>], question: &Message) -> bool {
        let call = &question.params()["toolCall"];
        let is_report = |message: &&Rc<Message>| {
            message.index < question.index
                && message.update().is_some_and(|(.., update)| update["toolCallId"] == call["toolCallId"])
        };
        self.is_in(&call.to_string())
            || messages.iter().filter(is_report).any(|report| self.is_in(&report.params().to_string()))
    }
}

async fn waits(stage: &mut Stage, kind: PromptKind) -> Step {
    let effect = Effect::of(kind);
    let session = begin(stage).await?;
    stage.services.hold("session/request_permission");
    let mark = stage.mark();
    let id = stage.prompt(&session, kind).await?;
    let Some(question) = stage.during(&id, is_question).await? else {
        return unseen("the agent asked for no permission");
    };
    if !effect.is_asked(stage.received(mark), &question) {
        return unseen("the agent asked for a permission of something else");
    }
    stage.quiet(IMPATIENCE).await?;
    let early = stage.received(mark).iter().any(|message| effect.is_begun_by(message))
        || stage.cwd().join(effect.file()).exists();
    let why = match effect {
        Effect::Write => "the file was written before the permission was given",
        Effect::Run => "the command was started before the permission was given",
    };
    stage.check("PERM-13", !early, why);
    let id_of_question = question.id().cloned().unwrap_or_default();
    stage.answer(&id_of_question, json!({ "outcome": { "outcome": "cancelled" } })).await?;
    stage.services.release("session/request_permission");
    stage.services.permission = Permission::Reject;
    stage.expect(&id).await?.ok();
    Ok(())
}

/// Answers every question about a permission in this way. Returns whether `file` was there when
/// they came, by question.
fn answer_all(stage: &mut Stage, how: Permission, file: PathBuf) -> Rc<RefCell<Vec<bool>>> {
    let early = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&early);
    stage.services.answer_with("session/request_permission", move |params| {
        seen.borrow_mut().push(file.exists());
        how.reply(params)
    });
    early
}

async fn refused(stage: &mut Stage, effect: Effect, how: Permission) -> Step {
    let session = begin(stage).await?;
    let file = stage.cwd().join(effect.file());
    let early = answer_all(stage, how, file.clone());
    let mark = stage.mark();
    let ended = stage.turn(&session, effect.prompt()).await;
    let messages = stage.received(mark);
    let questions = messages.iter().filter(|message| is_question(message)).cloned().enumerate();
    // An answer to another question says nothing about what follows.
    let Some((number, question)) =
        questions.into_iter().find(|(_, question)| effect.is_asked(messages, question))
    else {
        ended?.ok();
        return unseen("the agent asked for no permission of that");
    };
    stage.quiet(IMPATIENCE).await?;
    let begun = stage.received(mark).iter().find(|message| effect.is_begun_by(message));
    let before = begun.map(|message| message.index < question.index);
    if before == Some(true) || early.borrow().get(number) == Some(&true) {
        // An agent that does not wait for the answer breaks PERM-13.
        ended?.ok();
        return Ok(());
    }
    let rule = if how == Permission::Reject { "PERM-15" } else { "PERM-09" };
    let done = match effect {
        Effect::Write => "the file was written",
        Effect::Run => "the command was run",
    };
    if before.is_some() || file.exists() {
        let why = match how {
            Permission::Reject => format!("the permission was rejected, and {done}"),
            Permission::Unknown => format!("an option that was not offered was selected, and {done}"),
            _ => format!("the permission was answered with an error, and {done}"),
        };
        stage.fail(rule, why);
        return Ok(());
    }
    stage.pass(rule);
    if how == Permission::Reject && effect == Effect::Write {
        let tool = question.params()["toolCall"]["toolCallId"].clone();
        let over = stage.received(mark).iter().any(|message| {
            message.update().is_some_and(|(_, _, update)| {
                update["toolCallId"] == tool
                    && matches!(update["status"].as_str(), Some("failed" | "completed"))
            })
        });
        let fine = ended.is_ok_and(|answer| answer.is_ok());
        stage.check(
            "PERM-10",
            over && fine,
            "a rejected tool is not reported as failed, or its turn does not end well",
        );
        return Ok(());
    }
    ended?.ok();
    Ok(())
}

/// Results without required members may be null.
// RPC-22
async fn null_results(stage: &mut Stage) -> Step {
    let session = begin(stage).await?;
    stage.services.answer_with("fs/write_text_file", |_| Reply::Result(Value::Null));
    let mark = stage.mark();
    let ended = stage.turn(&session, PromptKind::Write).await;
    if !stage.received(mark).iter().any(|message| message.asks("fs/write_text_file")) {
        ended?.ok();
        return unseen("the agent wrote no file through the client");
    }
    match ended {
        Ok(Ok(_)) => {
            let failed = stage
                .received(mark)
                .iter()
                .any(|message| message.update().is_some_and(|(_, _, update)| update["status"] == "failed"));
            stage.check("RPC-22", !failed, "a write that was answered with null is reported as failed");
        }
        Ok(Err(error)) => {
            stage.fail("RPC-22", format!("after a result of null the turn fails: {}", error.message))
        }
        Err(Stop::PeerGone) => stage.fail("RPC-22", "the agent ended at a result of null"),
        Err(Stop::Deadline(_)) => stage.fail("RPC-22", "after a result of null the turn does not end"),
        Err(stop) => return Err(stop),
    }
    Ok(())
}
