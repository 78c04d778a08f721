//! A home of its own, a directory, and the program in it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

/// Nothing here takes as long; what does, hangs.
const PATIENCE: Duration = Duration::from_secs(60);

static NEXT: AtomicUsize = AtomicUsize::new(0);

pub(crate) struct World {
    root: PathBuf,
    /// Where the program runs.
    pub(crate) dir: PathBuf,
    env: Vec<(String, String)>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Checks the exit code and gives stdout.
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Run {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub(crate) fn ok(self) -> String {
        self.code(0).stdout
    }

    /// The lines of stdout as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Vec<Value> {
        let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.stdout.lines().map(read).collect()
    }
}

impl World {
    pub(crate) fn new() -> World {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("attache-it-{}-{number}", std::process::id()));
        let dir = root.join("work");
        fs::create_dir_all(&dir).unwrap();
        // The search for sessions and settings ends here.
        fs::create_dir(dir.join(".git")).unwrap();
        let root = root.canonicalize().unwrap();
        World { dir: root.join("work"), root, env: Vec::new() }
    }

    /// Sets a variable for all runs.
    pub(crate) fn env(mut self, name: &str, value: &str) -> World {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).unwrap()
    }

    /// Makes an agent the default one: `[agents.scripted]`, which does what the script says.
    pub(crate) fn agent(self, script: &str) -> World {
        self.named_agent("scripted", script);
        self.env("ATTACHE_AGENT", "scripted")
    }

    /// Adds an agent to the settings.
    pub(crate) fn named_agent(&self, name: &str, script: &str) {
        let path = self.root.join(format!("{name}.script"));
        fs::write(&path, script).unwrap();
        fs::create_dir_all(self.home()).unwrap();
        let file = self.home().join("config.toml");
        let mut text = fs::read_to_string(&file).unwrap_or_default();
        text.push_str(&format!("[agents.{name}]\nargv = [{:?}, {path:?}]\n", test_agent()));
        fs::write(file, text).unwrap();
    }

    /// Adds lines in front of the settings.
    pub(crate) fn settings(&self, lines: &str) {
        let file = self.home().join("config.toml");
        fs::create_dir_all(self.home()).unwrap();
        let text = fs::read_to_string(&file).unwrap_or_default();
        fs::write(file, format!("{lines}\n{text}")).unwrap();
    }

    /// What the default agent has received, line by line.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.root.join("scripted.log")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The methods that the default agent has received.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.log().iter().filter_map(|line| line.get("method")?.as_str().map(str::to_owned)).collect()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_attache"));
        command
            .args(args)
            .current_dir(&self.dir)
            .env("ATTACHE_HOME", self.home())
            // No process stays for long if a test fails.
            .env("ATTACHE_TTL", "20")
            .env("ATTACHE_CANCEL_TIMEOUT", "5")
            .env_remove("NO_COLOR")
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the program without input.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        finish(start(self.command(args).stdin(Stdio::null())), None)
    }

    /// Runs the program with this on stdin.
    pub(crate) fn pipe(&self, args: &[&str], input: &str) -> Run {
        finish(start(self.command(args).stdin(Stdio::piped())), Some(input.to_owned()))
    }

    /// Starts the program; it can be watched and ended.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::of(start(self.command(args).stdin(Stdio::null())))
    }

    /// Starts the program with an input that [`Running::send`] writes.
    pub(crate) fn start_piped(&self, args: &[&str]) -> Running {
        Running::of(start(self.command(args).stdin(Stdio::piped())))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Owners that are still there are asked to end.
        let records = fs::read_dir(self.home().join("state/sessions")).into_iter().flatten().flatten();
        for record in
            records.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "json"))
        {
            let Ok(text) = fs::read_to_string(&record) else { continue };
            let Ok(value) = serde_json::from_str::<Value>(&text) else { continue };
            if let Some(pid) = value.get("pid").and_then(Value::as_u64) {
                let _ = Command::new("kill").arg(pid.to_string()).stderr(Stdio::null()).status();
                // It still writes on its way out.
                let process = PathBuf::from(format!("/proc/{pid}"));
                let start = std::time::Instant::now();
                while process.exists() && start.elapsed() < Duration::from_secs(10) {
                    thread::yield_now();
                }
            }
        }
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// The scripted agent.
pub(crate) fn test_agent() -> PathBuf {
    let agent = Path::new(env!("CARGO_BIN_EXE_attache")).parent().unwrap().join("examples/test_agent");
    assert!(agent.exists(), "build it first: cargo build -p attache-cli --example test_agent");
    agent
}

fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn collect(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn finish(mut child: Child, input: Option<String>) -> Run {
    let stdout = collect(child.stdout.take().unwrap());
    let stderr = collect(child.stderr.take().unwrap());
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        thread::spawn(move || stdin.write_all(input.as_bytes()));
    }
    let status = wait(&mut child);
    Run { code: status.code(), stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

/// Waits for the end; kills what hangs.
fn wait(child: &mut Child) -> ExitStatus {
    let pid = child.id();
    let (done, over) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        if over.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    });
    let status = child.wait().unwrap();
    let _ = done.send(());
    watchdog.join().unwrap();
    status
}

/// The program while it runs.
pub(crate) struct Running {
    child: Child,
    lines: Lines,
    stderr: JoinHandle<String>,
}

impl Running {
    /// Starts a program with the input that the command has.
    pub(crate) fn start(command: &mut Command) -> Running {
        Running::of(start(command))
    }

    fn of(mut child: Child) -> Running {
        let lines = Lines::of(child.stdout.take().unwrap());
        let stderr = collect(child.stderr.take().unwrap());
        Running { child, lines, stderr }
    }

    /// Writes a line to stdin.
    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Closes stdin and waits for the end.
    pub(crate) fn close(mut self) -> Run {
        self.child.stdin = None;
        self.end()
    }

    /// Reads stdout until a line holds `text`.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) {
        self.lines.until(text);
    }

    /// Returns the next line of stdout.
    #[track_caller]
    pub(crate) fn next(&mut self) -> String {
        self.lines.next()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    pub(crate) fn end(mut self) -> Run {
        let status = wait(&mut self.child);
        Run { code: status.code(), stdout: self.lines.rest(), stderr: self.stderr.join().unwrap() }
    }
}

pub(crate) struct Lines {
    lines: mpsc::Receiver<String>,
    seen: String,
}

impl Lines {
    pub(crate) fn of(stream: impl Read + Send + 'static) -> Lines {
        let (send, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Lines { lines, seen: String::new() }
    }

    /// The next line.
    #[track_caller]
    pub(crate) fn next(&mut self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("a line")
    }

    #[track_caller]
    fn until(&mut self, text: &str) {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("`{text}` never came; there was: {}", self.seen));
            self.seen.push_str(&line);
            self.seen.push('\n');
            if line.contains(text) {
                return;
            }
        }
    }

    fn rest(mut self) -> String {
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.seen.push_str(&line);
            self.seen.push('\n');
        }
        self.seen
    }
}

/// Waits until something is so. There is nothing to wait on but the file system and the process
/// table.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is() {
        assert!(start.elapsed() < PATIENCE, "{what} never came true");
        thread::yield_now();
    }
}

/// Whether a process with this in its command line is there.
pub(crate) fn is_running(text: &str) -> bool {
    process_with(text).is_some()
}

/// The id of a process with this in its command line. Of a process and its children with the same
/// line, it is the parent.
pub(crate) fn process_with(text: &str) -> Option<String> {
    let ids =
        fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let matching: Vec<String> = ids
        .filter(|id| {
            let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").contains(text)
        })
        .collect();
    let parent = |id: &String| {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        status.lines().find_map(|line| line.strip_prefix("PPid:").map(|id| id.trim().to_owned()))
    };
    matching.iter().find(|id| parent(id).is_none_or(|parent| !matching.contains(&parent))).cloned()
}
