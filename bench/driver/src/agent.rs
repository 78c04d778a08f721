//! The process under test, and the lines it is sent.

use crate::line::{Head, text_member};
use bench_probe::{Report, proc};
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How to start the agent, and how long a whole measurement may take.
pub struct Subject {
    pub command: Vec<String>,
    pub timeout: Duration,
}

pub struct Agent {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// The line received last.
    pub line: Vec<u8>,
    next_id: u64,
    /// Dropping it calls the watchdog off.
    _alive: mpsc::Sender<()>,
}

impl Subject {
    /// Starts the process; nothing has been said yet.
    pub fn start(&self) -> io::Result<Agent> {
        let verbose = std::env::var_os("BENCH_STDERR").is_some();
        let mut child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if verbose { Stdio::inherit() } else { Stdio::null() })
            .spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().ok_or_else(|| io::Error::other("the agent has no stdout"))?;
        let alive = watchdog(child.id(), self.timeout);
        let stdout = BufReader::with_capacity(256 << 10, stdout);
        Ok(Agent { child, stdin, stdout, line: Vec::new(), next_id: 1, _alive: alive })
    }

    /// Starts the process and shakes hands.
    pub fn initialized(&self) -> io::Result<Agent> {
        let mut agent = self.start()?;
        agent.initialize()?;
        Ok(agent)
    }
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
        self.send(initialize(id).as_bytes())?;
        self.answer(id)
    }

    /// Opens a session and returns its id.
    pub fn session(&mut self) -> io::Result<String> {
        let id = self.take_id();
        self.send(new_session(id).as_bytes())?;
        self.answer(id)?;
        let name = text_member(&self.line, "sessionId").ok_or_else(|| self.refused())?;
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    /// Sends a prompt and returns the id under which it will be answered.
    pub fn prompt(&mut self, session: &str, text: &str) -> io::Result<u64> {
        let id = self.take_id();
        self.send(prompt(id, session, text).as_bytes())?;
        Ok(id)
    }

    /// Adds what the process holds at this moment.
    pub fn memory(&self, report: Report) -> Report {
        report
            .number("rss_kb", proc::rss(self.pid()) as usize)
            .number("hwm_kb", proc::peak(self.pid()) as usize)
    }
}

/// Closing stdin is the polite end; after three seconds it is no longer asked.
impl Drop for Agent {
    fn drop(&mut self) {
        self.stdin.take();
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

fn initialize(id: u64) -> String {
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

pub fn new_session(id: u64) -> String {
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"session/new","params":{{"cwd":"/tmp","mcpServers":[]}}}}"#,
            "\n"
        ),
        id = id
    )
}

fn prompt(id: u64, session: &str, text: &str) -> String {
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
