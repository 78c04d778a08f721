//! The surroundings of an attack: a home, a project, secrets and the program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// No attack takes as long; one that does hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Threads of one group. Most of the time they wait for processes.
const THREADS: usize = 3;
/// The bound on the memory of the program with a hostile peer.
pub(crate) const MEMORY: u64 = 64 << 20;
/// Stands in every file that the program must not show to a peer.
pub(crate) const SECRET: &str = "SECRET-7f3a9c51d2";
/// The user's API key. The program must keep it from files, commands and servers.
pub(crate) const KEY: &str = "sk-attack-Zm9vYmFyYmF6cXV4MTIzNDU2";

/// All attacks of a run.
pub(crate) struct Suite {
    /// The program that is attacked.
    pub(crate) program: PathBuf,
    /// This program, which plays the peers.
    pub(crate) this: PathBuf,
    /// The private directory of the run.
    pub(crate) root: PathBuf,
    keep: bool,
    next: AtomicUsize,
    /// See `backends.rs`.
    pub(crate) backends: OnceLock<Vec<&'static str>>,
}

impl Suite {
    pub(crate) fn new(program: Option<PathBuf>, keep: bool) -> Result<Suite, String> {
        let this = std::env::current_exe().map_err(|error| error.to_string())?;
        let program = program.unwrap_or_else(|| this.with_file_name("attache"));
        if !program.is_file() {
            return Err(format!("no program at {}; build it: cargo build -p attache-cli", program.display()));
        }
        let program = program.canonicalize().map_err(|error| error.to_string())?;
        // Not below /tmp: a sandbox has its own, and would hide what an attack looks for.
        let target = this.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let root = target.join("tmp").join(format!("attacks-{}", std::process::id()));
        fs::create_dir_all(target.join("tmp")).map_err(|error| format!("{}: {error}", target.display()))?;
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o755).create(&root).map_err(|error| format!("{}: {error}", root.display()))?;
        let root = root.canonicalize().map_err(|error| error.to_string())?;
        Ok(Suite { program, this, root, keep, next: AtomicUsize::new(0), backends: OnceLock::new() })
    }

    /// A number that no other attack of this run has.
    pub(crate) fn number(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Applies a function to all items on a few threads and gives the results in their order.
    pub(crate) fn parallel<T: Sync, R: Send>(&self, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
        thread::scope(|scope| {
            for _ in 0..THREADS.min(items.len()) {
                scope.spawn(|| {
                    while let Some((at, item)) = {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        items.get(at).map(|item| (at, item))
                    } {
                        let result = work(item);
                        results.lock().unwrap()[at] = Some(result);
                    }
                });
            }
        });
        results.into_inner().unwrap().into_iter().flatten().collect()
    }

    /// New surroundings.
    pub(crate) fn world(&self) -> World<'_> {
        let number = self.number();
        World::new(self, self.root.join(format!("w{number}")))
    }
}

impl Drop for Suite {
    fn drop(&mut self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

/// A home with secrets, and a project in which the program runs.
pub(crate) struct World<'a> {
    pub(crate) suite: &'a Suite,
    pub(crate) root: PathBuf,
    /// The project, a repository.
    pub(crate) dir: PathBuf,
    env: BTreeMap<String, OsString>,
}

impl<'a> World<'a> {
    pub(crate) fn new(suite: &'a Suite, root: PathBuf) -> World<'a> {
        let dir = root.join("project");
        for made in
            ["project/.git/hooks", "project/src", "home/.ssh", "home/.config", "tmp", "run", "outside"]
        {
            fs::create_dir_all(root.join(made)).unwrap();
        }
        fs::set_permissions(root.join("run"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::set_permissions(root.join("home"), fs::Permissions::from_mode(0o700)).unwrap();
        let world = World { suite, dir, env: BTreeMap::new(), root };
        fs::write(world.dir.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(world.dir.join(".git/config"), "[core]\n\trepositoryformatversion = 0\n").unwrap();
        for made in ["project/.git/objects", "project/.git/refs/heads"] {
            fs::create_dir_all(world.root.join(made)).unwrap();
        }
        world.write("src/main.rs", "fn main() {}\n");
        world.write("README.md", "# A project\n");
        fs::write(world.home().join(".ssh/id_rsa"), format!("{SECRET}\n")).unwrap();
        fs::write(world.outside("secret.txt"), format!("{SECRET}\n")).unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        world
            .with("PATH", path)
            .with("LANG", "C.UTF-8")
            .with("OPENAI_API_KEY", KEY)
            // Nothing is looked for on other ports of this machine.
            .with("OLLAMA_HOST", "http://127.0.0.1:1")
            .with("ATTACHE_TTL", "20")
            .with("ATTACHE_CANCEL_TIMEOUT", "5")
            .with_dir("HOME", "home")
            .with_dir("TMPDIR", "tmp")
            .with_dir("XDG_RUNTIME_DIR", "run")
    }

    /// Sets a variable of the program.
    pub(crate) fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.insert(name.to_owned(), value.into());
    }

    fn with_dir(self, name: &str, dir: &str) -> Self {
        let path = self.root.join(dir);
        self.with(name, path)
    }

    pub(crate) fn env(&self) -> &BTreeMap<String, OsString> {
        &self.env
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// A path beside the project.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.root.join("outside").join(name)
    }

    /// A path in the project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).unwrap_or_default()
    }

    /// Writes an executable file.
    pub(crate) fn script(&self, path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Adds settings of the user.
    pub(crate) fn settings(&self, text: &str) {
        let file = self.home().join(".config/attache/config.toml");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(file, text).unwrap();
    }

    /// The program with these arguments.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.suite.program);
        command.args(args).current_dir(&self.dir).env_clear().envs(&self.env);
        command
    }

    /// Runs the program without input to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        self.run_for(args, PATIENCE)
    }

    pub(crate) fn run_for(&self, args: &[&str], patience: Duration) -> Run {
        let mut command = self.command(args);
        finish(command.stdin(Stdio::null()), None, patience)
    }

    /// Runs the program with this text as its input.
    pub(crate) fn pipe(&self, args: &[&str], input: &str) -> Run {
        let mut command = self.command(args);
        finish(command.stdin(Stdio::piped()), Some(input), PATIENCE)
    }

    /// Runs a shell command as the user, outside of the program.
    pub(crate) fn shell(&self, line: &str) -> Run {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(&self.dir).env_clear().envs(&self.env);
        finish(command.stdin(Stdio::null()), None, PATIENCE)
    }

    /// The audit log of the program.
    pub(crate) fn audit(&self) -> String {
        fs::read_to_string(self.home().join(".local/state/attache/audit.jsonl")).unwrap_or_default()
    }

    /// Files below the home, the runtime directory and the temporary directory that contain a text.
    pub(crate) fn files_with(&self, text: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for dir in ["home", "run", "tmp"] {
            files_with(&self.root.join(dir), text, &mut found);
        }
        found
    }
}

fn files_with(dir: &Path, text: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() {
            files_with(&path, text, found);
        } else if kind.is_file()
            && fs::read(&path)
                .is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
        {
            found.push(path);
        }
    }
}

impl Drop for World<'_> {
    fn drop(&mut self) {
        // Processes of sessions end with their commands.
        let sessions = self.home().join(".local/state/attache/sessions");
        for entry in fs::read_dir(sessions).into_iter().flatten().flatten() {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            let record: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            if let Some(pid) = record.get("pid").and_then(serde_json::Value::as_u64)
                && self.is_own_process(pid)
            {
                let _ = Command::new("kill").arg(pid.to_string()).stderr(Stdio::null()).status();
                wait_until(Duration::from_secs(10), || !Path::new(&format!("/proc/{pid}")).exists());
            }
        }
    }
}

impl World<'_> {
    /// Whether a process of the program works with this home.
    fn is_own_process(&self, pid: u64) -> bool {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let home = format!("HOME={}", self.home().display());
        environ.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    }
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Run {
    /// `None` if it was ended by a signal.
    pub(crate) code: Option<i32>,
    /// Whether it had to be killed.
    pub(crate) hung: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// The most memory that it had, in bytes.
    pub(crate) memory: u64,
}

impl Run {
    pub(crate) fn output(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// The end of the output, for a report.
    pub(crate) fn tail(&self) -> String {
        let text = format!("exit code {:?}: {}", self.code, self.output().trim());
        let from = text.len().saturating_sub(600);
        let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text[from..].to_owned()
    }

    /// A crash, a hang or too much memory, if there was one.
    pub(crate) fn misbehaved(&self) -> Option<String> {
        self.crashed().or_else(|| (self.memory > MEMORY).then(|| format!("it used {} MB", self.memory >> 20)))
    }

    /// A crash or a hang, if there was one.
    pub(crate) fn crashed(&self) -> Option<String> {
        if self.hung {
            return Some(format!("it hangs: {}", self.tail()));
        }
        if self.code.is_none() || self.code == Some(101) || self.stderr.contains("panicked at") {
            return Some(format!("it crashed: {}", self.tail()));
        }
        None
    }
}

fn collect(stream: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stream.map(|stream| stream.take(64 << 20).read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Runs a command to its end; one that hangs is killed.
pub(crate) fn finish(command: &mut Command, input: Option<&str>, patience: Duration) -> Run {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (stdout, stderr) = (collect(child.stdout.take()), collect(child.stderr.take()));
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input.map(str::to_owned)) {
        thread::spawn(move || stdin.write_all(input.as_bytes()));
    }
    let (code, hung, memory) = watch(&mut child, patience);
    Run { code, hung, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap(), memory }
}

/// Waits for the end of a process and gives its exit code, whether it hung, and the most memory
/// that it had.
pub(crate) fn watch(child: &mut Child, patience: Duration) -> (Option<i32>, bool, u64) {
    let start = Instant::now();
    let mut memory = 0;
    loop {
        memory = memory.max(high_water(child.id()));
        if let Some(status) = child.try_wait().unwrap() {
            return (status.code(), false, memory);
        }
        if start.elapsed() > patience {
            let _ = child.kill();
            let _ = child.wait();
            return (None, true, memory);
        }
        // Polling, because the high-water mark of a process is gone with it.
        thread::park_timeout(Duration::from_millis(3));
    }
}

/// The most memory that a process had, in bytes, without the pages of files that it has now. The
/// system decides how much of a program's file it maps, and that of a debug build is large.
pub(crate) fn high_water(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.unwrap_or(0) << 10
    };
    bytes("VmHWM:").saturating_sub(bytes("RssFile:"))
}

/// Waits until a condition holds. Returns whether it did in time.
pub(crate) fn wait_until(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if condition() {
            return true;
        }
        if start.elapsed() > patience {
            return false;
        }
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Processes with a text in their command line.
pub(crate) fn processes_with(text: &str) -> Vec<u32> {
    let pids =
        fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let own = std::process::id();
    let has = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        *pid != own && String::from_utf8_lossy(&line).contains(text)
    };
    pids.filter(has).collect()
}

/// Says that a file exists which must not, if it does.
pub(crate) fn created(path: &Path) -> Option<String> {
    path.symlink_metadata().is_ok().then(|| format!("{} was created", path.display()))
}

/// Says that a file has another text than it had, if it does.
pub(crate) fn changed(path: &Path, before: &str) -> Option<String> {
    let now = fs::read_to_string(path).ok();
    (now.as_deref() != Some(before)).then(|| match now {
        Some(now) => {
            format!("{} was changed to {:?}", path.display(), now.chars().take(200).collect::<String>())
        }
        None => format!("{} is gone", path.display()),
    })
}

/// Says where a text appears that must not, if it does.
pub(crate) fn leaked(what: &str, text: &str, secret: &str) -> Option<String> {
    let at = text.find(secret)?;
    let from = (at.saturating_sub(80)..=at).find(|at| text.is_char_boundary(*at)).unwrap_or(at);
    Some(format!("{what} contains the secret: …{}", text[from..].chars().take(160).collect::<String>()))
}
