//! Our two clients: a small one on the SDK, which plays all scenes over one connection, and the
//! program `attache`, which is started for every scene.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::super::install;
use super::super::pair::{self, Start};
use super::super::tap::{self, Log};
use super::agents::{Agent, Setup};
use super::environment::AgentEnvironment;
use super::scenes::{How, Scene};
use super::{package, seal, seen};

/// For one process; each turn has a limit of its own below that.
const TIME: Duration = Duration::from_secs(600);
/// How long what was started may take to go: an agent that does not end by itself is given some
/// time first.
const AFTER: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Driver {
    Sdk,
    Program,
}

impl Driver {
    pub(super) fn name(self) -> &'static str {
        match self {
            Driver::Sdk => "sdk",
            Driver::Program => "attache",
        }
    }
}

/// A version of the protocol.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Version {
    V1,
    V2,
}

impl Version {
    fn number(self) -> &'static str {
        match self {
            Version::V1 => "1",
            Version::V2 => "2",
        }
    }
}

/// A client of ours with an agent, over one version.
#[derive(Clone, Copy)]
pub(super) struct Pairing<'a> {
    pub(super) agent: &'a Agent,
    pub(super) driver: Driver,
    pub(super) version: Version,
}

impl Pairing<'_> {
    /// The directory for the files of this pairing.
    pub(super) fn directory(&self, cache: &Path) -> PathBuf {
        let version = if self.version == Version::V2 { "-v2" } else { "" };
        cache.join("runs").join(format!("real-{}-{}{version}", self.agent.name, self.driver.name()))
    }
}

/// What is installed and built.
pub(super) struct Programs {
    /// Where the agents are, one directory each.
    pub(super) packages: PathBuf,
    pub(super) node: PathBuf,
    pub(super) model: String,
    client: String,
    /// Prints a log in the form of version 1.
    log_as_v1: String,
    attache: String,
}

impl Programs {
    pub(super) fn get(agents: &[&Agent], drivers: &[Driver], cache: &Path) -> Result<Self, String> {
        // Some agents want a newer node than a system may have.
        let node = package("node", cache)?.join("node_modules/node/bin");
        for agent in agents {
            package(agent.name, cache)?;
        }
        if !seal::is_sealed() {
            println!("build   ours: the fake model, the client for real agents, the program");
        }
        let [model, client, log_as_v1] = install::our_peers(["fake_model", "real_client", "log_as_v1"])?;
        let attache = if drivers.contains(&Driver::Program) { install::program()? } else { String::new() };
        Ok(Self { packages: cache.join("real"), node, model, client, log_as_v1, attache })
    }
}

impl Programs {
    /// The version of an agent, as its lock file says.
    pub(super) fn version(&self, agent: &Agent) -> String {
        let package = std::fs::read_to_string(self.packages.join(agent.name).join("package.json"));
        let package: Value =
            package.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        let versions = package["dependencies"].as_object().into_iter().flat_map(|list| list.values());
        versions.filter_map(Value::as_str).collect()
    }

    /// Reads the log of a tap in the form of version 1, the one that scenes are judged in.
    fn read(&self, log: &Path, version: Version) -> Result<Log, String> {
        match version {
            Version::V1 => tap::read(log),
            Version::V2 => {
                let output = std::process::Command::new(&self.log_as_v1).arg(log).output();
                let output = output.map_err(|error| format!("{}: {error}", self.log_as_v1))?;
                Ok(tap::parse(&String::from_utf8_lossy(&output.stdout)))
            }
        }
    }
}

/// What came of one process of ours.
pub(super) struct Run {
    pub(super) log: Log,
    pub(super) scenes: Vec<Played>,
    pub(super) bad: Vec<String>,
}

/// A scene that was played.
pub(super) struct Played {
    pub(super) scene: &'static Scene,
    pub(super) session: Option<String>,
    /// How the turn ended, as our client reported it, if that is known.
    pub(super) told: Option<String>,
}

/// Plays scenes; with `again`, in that session of an earlier process.
pub(super) fn play(
    pairing: Pairing<'_>,
    programs: &Programs,
    place: &AgentEnvironment,
    setup: &Setup,
    scenes: &'static [Scene],
    again: Option<&str>,
) -> Result<Vec<Run>, String> {
    let env = place.settle(setup)?;
    let (scenes, version): (Vec<_>, _) =
        (scenes.iter().filter(|scene| scene.how.fits(pairing)).collect(), pairing.version);
    match pairing.driver {
        Driver::Sdk => Ok(vec![sdk(version, programs, place, setup, &env, &scenes, again)?]),
        Driver::Program => {
            scenes.iter().map(|scene| program(version, programs, place, setup, &env, scene)).collect()
        }
    }
}

fn sdk(
    version: Version,
    programs: &Programs,
    place: &AgentEnvironment,
    setup: &Setup,
    env: &[(String, String)],
    scenes: &[&'static Scene],
    again: Option<&str>,
) -> Result<Run, String> {
    let log = place.dir.join(if again.is_some() { "wire-again.log" } else { "wire.log" });
    let mut command = vec![programs.client.clone(), "--protocol".to_owned(), version.number().to_owned()];
    if let Some(session) = again {
        command.extend(["--again".to_owned(), session.to_owned()]);
    }
    for scene in scenes {
        let how = match scene.how {
            How::Allow => "allow".to_owned(),
            How::Deny => "deny".to_owned(),
            How::Now => "now".to_owned(),
            How::Asked => "asked".to_owned(),
            How::Cancel(words) => format!("cancel={words}"),
            How::Stop(file) => format!("stop={}", place.work.join(file).display()),
            How::Background(file) => format!("background={}", place.work.join(file).display()),
            How::OurTool => continue,
        };
        command.push(format!("{}:{how}:{}", scene.name, scene.prompt(place)));
    }
    command.push("--".to_owned());
    command.extend(tap::command(&log, &setup.command)?);
    let start = Start {
        command: &command,
        cwd: &place.work,
        input: "",
        env: Some(env),
        interrupt: None,
        time: TIME,
        after: AFTER,
    };
    let ended = pair::finish_as(&start)?;
    let mut run = Run { log: programs.read(&log, version)?, scenes: Vec::new(), bad: ended.problems };
    if ended.code != Some(0) {
        run.bad.push(format!("the client ended with {:?}: {}", ended.code, pair::short(ended.stderr.trim())));
    }
    let lines: Vec<Value> = ended.stdout.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    for scene in scenes {
        let line = lines.iter().find(|line| line["step"] == scene.name);
        let word = |key: &str| line.and_then(|line| line[key].as_str()).map(str::to_owned);
        if let Some(error) = word("error") {
            run.bad.push(format!("{}: {error}", scene.name));
        }
        run.scenes.push(Played { scene, session: word("session"), told: word("stop") });
    }
    for noise in lines.iter().filter(|line| line.get("noise").is_some()) {
        run.bad.push(format!("not a message: {}", pair::short(&noise.to_string())));
    }
    Ok(run)
}

fn program(
    version: Version,
    programs: &Programs,
    place: &AgentEnvironment,
    setup: &Setup,
    env: &[(String, String)],
    scene: &'static Scene,
) -> Result<Run, String> {
    place.set(if scene.how == How::OurTool { "mcp_server = true\n" } else { "" })?;
    // The same command every time: a session belongs to the command of its agent.
    let wire = place.dir.join("wire.log");
    let agent = super::super::shipped::quoted(&tap::command(&wire, &setup.command)?);
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut command = vec![programs.attache.clone()];
    command.extend(words(&["--agent", &agent, "--protocol", version.number()]));
    command.extend(words(&["--format", "json", "--ttl", "1"]));
    // Denied is what would be asked: reading stays possible, or the agent would not come to its
    // question.
    command.extend(words(if scene.how == How::Deny { &["--approve-reads"] } else { &["--approve-all"] }));
    let session = ["prompt", "-s", "tale"];
    command.extend(words(if scene.kept { &session } else { &["exec"] }));
    command.push(scene.prompt(place));
    let interrupt = || match scene.how {
        How::Cancel(said) => std::fs::read_to_string(&wire).is_ok_and(|text| text.contains(said)),
        How::Stop(file) => place.work.join(file).exists(),
        _ => false,
    };
    let start = Start {
        command: &command,
        cwd: &place.work,
        input: "",
        env: Some(env),
        interrupt: Some(&interrupt),
        time: TIME,
        after: AFTER,
    };
    if scene.kept && scene.begins {
        let mut new = vec![programs.attache.clone()];
        new.extend(words(&["--agent", &agent, "--protocol", version.number(), "--ttl", "1"]));
        new.extend(words(&["sessions", "new", "-s", "tale"]));
        let ended = pair::finish_as(&Start { command: &new, interrupt: None, ..start })?;
        if ended.code != Some(0) {
            return Err(format!(
                "`attache sessions new` ended with {:?}: {}",
                ended.code,
                ended.stderr.trim()
            ));
        }
    }
    let ended = pair::finish_as(&start)?;
    let log = programs.read(&wire, version)?;
    let _ = std::fs::rename(&wire, place.dir.join(format!("wire-{}.log", scene.name)));
    let mut bad = ended.problems;
    if ended.code != Some(scene.exit()) {
        bad.push(format!(
            "{}: the program ended with {:?} instead of {}: {}",
            scene.name,
            ended.code,
            scene.exit(),
            pair::short(ended.stderr.trim())
        ));
    }
    let played = Played { scene, session: seen::session(&log), told: None };
    Ok(Run { log, scenes: vec![played], bad })
}
