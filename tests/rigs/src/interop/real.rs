//! `cargo xtask interop --real`: our clients against agents that people use.
//!
//! The agents come from npm, in the versions that the lock files in `tests/interop/real` name. They
//! believe that they talk to their model; it is the scripted model of `attache check --fake-model`,
//! which does what markers in the prompt say. Nothing leaves the machine: where Linux allows it,
//! everything runs in a network of its own that has only the loopback, and what the agents try to
//! reach through a proxy is counted.
//!
//! Read on in `scenes` (what is played and what must come of it), `agents` (how each agent is set
//! up, and what is odd about it), `seen` (a turn, as the wire shows it), `model` (the model's
//! process and its log), `seal` (the network).

mod agents;
mod drive;
mod environment;
mod model;
mod scenes;
mod seal;
mod seen;

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::install;
use super::pair::counts_processes;
use super::report::Report;
use agents::{AGENTS, Agent};
use drive::{Driver, Pairing, Programs, Version};
pub(crate) use environment::ModelEnvironment;

/// The names for `--only`.
pub(super) fn names() -> Vec<&'static str> {
    AGENTS.iter().map(|agent| agent.name).collect()
}

/// The names for `--by`.
pub(super) const CLIENTS: &[&str] = &["sdk", "attache"];

/// Installs, builds, and plays all scenes with all wanted agents.
pub(super) fn run(only: &[&str], by: &[&str], cache: &Path) -> Result<(), String> {
    let started = Instant::now();
    let wanted: Vec<&Agent> = AGENTS.iter().filter(|agent| only.contains(&agent.name)).collect();
    let all = [Driver::Sdk, Driver::Program];
    let drivers: Vec<Driver> = all.into_iter().filter(|driver| by.contains(&driver.name())).collect();
    let programs = Programs::get(&wanted, &drivers, cache)?;
    if !seal::is_sealed() {
        let chore = ["interop", "--real", "--only", &only.join(","), "--by", &by.join(",")];
        if let Some(outcome) = seal::again(&chore.map(str::to_owned)) {
            return outcome;
        }
        println!(
            "note    this system cannot take the network away from the agents; they are only asked not to use it"
        );
    }
    if !counts_processes() {
        println!("note    the processes that are left at the end cannot be counted on this system");
    }
    let mut report = Report::default();
    for driver in drivers {
        let mut played = Vec::new();
        for agent in &wanted {
            for version in [Version::V1, Version::V2] {
                if version == Version::V1 || agent.speaks_v2 {
                    let pairing = Pairing { agent, driver, version };
                    played.push((pairing, scenes::play(pairing, &programs, cache, &mut report)?));
                }
            }
        }
        for (pairing, session) in played {
            scenes::play_again(pairing, session, &programs, cache, &mut report)?;
        }
    }
    report.finish(started.elapsed())
}

/// Whether there is no network here but the loopback.
pub(super) fn is_sealed() -> bool {
    seal::is_sealed()
}

/// Runs a chore once more, without a network. `None` if that is not possible here.
pub(super) fn sealed(chore: &[String]) -> Option<Result<(), String>> {
    seal::again(chore)
}

/// An agent with its fake model, for other chores.
pub(super) struct Modelled {
    agent: &'static Agent,
    programs: std::rc::Rc<Programs>,
    cache: std::path::PathBuf,
}

/// The agents of these names.
pub(super) fn modelled(cache: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Modelled>, String> {
    let agents: Vec<&'static Agent> = AGENTS.iter().filter(|agent| wanted(agent.name)).collect();
    if agents.is_empty() {
        return Ok(Vec::new());
    }
    let programs = std::rc::Rc::new(Programs::get(&agents, &[], cache)?);
    let one = |agent| Modelled { agent, programs: std::rc::Rc::clone(&programs), cache: cache.to_owned() };
    Ok(agents.into_iter().map(one).collect())
}

impl Modelled {
    pub(super) fn name(&self) -> &'static str {
        self.agent.name
    }

    pub(super) fn version(&self) -> String {
        self.programs.version(self.agent)
    }

    /// The directory of its `node`.
    pub(super) fn node(&self) -> &Path {
        &self.programs.node
    }

    fn place(&self, url: &str) -> environment::AgentEnvironment {
        let dir = self.cache.join("runs").join(format!("check-{}", self.agent.name));
        environment::AgentEnvironment::new(&dir, url, self.agent, &self.programs)
    }

    /// Its command line; it does not depend on the model.
    pub(super) fn command(&self) -> Result<Vec<String>, String> {
        Ok((self.agent.setup)(&self.place(""))?.command)
    }

    /// Starts the model and says in which environment the agent runs; the model ends when it is
    /// dropped.
    pub(super) fn begin(&self, cache: &Path) -> Result<(impl Drop + use<>, Vec<(String, String)>), String> {
        let dir = cache.join("runs").join(format!("check-{}", self.agent.name));
        environment::AgentEnvironment::clear(&dir)?;
        let model = model::Model::start(&self.programs.model, &dir.join("model.log"))?;
        let place = self.place(&model.url);
        let env = place.settle(&(self.agent.setup)(&place)?)?;
        Ok((model, env))
    }
}

/// The agents that take a model with the chat API of OpenAI.
pub(crate) const CHAT_AGENTS: &[&str] = &["opencode", "pi", "qwen"];

/// How one of [`CHAT_AGENTS`] is started.
pub(crate) struct ChatAgent {
    pub(crate) command: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

/// Installs one of [`CHAT_AGENTS`] and writes its settings.
pub(crate) fn chat_agent(name: &str, at: &ModelEnvironment<'_>, cache: &Path) -> Result<ChatAgent, String> {
    let node = package("node", cache)?.join("node_modules/node/bin");
    let place = environment::AgentEnvironment::with_model(at, package(name, cache)?, node);
    let setup = match name {
        "opencode" => agents::opencode(&place),
        "pi" => agents::pi(&place),
        _ => agents::qwen(&place),
    }?;
    let env = place.settle(&setup)?;
    Ok(ChatAgent { command: setup.command, env })
}

/// The environment of an agent without settings of its own.
pub(crate) fn plain_env(at: &ModelEnvironment<'_>) -> Result<Vec<(String, String)>, String> {
    environment::AgentEnvironment::with_model(at, PathBuf::new(), PathBuf::from("/usr/bin"))
        .settle(&agents::Setup::default())
}

/// Installs what the lock file of this name in `tests/interop/real` lists.
pub(super) fn package(name: &str, cache: &Path) -> Result<std::path::PathBuf, String> {
    install::npm(&super::home().join("real").join(name), &cache.join("real").join(name), name)
}
