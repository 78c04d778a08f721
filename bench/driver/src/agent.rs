//! The process under test, and the lines it is sent.

use crate::line::{Head, States, text_member};
use crate::net::{Halves, Transport};
use bench_probe::{Report, proc};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How to start the agent, the version that it is asked for, and how long a whole measurement may
/// take.
pub struct Subject {
    pub command: Vec<String>,
    /// Standard streams, or a server that prints its port.
    pub transport: Transport,
    pub protocol: u8,
    pub timeout: Duration,
}

pub struct Agent {
    child: Child,
    stdin: Option<Box<dyn Write + Send>>,
    stdout: BufReader<Box<dyn Read + Send>>,
    /// The port of a server, which does not end with a connection.
    port: u16,
    /// The line received last.
    pub line: Vec<u8>,
    next_id: u64,
    protocol: u8,
    states: States,
    /// Dropping it calls the watchdog off.
    _alive: mpsc::Sender<()>,
}

impl Subject {
    /// Starts the process; nothing has been said yet.
    pub fn start(&self) -> io::Result<Agent> {
        let verbose = std::env::var_os("BENCH_STDERR").is_some();
        let mut command = Command::new(&self.command[0]);
        if self.transport.is_secure() {
            command.env("BENCH_TLS", "self");
        }
        let mut child = command
            .args(&self.command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if verbose { Stdio::inherit() } else { Stdio::null() })
            .spawn()?;
        let pipe = child.stdout.take().ok_or_else(|| io::Error::other("the agent has no stdout"))?;
        let alive = watchdog(child.id(), self.timeout);
        let (port, (stdin, stdout)): (u16, Halves) = match self.transport {
            Transport::Stdio => {
                let stdin = child.stdin.take().ok_or_else(|| io::Error::other("the agent has no stdin"))?;
                (0, (Box::new(stdin), Box::new(pipe)))
            }
            transport => {
                let port = printed_port(pipe)?;
                (port, transport.open(port)?)
            }
        };
        let stdin = Some(stdin);
        let stdout = BufReader::with_capacity(256 << 10, stdout);
        Ok(Agent {
            child,
            stdin,
            stdout,
            port,
            line: Vec::new(),
            next_id: 1,
            protocol: self.protocol,
            states: States::default(),
            _alive: alive,
        })
    }

    /// Starts the process and shakes hands.
    pub fn initialized(&self) -> io::Result<Agent> {
        let mut agent = self.start()?;
        agent.initialize()?;
        Ok(agent)
    }
}

/// The port that a server prints.
fn printed_port(stdout: ChildStdout) -> io::Result<u16> {
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    line.trim().parse().map_err(|_| io::Error::other("the server did not print its port"))
}

/// A measurement that hangs ends with an error instead of holding up everything behind it.
fn watchdog(pid: u32, timeout: Duration) -> mpsc::Sender<()> {
    let (alive, ended) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if ended.recv_timeout(timeout) == Err(mpsc::RecvTimeoutError::Timeout) {
            let peak = proc::peak(pid) / 1024;
            proc::kill(pid);
            let why = format!("no end after {} s (peak {peak} MiB)", timeout.as_secs());
            println!("{}", Report::failure("timeout", &why));
            std::process::exit(3);
        }
    });
    alive
}

impl Agent {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The port of a server.
    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(bytes)
    }

    /// Reads the next line into `self.line`.
    pub fn receive(&mut self) -> io::Result<()> {
        self.line.clear();
        match self.stdout.read_until(b'\n', &mut self.line)? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the agent closed its stdout")),
            _ => Ok(()),
        }
    }

    /// Is part of another line already here?
    pub fn has_more(&self) -> bool {
        !self.stdout.buffer().is_empty()
    }

    /// Reads until the answer to `id`; everything else is dropped.
    pub fn answer(&mut self, id: u64) -> io::Result<()> {
        let id = id.to_string();
        loop {
            self.receive()?;
            let head = Head::of(&self.line);
            if head.answers(id.as_bytes()) {
                return if head.is_error { Err(self.refused()) } else { Ok(()) };
            }
        }
    }

    /// The line at hand, as an error.
    pub fn refused(&self) -> io::Error {
        let text = String::from_utf8_lossy(&self.line[..self.line.len().min(300)]);
        io::Error::other(format!("the agent answered {}", text.trim()))
    }

    pub fn initialize(&mut self) -> io::Result<()> {
        let id = self.take_id();
        let message = if self.protocol == 2 { initialize_v2(id) } else { initialize(id) };
        self.send(message.as_bytes())?;
        self.answer(id)?;
        let version = format!("\"protocolVersion\":{}", self.protocol);
        match self.line.windows(version.len()).any(|part| part == version.as_bytes()) {
            true => Ok(()),
            // Some peers write blanks; version 2 is only asked of those that do not.
            false if self.protocol == 1 => Ok(()),
            false => Err(self.refused()),
        }
    }

    /// Opens a session and returns its id.
    pub fn session(&mut self) -> io::Result<String> {
        let id = self.take_id();
        self.send(new_session(id).as_bytes())?;
        self.answer(id)?;
        let name = text_member(&self.line, "sessionId").ok_or_else(|| self.refused())?;
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    /// Sends a prompt and returns what its end is known by.
    pub fn prompt(&mut self, session: &str, text: &str) -> io::Result<Prompted> {
        let id = self.take_id();
        self.send(prompt(id, session, text).as_bytes())?;
        Ok(Prompted { id: id.to_string(), answered: false, idle: self.protocol == 1 })
    }

    /// Plays a turn in which nothing matters but its end.
    pub fn turn(&mut self, session: &str, text: &str) -> io::Result<()> {
        let mut prompted = self.prompt(session, text)?;
        loop {
            self.receive()?;
            if prompted.ends(self)? {
                return Ok(());
            }
        }
    }

    /// Adds what the process holds at this moment.
    pub fn memory(&self, report: Report) -> Report {
        report
            .number("rss_kb", proc::rss(self.pid()) as usize)
            .number("hwm_kb", proc::peak(self.pid()) as usize)
    }
}

/// A prompt that was sent. Its turn ends with the answer; in version 2 also with the state idle.
pub struct Prompted {
    id: String,
    answered: bool,
    idle: bool,
}

impl Prompted {
    /// Takes the line at hand. Is the turn over?
    pub fn ends(&mut self, agent: &mut Agent) -> io::Result<bool> {
        if !self.idle && agent.states.is_update(&agent.line) {
            self.idle = agent.states.is_idle(&agent.line);
            return Ok(self.answered && self.idle);
        }
        let head = Head::of(&agent.line);
        if head.answers(self.id.as_bytes()) {
            if head.is_error {
                return Err(agent.refused());
            }
            self.answered = true;
        }
        Ok(self.answered && self.idle)
    }
}

/// Closing stdin is the polite end; after three seconds it is no longer asked.
impl Drop for Agent {
    fn drop(&mut self) {
        self.stdin.take();
        if self.port > 0 {
            let _ = self.child.kill();
        }
        let patience = Instant::now() + Duration::from_secs(3);
        while Instant::now() < patience {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn initialize(id: u64) -> String {
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":1,"#,
            r#""clientCapabilities":{{"fs":{{"readTextFile":true,"writeTextFile":true}},"terminal":false}},"#,
            r#""clientInfo":{{"name":"bench-driver","version":"0.1.0"}}}}}}"#,
            "\n"
        ),
        id = id
    )
}

fn initialize_v2(id: u64) -> String {
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":2,"#,
            r#""capabilities":{{}},"info":{{"name":"bench-driver","version":"0.1.0"}}}}}}"#,
            "\n"
        ),
        id = id
    )
}

pub fn new_session(id: u64) -> String {
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"session/new","params":{{"cwd":"/tmp","mcpServers":[]}}}}"#,
            "\n"
        ),
        id = id
    )
}

pub fn prompt(id: u64, session: &str, text: &str) -> String {
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"session/prompt","params":{{"sessionId":"{session}","#,
            r#""prompt":[{{"type":"text","text":"{text}"}}]}}}}"#,
            "\n"
        ),
        id = id,
        session = session,
        text = text
    )
}
