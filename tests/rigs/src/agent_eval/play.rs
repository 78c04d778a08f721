//! One task with one agent: a fresh repository, our client, the gateway, and the checks afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::check::{Outcome, failures};
use super::gateway::{Gateway, Sampling, Upstream};
use super::task::{Task, write};
use crate::interop::{self, ChatAgent, Process, ProcessEnd};

/// How long processes may take to end after the client.
const AFTER: Duration = Duration::from_secs(20);

/// An agent in its place.
pub(super) struct Contestant<'a> {
    pub(super) name: &'a str,
    /// The program `attache`: our client, and our agent.
    pub(super) program: &'a str,
    pub(super) cache: &'a Path,
    pub(super) model: &'a str,
    pub(super) window: u64,
    pub(super) time: Duration,
}

/// The result of one task with one agent.
#[derive(Debug, Default)]
pub(super) struct Played {
    pub(super) agent: String,
    pub(super) task: String,
    pub(super) seed: u64,
    pub(super) failures: Vec<String>,
    /// Whether the agent asked the model at all.
    pub(super) was_asked: bool,
    pub(super) answer: String,
    pub(super) requests: usize,
    /// Tokens of the first request, as the model server counted them.
    pub(super) first: u64,
    pub(super) read: u64,
    pub(super) written: u64,
    pub(super) malformed: usize,
    pub(super) took: Duration,
}

impl Played {
    pub(super) fn has_passed(&self) -> bool {
        self.failures.is_empty()
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "agent": self.agent, "task": self.task, "seed": self.seed, "passed": self.has_passed(),
            "failures": self.failures, "answer": self.answer, "requests": self.requests, "first": self.first, "read": self.read,
            "written": self.written, "malformed": self.malformed, "ms": self.took.as_millis() as u64,
        })
    }
}

/// Plays a task. The directories have the same names for all tasks of a run, so that the server can
/// reuse the common beginning of the prompts; afterwards they move to `kept`.
pub(super) fn play(
    contestant: &Contestant<'_>,
    task: &Task,
    upstream: &Upstream,
    sampling: Sampling,
    kept: &Path,
) -> Result<Played, String> {
    let dir = contestant.cache.join("eval").join(format!("{}-{}", contestant.name, std::process::id()));
    let work = dir.join("work");
    let make = || {
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        ["work", "home", "tmp"].iter().try_for_each(|sub| fs::create_dir_all(dir.join(sub)))
    };
    make().map_err(|error| format!("{}: {error}", dir.display()))?;
    write(&work, &task.repo)?;
    let gateway = Gateway::start(upstream.clone(), sampling, &dir)?;
    let setup = setup(contestant, &dir, &gateway)?;
    let started = Instant::now();
    let turn = Turn { contestant, setup: &setup, work: &work };
    let answer = match &task.again {
        None => turn.exec(&task.prompt)?,
        Some(again) => turn.crash_and_resume(&task.prompt, again, &gateway)?,
    };
    let took = started.elapsed();
    let exchanges = gateway.exchanges();
    let mut played = Played {
        agent: contestant.name.to_owned(),
        task: task.name.clone(),
        seed: sampling.seed,
        failures: failures(task, &Outcome { dir: &work, answer: &answer.text })?,
        answer: answer.text,
        was_asked: gateway.was_asked(),
        requests: exchanges.len(),
        // Some agents ask for a title first.
        first: exchanges.iter().find(|exchange| exchange.is_step()).map_or(0, |exchange| exchange.read),
        read: exchanges.iter().map(|exchange| exchange.read).sum(),
        written: exchanges.iter().map(|exchange| exchange.written).sum(),
        malformed: exchanges
            .iter()
            .filter(|exchange| exchange.is_step())
            .map(|exchange| exchange.malformed())
            .sum(),
        took,
    };
    if exchanges.iter().all(|exchange| exchange.has_failed()) {
        // Not a fault of the model: the rig or the agent's settings are wrong.
        played.failures.push(format!("the model was not reached: {}", answer.problem));
    }
    if !answer.problem.is_empty() && !played.has_passed() {
        played.failures.push(answer.problem);
    }
    let _ = fs::write(dir.join("wire.jsonl"), answer.lines.join("\n"));
    let _ = fs::remove_dir_all(kept);
    let _ = fs::create_dir_all(kept.parent().unwrap_or(kept));
    fs::rename(&dir, kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    Ok(played)
}

fn setup(contestant: &Contestant<'_>, dir: &Path, gateway: &Gateway) -> Result<ChatAgent, String> {
    let Contestant { name, program, cache, model, window, .. } = *contestant;
    let place = interop::ModelEnvironment { dir, url: &gateway.url, model, window };
    if name != super::OURS {
        return interop::chat_agent(name, &place, cache);
    }
    let mut env = interop::plain_env(&place)?;
    // As a user of llama.cpp does it: the agent asks this server how long its window is.
    env.push(("LLAMACPP_BASE_URL".to_owned(), format!("{}/v1", gateway.url)));
    // The other agents follow the instruction files of every project.
    env.push(("ATTACHE_TRUST".to_owned(), "1".to_owned()));
    let model = format!("llamacpp/{model}");
    let command = [program, "agent", "--mode", "auto", "--model", &model].map(str::to_owned).to_vec();
    Ok(ChatAgent { command, env })
}

#[derive(Default)]
struct Answer {
    /// The text after the last tool call.
    text: String,
    lines: Vec<String>,
    /// How the client failed.
    problem: String,
}

struct Turn<'a> {
    contestant: &'a Contestant<'a>,
    setup: &'a ChatAgent,
    work: &'a Path,
}

impl Turn<'_> {
    fn client(&self, words: &[&str]) -> Vec<String> {
        let agent = interop::quoted(&self.setup.command);
        let mut command = vec![self.contestant.program.to_owned()];
        command.extend(
            ["--agent", &agent, "--format", "json", "--approve-all", "--ttl", "1"].map(str::to_owned),
        );
        command.extend(words.iter().map(|word| (*word).to_owned()));
        command
    }

    fn run(&self, words: &[&str], look: Option<&dyn Fn() -> bool>) -> Result<ProcessEnd, String> {
        interop::run_process(&Process {
            command: &self.client(words),
            cwd: self.work,
            env: &self.setup.env,
            interrupt: look,
            time: self.contestant.time,
            after: AFTER,
        })
    }

    fn exec(&self, prompt: &str) -> Result<Answer, String> {
        Ok(answer(self.run(&["exec", prompt], None)?))
    }

    /// Kills the agent while the model makes its second answer, then prompts once more in the same
    /// session.
    fn crash_and_resume(&self, prompt: &str, again: &str, gateway: &Gateway) -> Result<Answer, String> {
        let opened = self.run(&["sessions", "new", "-s", "crash"], None)?;
        if opened.code != Some(0) {
            return Ok(Answer {
                problem: format!("no session: {}", opened.stderr.trim()),
                ..Answer::default()
            });
        }
        let killed = std::cell::Cell::new(false);
        let look = || {
            if !killed.get() && gateway.exchanges().iter().any(|exchange| exchange.is_step()) {
                killed.set(true);
                kill_agent(&self.setup.command, self.work);
            }
            false
        };
        let first = self.run(&["prompt", "-s", "crash", prompt], Some(&look))?;
        let mut second = answer(self.run(&["prompt", "-s", "crash", again], None)?);
        second.lines.splice(0..0, first.stdout);
        Ok(second)
    }
}

/// Kills the processes in `work` whose command line contains the agent's last words.
fn kill_agent(command: &[String], work: &Path) {
    let Some(last) = command.last() else { return };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        let last_word = line.split(|byte| *byte == 0).rfind(|word| !word.is_empty());
        let is_agent = last_word == Some(last.as_bytes());
        if is_agent && fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == work) {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

/// The last message of a turn, from the lines of the wire.
fn answer(ended: ProcessEnd) -> Answer {
    let mut text = String::new();
    for line in &ended.stdout {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        let update = &message["params"]["update"];
        match update["sessionUpdate"].as_str() {
            Some("agent_message_chunk") => {
                text.push_str(update["content"]["text"].as_str().unwrap_or_default())
            }
            Some("tool_call") => text.clear(),
            _ => {}
        }
    }
    let problem = match ended.code {
        Some(0) => String::new(),
        code => {
            let last = ended.stderr.trim().lines().last().unwrap_or_default();
            format!("the client ended with {code:?} {} {last}", ended.problems.join(", "))
        }
    };
    Answer { text, lines: ended.stdout, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_is_the_text_after_the_last_call() {
        let chunk = |text: &str| json!({"params": {"update": {"sessionUpdate": "agent_message_chunk", "content": {"text": text}}}});
        let call = json!({"params": {"update": {"sessionUpdate": "tool_call"}}});
        let lines = [chunk("I look."), call, chunk("It is "), chunk("7.")].map(|line| line.to_string());
        let ended = ProcessEnd {
            stdout: lines.to_vec(),
            stderr: "error: x\n".to_owned(),
            code: Some(4),
            problems: Vec::new(),
        };
        let answer = answer(ended);
        assert_eq!(answer.text, "It is 7.");
        assert!(answer.problem.contains("error: x"), "{}", answer.problem);
    }
}
