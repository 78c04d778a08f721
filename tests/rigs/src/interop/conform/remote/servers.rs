//! The servers, and how each is started.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::super::super::real::Modelled;
use super::super::super::remote::{Server as Running, Transport, Via};
use super::super::super::{install, real};
use super::{Options, checker, finish, workspace};

/// The login of the agents of `tests/interop`.
const LOGIN: [&str; 2] = ["--login", "pass"];
/// How long a server may take to listen.
const START: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(50);

/// A server to be judged.
pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    kind: Kind,
}

enum Kind {
    /// `attache serve` before an agent of `tests/interop`.
    Ours(Vec<String>),
    /// An agent of `tests/interop` that is a server itself.
    Official(Vec<String>),
    /// `qwen serve`, with the fake model.
    Qwen(Box<Modelled>),
    /// `stdio-to-ws` before an agent.
    StdioToWs { program: String, agent: String },
}

/// The servers that are wanted, installed and built.
pub(super) fn all(options: &Options<'_>) -> Result<Vec<Server>, String> {
    let (cache, wanted) = (options.cache, options.wanted);
    let ours = install::ours()?.agent.command;
    let mut servers = Vec::new();
    let mut push = |name, version, kind| servers.push(Server { name, version, kind });
    if wanted("attache serve") {
        push("attache serve", env!("CARGO_PKG_VERSION"), Kind::Ours(ours.clone()));
    }
    for (sdk, name, version) in [
        ("rust", "official Rust server", "5.0.0"),
        ("ts", "official TypeScript server", "2.4.0"),
        ("py", "official Python server", "0.12.1"),
    ] {
        if wanted(name) {
            push(name, version, Kind::Official(install::official(sdk, cache)?.1.command));
        }
    }
    if wanted("qwen serve") {
        let qwen = real::modelled(cache, &|name| name == "qwen")?.pop().ok_or("there is no qwen")?;
        push("qwen serve", "0.24.4", Kind::Qwen(Box::new(qwen)));
    }
    if wanted("stdio-to-ws") {
        let program = real::package("stdio-to-ws", cache)?.join("node_modules/stdio-to-ws/dist/main.js");
        let [agent] = ours.as_slice() else { return Err("our agent is one word".to_owned()) };
        let program = program.to_string_lossy().into_owned();
        push("stdio-to-ws", "0.2.0", Kind::StdioToWs { program, agent: agent.clone() });
    }
    Ok(servers)
}

impl Server {
    /// Starts the server and has it judged.
    pub(super) fn judge(
        &self,
        options: &Options<'_>,
        rules: &str,
        file: &Path,
        home: &Path,
    ) -> Result<(), String> {
        let mut command = checker(options, "server", rules, file, home);
        match &self.kind {
            Kind::Ours(agent) | Kind::Official(agent) => {
                let program = matches!(self.kind, Kind::Ours(_)).then_some(options.attache);
                let via = Via { transport: Transport::Http, program };
                let server = Running::start(&via, agent, home)?;
                finish(command.args(LOGIN).arg(&server.url), self.name, file)
            }
            Kind::Qwen(qwen) => {
                let (_model, env) = qwen.begin(options.cache)?;
                let (server, url) = qwen_serve(qwen, env, home)?;
                // It serves one directory only.
                command.arg("--session-dir").arg(workspace(home));
                // It is slow to create sessions, and other clients wait for that.
                command.args(["-j", "1"]);
                for (kind, text) in [("say", "[[answer hello]]"), ("ask", "[[run rm old.txt]]")] {
                    command.args(["--prompt", &format!("{kind}={text}")]);
                }
                let judged = finish(command.arg(url), self.name, file);
                drop(server);
                judged
            }
            Kind::StdioToWs { program, agent } => {
                let server = Restarted::start(program, agent, home)?;
                // One at a time: a scenario that brings it down must not count against another.
                let url = format!("ws://127.0.0.1:{}/", server.port);
                finish(command.args(LOGIN).args(["-j", "1", &url]), self.name, file)
            }
        }
    }
}

/// A process that ends when it is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `qwen serve`, which prints its URL.
fn qwen_serve(qwen: &Modelled, env: Vec<(String, String)>, home: &Path) -> Result<(Process, String), String> {
    let command = qwen.command()?;
    let log = home.join("server.log");
    let errors = File::create(&log).map_err(|error| error.to_string())?;
    // Its command begins with the runtime and the script.
    let mut process = Command::new(&command[0])
        .args(&command[1..2])
        .args(["serve", "--port", "0", "--no-web"])
        .env_clear()
        .envs(env)
        .current_dir(workspace(home))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .map_err(|error| format!("qwen serve: {error}"))?;
    let stdout = process.stdout.take();
    let process = Process(process);
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    // Its output is read to the end, so that it never waits for room.
    thread::spawn(move || {
        for line in BufReader::new(stdout?).lines().map_while(Result::ok) {
            let url = line.split_once("listening on ").and_then(|(_, rest)| rest.split(' ').next());
            if let Some(url) = url {
                let _ = sender.try_send(format!("{url}/acp"));
            }
        }
        Some(())
    });
    let url = receiver
        .recv_timeout(START)
        .map_err(|_| format!("qwen serve did not start; see {}", log.display()))?;
    Ok((process, url))
}

/// `stdio-to-ws`, which is started again whenever it ends.
struct Restarted {
    port: u16,
    is_over: Arc<AtomicBool>,
    child: Arc<Mutex<Option<Child>>>,
    keeper: Option<JoinHandle<()>>,
}

impl Restarted {
    fn start(program: &str, agent: &str, home: &Path) -> Result<Restarted, String> {
        let text = |error: std::io::Error| error.to_string();
        // It cannot choose a port itself.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).map_err(text)?.port();
        let (is_over, child) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let spawn = {
            let (program, agent) = (program.to_owned(), agent.to_owned());
            let (dir, log) = (workspace(home), home.join("server.log"));
            move || -> std::io::Result<Child> {
                let errors = fs::OpenOptions::new().create(true).append(true).open(&log)?;
                let mut command = Command::new("node");
                command.args([&program, "--quiet", "--port", &port.to_string(), &agent]).current_dir(&dir);
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn()
            }
        };
        let (over, slot) = (Arc::clone(&is_over), Arc::clone(&child));
        let keeper = thread::spawn(move || {
            while !over.load(Ordering::SeqCst) {
                let mut current = slot.lock().unwrap_or_else(PoisonError::into_inner);
                let is_running =
                    current.as_mut().is_some_and(|child: &mut Child| matches!(child.try_wait(), Ok(None)));
                if !is_running {
                    *current = spawn().ok();
                }
                drop(current);
                thread::sleep(PAUSE);
            }
        });
        let server = Restarted { port, is_over, child, keeper: Some(keeper) };
        let started = std::time::Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if started.elapsed() > START {
                return Err("stdio-to-ws did not start".to_owned());
            }
            thread::sleep(PAUSE);
        }
        Ok(server)
    }
}

impl Drop for Restarted {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
        if let Some(child) = self.child.lock().unwrap_or_else(PoisonError::into_inner).take() {
            drop(Process(child));
        }
    }
}
