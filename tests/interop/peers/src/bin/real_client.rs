//! The client that `cargo xtask interop --real` puts before agents that people use.
//!
//! ```text
//! real_client [--protocol 1|2] [--auth METHOD] [--mode MODE] [--again SESSION] STEP… -- AGENT ARGS…
//! ```
//!
//! A step is `NAME:HOW:TEXT`: TEXT is the prompt of a turn in a session of its own, or in session
//! SESSION of an earlier process, which is loaded or resumed. HOW says what happens in the turn:
//! `allow` and `deny` answer the questions, `now` cancels at once, `asked` when the agent asks,
//! `cancel=WORDS` when the agent has said them, `stop=FILE` allows everything and cancels when FILE
//! is there. `background=FILE` allows everything, creates FILE after the turn, and waits until no
//! terminal runs; the stop reason is followed by how many ran at the end of the turn and at last.
//! How each turn went is printed as a JSON line; what was exchanged is for others to record.

#![allow(clippy::print_stdout, reason = "a program that prints what it saw")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use attache::client::{AgentHandle, Client, Event, PermissionAsk, Protocol, Session, TurnEvents};
use attache::wire::v1::PermissionOptionKind::{AllowAlways, AllowOnce, RejectAlways, RejectOnce};
use attache::{Command, Error, Link, Result};
use attache_interop_peers::host;
use serde_json::{Value, json};

/// For one turn; the agents are real, the model is not.
const TIME: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Options {
    is_v2: bool,
    auth: Option<String>,
    mode: Option<String>,
    again: Option<String>,
    steps: Vec<Step>,
}

struct Step {
    name: String,
    how: How,
    text: String,
}

enum How {
    Allow,
    Deny,
    Now,
    Asked,
    Cancel(String),
    Stop(PathBuf),
    Background(PathBuf),
}

fn step(arg: &str) -> Option<Step> {
    let (name, rest) = arg.split_once(':')?;
    let (how, text) = rest.split_once(':')?;
    let how = match how.split_once('=') {
        None if how == "allow" => How::Allow,
        None if how == "deny" => How::Deny,
        None if how == "now" => How::Now,
        None if how == "asked" => How::Asked,
        Some(("cancel", words)) => How::Cancel(words.to_owned()),
        Some(("stop", file)) => How::Stop(file.into()),
        Some(("background", file)) => How::Background(file.into()),
        _ => return None,
    };
    Some(Step { name: name.to_owned(), how, text: text.to_owned() })
}

fn options(args: &[String]) -> Option<Options> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--protocol" => options.is_v2 = args.next()? == "2",
            "--auth" => options.auth = Some(args.next()?.clone()),
            "--mode" => options.mode = Some(args.next()?.clone()),
            "--again" => options.again = Some(args.next()?.clone()),
            other => options.steps.push(step(other)?),
        }
    }
    Some(options)
}

/// A session for the next step, with what was replayed of it.
async fn session(agent: &AgentHandle, options: &Options) -> Result<(Session, Vec<String>)> {
    let cwd = std::env::current_dir()?;
    let (session, replayed) = match &options.again {
        None => (agent.new_session(cwd).await?, Vec::new()),
        Some(id) => match (agent.loader(), agent.resumer()) {
            (Some(loader), _) => {
                let mut loading = loader.load(id.as_str(), cwd).await?;
                let mut replayed = Vec::new();
                while let Some(event) = loading.next().await? {
                    match event {
                        Event::User(text) => replayed.push(format!("user:{text}")),
                        Event::Text(text) => replayed.push(format!("text:{text}")),
                        _ => {}
                    }
                }
                (loading.finish().await?, replayed)
            }
            (None, Some(resuming)) => (resuming.resume(id.as_str(), cwd).await?, Vec::new()),
            (None, None) => return Err(Error::internal("the agent neither loads nor resumes sessions")),
        },
    };
    if let Some(mode) = &options.mode {
        session.control().set_mode(mode.as_str()).await?;
    }
    Ok((session, replayed))
}

fn answer(ask: PermissionAsk, how: &How) {
    let kinds = if matches!(how, How::Deny) { [RejectOnce, RejectAlways] } else { [AllowOnce, AllowAlways] };
    if let Some(kind) = kinds.into_iter().find(|kind| ask.first_of(*kind).is_some()) {
        ask.choose_kind(kind);
    }
}

/// The next event; meanwhile it is looked whether the turn is to be stopped.
async fn next(turn: &mut TurnEvents<'_>, how: &How) -> Result<Option<Event>> {
    loop {
        match tokio::time::timeout(Duration::from_millis(20), turn.next()).await {
            Ok(event) => return event,
            Err(_) => {
                if let How::Stop(file) = how
                    && file.exists()
                {
                    turn.cancel();
                }
            }
        }
    }
}

/// Keeps the terminals of the agent that have not exited.
fn follow(running: &mut BTreeSet<String>, event: &Event) {
    if let Event::Terminal(change) = event {
        let id = change.terminal.id.to_string();
        match change.terminal.exit_status {
            Some(_) => running.remove(&id),
            None => running.insert(id),
        };
    }
}

async fn play(agent: &AgentHandle, options: &Options, step: &Step) -> Result<Value> {
    let (mut session, replayed) = session(agent, options).await?;
    let id = session.id().to_string();
    let (mut text, mut asked, mut running) = (String::new(), 0, BTreeSet::new());
    let mut turn = session.prompt(step.text.as_str()).await?;
    if matches!(step.how, How::Now) {
        turn.cancel();
    }
    while let Some(event) = next(&mut turn, &step.how).await? {
        match event {
            Event::Text(piece) => {
                text.push_str(&piece);
                if matches!(&step.how, How::Cancel(words) if text.contains(words)) {
                    turn.cancel();
                }
            }
            Event::Permission(ask) => {
                asked += 1;
                if matches!(step.how, How::Asked) {
                    // CANCEL-03: the question that is in our hands is answered by the cancel.
                    turn.cancel();
                } else {
                    answer(ask, &step.how);
                }
            }
            other => follow(&mut running, &other),
        }
    }
    let mut stop = json!(turn.stop_reason());
    drop(turn);
    if let How::Background(file) = &step.how {
        let before = running.len();
        std::fs::write(file, "")?;
        while !running.is_empty() {
            follow(&mut running, &session.next_update().await?);
        }
        stop = json!(format!("{} {before} {}", stop.as_str().unwrap_or_default(), running.len()));
    }
    if options.again.is_some() {
        session.close().await?;
    }
    Ok(json!({"session": id, "stop": stop, "text": text, "asked": asked, "replayed": replayed}))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let cut = args.iter().position(|arg| arg == "--").ok_or_else(|| Error::internal("no `-- AGENT`"))?;
    let options =
        options(&args[..cut]).ok_or_else(|| Error::internal("arguments that are no steps: NAME:HOW:TEXT"))?;
    let [program, rest @ ..] = &args[cut + 1..] else { return Err(Error::internal("no agent")) };

    let agent = Client::new()
        .info("real-client", "1.0.0")
        .protocol(if options.is_v2 { Protocol::V2 } else { Protocol::V1 })
        .read_files(host::read)
        .write_files(host::write)
        .terminals(host::Processes::default())
        .initialize_timeout(TIME)
        .cancel_deadline(TIME / 4)
        .on_noise(|line, why| println!("{}", json!({"noise": String::from_utf8_lossy(line), "why": why})))
        // Some agents take their time, and whether they end by themselves is worth knowing.
        .connect(Link::command(Command::new(program).args(rest).grace(TIME / 3))?)
        .await?;
    println!("{}", json!({"agent": agent.info().map(|info| format!("{} {}", info.name, info.version))}));
    if let Some(method) = &options.auth {
        agent.authenticate(method.as_str()).await?;
    }
    for step in &options.steps {
        let mut went = match tokio::time::timeout(TIME, play(&agent, &options, step)).await {
            Ok(Ok(went)) => went,
            Ok(Err(error)) => json!({"error": error.to_string()}),
            Err(_) => json!({"error": "timed out"}),
        };
        went["step"] = json!(step.name);
        println!("{went}");
    }
    let exit = agent.shutdown().await;
    println!("{}", json!({"end": exit.and_then(|exit| exit.code())}));
    Ok(())
}
