//! One hub, its clients, and the kills between them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::client::{self, Files};
use crate::laws::{self, Counts};
use crate::log;
use crate::process::Process;
use crate::random::Random;
use crate::view::View;

const CLIENTS: usize = 3;
/// A world that takes longer to come to its end has a prompt or a question that was lost.
const END: Duration = Duration::from_secs(120);
/// How long processes may take to end after their hub.
const ORPHANS: Duration = Duration::from_secs(30);

/// The kills of a world by their victims.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kills {
    pub(crate) hub: u64,
    pub(crate) client: u64,
    pub(crate) agent: u64,
}

pub(crate) struct World {
    directory: PathBuf,
    program: PathBuf,
    files: Files,
    random: Random,
    hub: Option<Child>,
    clients: Vec<Child>,
}

impl World {
    /// Plays a world: kills, then the end of everything that was begun, then the laws.
    pub(crate) fn play(
        directory: &Path,
        program: &Path,
        seed: u64,
        kills: u64,
    ) -> Result<(Kills, Counts), String> {
        let mut world = World {
            directory: directory.to_owned(),
            program: program.to_owned(),
            files: Files::of(directory),
            random: Random::new(seed),
            hub: None,
            clients: Vec::new(),
        };
        let played = world.run(kills);
        world.end();
        played
    }

    fn run(&mut self, kills: u64) -> Result<(Kills, Counts), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        self.start_hub()?;
        runtime.block_on(client::create_sessions(&self.files, &self.directory, CLIENTS))?;
        for number in 0..CLIENTS {
            let client = self.start_client(number)?;
            self.clients.push(client);
        }
        let mut done = Kills::default();
        for _ in 0..kills {
            self.wait_for_moment()?;
            match self.random.below(100) {
                0..35 => {
                    self.kill_hub();
                    self.start_hub()?;
                    done.hub += 1;
                }
                35..70 => {
                    let number = self.random.below(CLIENTS as u64) as usize;
                    let killed = &mut self.clients[number];
                    let _ = killed.kill();
                    let _ = killed.wait();
                    self.clients[number] = self.start_client(number)?;
                    done.client += 1;
                }
                _ => {
                    self.kill_agent();
                    done.agent += 1;
                }
            }
        }
        fs::write(self.files.drain(), "").map_err(|error| error.to_string())?;
        self.wait_for_clients()?;
        // What is checked is what a hub finds that knows nothing but the journal.
        self.kill_hub();
        self.start_hub()?;
        let views: Vec<View> =
            (0..CLIENTS).map(|number| View::read(&self.files.client(number))).collect::<Result<_, _>>()?;
        let sessions: Vec<String> = views.iter().flat_map(|view| view.sessions.keys().cloned()).collect();
        let sessions: std::collections::BTreeSet<String> = sessions.into_iter().collect();
        let sessions: Vec<String> = sessions.into_iter().collect();
        let journal = runtime.block_on(client::load(&self.files, &sessions))?;
        let counts = laws::check(&journal.view, &views, &log::read(&self.files.agents()))?;
        self.kill_hub();
        self.no_orphans()?;
        Ok((done, counts))
    }

    /// Waits for the next kill: often until the clients have got on by some bytes, else for a
    /// moment.
    fn wait_for_moment(&mut self) -> Result<(), String> {
        if self.random.percent(75) {
            let goal = self.progress() + self.random.below(6_000);
            let limit = Instant::now() + Duration::from_secs(2);
            while self.progress() < goal && Instant::now() < limit {
                self.check_clients()?;
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        std::thread::sleep(Duration::from_micros(self.random.below(4_000)));
        Ok(())
    }

    fn progress(&self) -> u64 {
        let size = |number| fs::metadata(self.files.client(number)).map_or(0, |file| file.len());
        (0..CLIENTS).map(size).sum()
    }

    /// Fails if a client has ended by itself.
    fn check_clients(&mut self) -> Result<(), String> {
        for number in 0..self.clients.len() {
            if let Ok(Some(status)) = self.clients[number].try_wait() {
                let error = fs::read_to_string(self.errors(number)).unwrap_or_default();
                return Err(format!("client {number} ended, {status}: {}", error.trim()));
            }
        }
        Ok(())
    }

    fn wait_for_clients(&mut self) -> Result<(), String> {
        let limit = Instant::now() + END;
        let mut done = 0;
        while done < CLIENTS {
            done = 0;
            for number in 0..CLIENTS {
                match self.clients[number].try_wait() {
                    Ok(Some(status)) if status.success() => done += 1,
                    Ok(Some(_)) => return self.check_clients(),
                    _ => {}
                }
            }
            if Instant::now() > limit {
                return Err("the clients do not come to an end: a prompt or a question is lost".to_owned());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn errors(&self, number: usize) -> PathBuf {
        self.directory.join(format!("client{number}.err"))
    }

    fn start_hub(&mut self) -> Result<(), String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let log = fs::OpenOptions::new().create(true).append(true).open(self.directory.join("hub.err"));
        let mut command = Command::new(&self.program);
        command
            .args(["--format", "quiet", "hub", "--listen", "127.0.0.1:0", "--max-agents", "1000"])
            .args(["--socket".as_ref(), self.files.socket().as_os_str()])
            .args(["--journal".as_ref(), self.directory.join("hub.db").as_os_str()])
            .arg("--")
            .args([own.as_os_str(), "agent".as_ref(), self.files.agents().as_os_str()])
            .current_dir(&self.directory)
            .env("HOME", &self.directory)
            .env("XDG_STATE_HOME", self.directory.join("state"))
            .env("XDG_CONFIG_HOME", self.directory.join("config"))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.map_err(|error| error.to_string())?);
        let mut hub = command.spawn().map_err(|error| format!("the hub does not start: {error}"))?;
        let mut url = String::new();
        if let Some(output) = hub.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut url);
        }
        self.hub = Some(hub);
        if url.is_empty() {
            let error = fs::read_to_string(self.directory.join("hub.err")).unwrap_or_default();
            return Err(format!("the hub does not start: {error}"));
        }
        // Clients read it at any time.
        let new = self.directory.join("url.new");
        let written = fs::write(&new, url.trim()).and_then(|()| fs::rename(&new, self.files.url()));
        written.map_err(|error| error.to_string())
    }

    fn kill_hub(&mut self) {
        if let Some(mut hub) = self.hub.take() {
            let _ = hub.kill();
            let _ = hub.wait();
        }
    }

    fn start_client(&mut self, number: usize) -> Result<Child, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let errors = fs::OpenOptions::new().create(true).append(true).open(self.errors(number));
        let mut command = Command::new(own);
        command
            .args(["client".as_ref(), self.directory.as_os_str()])
            .args([number.to_string(), self.random.below(u64::MAX >> 11).to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors.map_err(|error| error.to_string())?);
        command.spawn().map_err(|error| format!("a client does not start: {error}"))
    }

    /// The processes that agents have written down, and whether each is an agent.
    fn started(&self) -> Vec<(Process, bool)> {
        let events = log::read(&self.files.agents());
        let started = events
            .iter()
            .filter_map(|event| Some((Process::from_json(&event["start"])?, event["idle"].is_null())));
        started.collect()
    }

    fn kill_agent(&mut self) {
        let started = self.started().into_iter();
        let running: Vec<Process> = started
            .filter(|(process, is_agent)| *is_agent && process.is_running())
            .map(|(process, _)| process)
            .collect();
        if let Some(agent) = running.get(self.random.below(running.len() as u64) as usize) {
            agent.kill();
        }
    }

    /// Agents and what they have started end with their hub.
    fn no_orphans(&self) -> Result<(), String> {
        let limit = Instant::now() + ORPHANS;
        loop {
            let left: Vec<u32> = self
                .started()
                .into_iter()
                .filter(|(process, _)| process.is_running())
                .map(|(process, _)| process.id)
                .collect();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > limit {
                return Err(format!("processes are left behind: {left:?}"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Ends everything, also after a failure.
    fn end(&mut self) {
        self.kill_hub();
        for client in &mut self.clients {
            let _ = client.kill();
            let _ = client.wait();
        }
        for (process, _) in self.started() {
            process.kill();
        }
    }
}
