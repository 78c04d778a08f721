//! `cargo xtask bench-program`: the program `attache` beside npm's `acpx`, on the same agent, in
//! one run.
//!
//! The agent is this program itself, called in a hidden way: it answers what must be answered and
//! streams as many updates as the prompt asks for. At the first byte that it receives it stops and
//! reports, so that what the client has used by then can be read.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::interop::install;

const USAGE: &str = "usage: cargo xtask bench-program [OPTIONS]
  --reps N      repetitions, interleaved between the programs (5)
  --no-fail     a missed target does not make the exit code 1";

/// The version that is compared with. It needs node 22.
const ACPX: &str = "acpx@0.19.1";
/// Where the agent reports its first byte.
const SOCKET: &str = "XTASK_BENCH_SOCKET";
/// How much each update says.
const LENGTH: usize = 32;
const FEW: usize = 2_000;
const MANY: usize = 200_000;
const IDLE: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(300);

/// Runs the benchmark.
///
/// # Errors
/// When an argument is unknown, a program cannot be built or started, or a target is missed.
pub fn run(args: &[String]) -> Result<(), String> {
    let (mut reps, mut no_fail) = (5, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "__agent" => return agent().map_err(|error| error.to_string()),
            "--no-fail" => no_fail = true,
            "--reps" => {
                let value = args.next().and_then(|value| value.parse().ok());
                reps = value.ok_or_else(|| format!("--reps wants a number\n{USAGE}"))?;
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    if !cfg!(target_os = "linux") {
        return Err("the measurements read /proc, which only Linux has".to_owned());
    }
    let place = BenchDirs::new()?;
    let ours = Program { name: "attache", command: vec![release_program()?] };
    let programs = [ours, acpx(&place)?];
    let mut figures = [Figures::default(), Figures::default()];
    for rep in 1..=reps {
        for (program, figures) in programs.iter().zip(&mut figures) {
            eprintln!("[{rep}/{reps}] {}", program.name);
            start(program, &place, figures)?;
            for (count, suffix) in [(FEW, "few"), (MANY, "many")] {
                stream(program, &place, count, suffix, figures)?;
            }
        }
    }
    eprintln!("an idle chat");
    if let Some(used) = idle(&programs[0], &place)? {
        figures[0].add("idle", used);
    }
    let missed = print(&figures);
    if missed.is_empty() || no_fail { Ok(()) } else { Err(format!("missed: {}", missed.join(", "))) }
}

/// Where things are: what npm installs is kept outside the repository, homes and sockets go away.
pub(crate) struct BenchDirs {
    cache: PathBuf,
    pub(crate) scratch: PathBuf,
    /// The command line of the agent.
    agent: String,
}

impl BenchDirs {
    pub(crate) fn new() -> Result<BenchDirs, String> {
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
        let cache = cache.join("attache/bench");
        // Not in a directory that other users share.
        let scratch = cache.join(format!("run-{}", std::process::id()));
        fs::create_dir_all(scratch.join("work"))
            .map_err(|error| format!("{}: {error}", scratch.display()))?;
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let agent = format!("{} bench-program __agent", own.display());
        Ok(BenchDirs { cache, scratch, agent })
    }
}

impl Drop for BenchDirs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

struct Program {
    name: &'static str,
    command: Vec<String>,
}

impl Program {
    /// Sends one prompt to the agent, in a home of its own.
    fn exec(&self, place: &BenchDirs, prompt: &str) -> Command {
        let (program, args) =
            self.command.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
        let mut command = Command::new(program);
        command.args(args).args(["--agent", &place.agent, "exec", prompt]);
        self.settle(&mut command, place);
        command
    }

    fn settle(&self, command: &mut Command, place: &BenchDirs) {
        command
            .current_dir(place.scratch.join("work"))
            .env("HOME", place.scratch.join(self.name))
            .env("ATTACHE_HOME", place.scratch.join(self.name))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
    }
}

/// Builds our program, optimized, and returns its path.
pub(crate) fn release_program() -> Result<String, String> {
    eprintln!("build attache, optimized");
    let [program] = install::programs(true, ["attache-cli"], ["attache"])?;
    Ok(program)
}

/// Installs acpx, and a node that is new enough for it if there is none.
fn acpx(place: &BenchDirs) -> Result<Program, String> {
    let dir = place.cache.join("acpx");
    let stamp = dir.join(".installed");
    if fs::read_to_string(&stamp).is_ok_and(|before| before == ACPX) {
        return Ok(found(&dir));
    }
    eprintln!("install {ACPX}");
    fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(&dir).arg(ACPX);
    let node = Command::new("node").arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    let node = String::from_utf8_lossy(&node)
        .trim_start_matches('v')
        .split('.')
        .next()
        .and_then(|it| it.parse().ok());
    if node.is_none_or(|major: u32| major < 22) {
        npm.arg("node@22");
    }
    let done = npm.stdout(Stdio::null()).status().map_err(|error| format!("npm does not start: {error}"))?;
    if !done.success() {
        return Err(format!("npm cannot install {ACPX}"));
    }
    fs::write(&stamp, ACPX).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(found(&dir))
}

fn found(dir: &Path) -> Program {
    let own = dir.join("node_modules/node/bin/node");
    let node = if own.exists() { own.display().to_string() } else { "node".to_owned() };
    Program {
        name: "acpx",
        command: vec![node, dir.join("node_modules/acpx/dist/cli.js").display().to_string()],
    }
}

/// What was measured, a value per repetition.
#[derive(Default)]
struct Figures(BTreeMap<String, Vec<f64>>);

impl Figures {
    fn add(&mut self, key: &str, value: f64) {
        self.0.entry(key.to_owned()).or_default().push(value);
    }

    fn median(&self, key: &str) -> Option<f64> {
        median(self.0.get(key)?)
    }
}

pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// CPU time and wall time until the agent has the first byte.
fn start(program: &Program, place: &BenchDirs, figures: &mut Figures) -> Result<(), String> {
    let socket = place.scratch.join("first");
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).map_err(|error| error.to_string())?;
    let begin = Instant::now();
    let mut child = spawn(program.exec(place, "stream 1 8").env(SOCKET, &socket))?;
    let (mut agent, _) = listener.accept().map_err(|error| error.to_string())?;
    let wall = begin.elapsed();
    // The agent waits for our word, so the client has nothing to do but to wait for it.
    let used = cpu(child.id());
    agent.write_all(b"g").map_err(|error| error.to_string())?;
    let mut stdout = child.stdout.take().ok_or("no stdout")?;
    io::copy(&mut stdout, &mut io::sink()).map_err(|error| error.to_string())?;
    finish(program, &mut child)?;
    figures.add("cpu to first byte", used);
    figures.add("wall to first byte", wall.as_secs_f64());
    // Once more without the stop, for the first output.
    let begin = Instant::now();
    let mut child = spawn(&mut program.exec(place, "stream 1 8"))?;
    let mut stdout = child.stdout.take().ok_or("no stdout")?;
    let mut byte = [0];
    stdout.read_exact(&mut byte).map_err(|error| format!("{} printed nothing: {error}", program.name))?;
    figures.add("wall to first output", begin.elapsed().as_secs_f64());
    io::copy(&mut stdout, &mut io::sink()).map_err(|error| error.to_string())?;
    finish(program, &mut child)
}

/// Peak memory and rate while updates stream in.
fn stream(
    program: &Program,
    place: &BenchDirs,
    count: usize,
    suffix: &str,
    figures: &mut Figures,
) -> Result<(), String> {
    let begin = Instant::now();
    let mut child = spawn(&mut program.exec(place, &format!("stream {count} {LENGTH}")))?;
    let peak = Peak::watch(child.id());
    let mut stdout = child.stdout.take().ok_or("no stdout")?;
    let (mut buffer, mut bytes, mut first, mut used) = (vec![0; 1 << 16], 0, None, 0.0);
    loop {
        match stdout.read(&mut buffer).map_err(|error| error.to_string())? {
            0 => break,
            read => bytes += read,
        }
        first.get_or_insert_with(|| begin.elapsed());
        used = f64::max(used, cpu(child.id()));
    }
    let time = begin.elapsed() - first.unwrap_or_default();
    figures.add(&format!("memory {suffix}"), peak.end());
    finish(program, &mut child)?;
    if bytes < count * LENGTH {
        return Err(format!("{} printed {bytes} bytes of {}", program.name, count * LENGTH));
    }
    figures.add(&format!("rate {suffix}"), count as f64 / time.as_secs_f64());
    figures.add(&format!("cpu {suffix}"), used);
    Ok(())
}

/// CPU time of a chat in which nothing happens. Needs `script` for a terminal.
fn idle(program: &Program, place: &BenchDirs) -> Result<Option<f64>, String> {
    // A terminal without a terminal around it has no size.
    let line = format!("stty rows 30 cols 100; exec {} --agent '{}'", program.command.join(" "), place.agent);
    let mut script = Command::new("script");
    script
        .args(["--quiet", "--flush", "--return", "--command", &line, "/dev/null"])
        .env("TERM", "xterm-256color");
    program.settle(&mut script, place);
    let Ok(mut terminal) = script.stdin(Stdio::piped()).spawn() else {
        eprintln!("there is no `script` here to make a terminal: not measured");
        return Ok(None);
    };
    let mut stdout = terminal.stdout.take().ok_or("no stdout")?;
    let (drawn, screen) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = stdout.read(&mut buffer) {
            let _ = drawn.send(String::from_utf8_lossy(&buffer[..read]).into_owned());
        }
    });
    // The session is there when its name is on the screen.
    let (begin, mut seen) = (Instant::now(), String::new());
    while !seen.contains("bench-session") {
        let left = TIMEOUT.saturating_sub(begin.elapsed());
        seen.push_str(&screen.recv_timeout(left).map_err(|_| format!("the chat did not start: {seen}"))?);
    }
    // Until the screen rests.
    while screen.recv_timeout(Duration::from_millis(500)).is_ok() {}
    let chat = child_of(terminal.id()).ok_or("the chat is not among the children of its terminal")?;
    let before = cpu(chat);
    thread::sleep(IDLE);
    let used = cpu(chat) - before;
    let _ = terminal.stdin.take().map(|mut stdin| stdin.write_all(b"\x04"));
    let _ = terminal.kill();
    let _ = terminal.wait();
    Ok(Some(used))
}

/// The process that runs `attache` below another one.
fn child_of(parent: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split_whitespace().find_map(|child| {
        let child: u32 = child.parse().ok()?;
        let name = fs::read_to_string(format!("/proc/{child}/comm")).ok()?;
        if name.trim() == "attache" { Some(child) } else { child_of(child) }
    })
}

fn spawn(command: &mut Command) -> Result<Child, String> {
    command.spawn().map_err(|error| format!("{command:?}: {error}"))
}

fn finish(program: &Program, child: &mut Child) -> Result<(), String> {
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", program.name)) }
}

/// The CPU time of all threads of a process so far, in seconds.
fn cpu(pid: u32) -> f64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return 0.0 };
    let of = |task: io::Result<fs::DirEntry>| {
        let text = fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<f64>().ok()
    };
    tasks.filter_map(of).sum::<f64>() / 1e9
}

/// The most memory that a process has had, looked at until its end.
struct Peak {
    most: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Peak {
    fn watch(pid: u32) -> Peak {
        let (most, over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (seen, done) = (most.clone(), over.clone());
        thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
                let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
                if let Some(kib) = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()) {
                    seen.fetch_max(kib, Ordering::Relaxed);
                }
                thread::sleep(Duration::from_millis(5));
            }
        });
        Peak { most, over }
    }

    /// In MB.
    fn end(self) -> f64 {
        self.over.store(true, Ordering::Relaxed);
        self.most.load(Ordering::Relaxed) as f64 / 1024.0
    }
}

/// Prints the table, and says which targets were missed.
fn print([ours, theirs]: &[Figures; 2]) -> Vec<String> {
    let ms = |value: f64| format!("{:.1} ms", value * 1e3);
    let mb = |value: f64| format!("{value:.1} MB");
    let rate = |value: f64| format!("{:.0}k/s", value / 1e3);
    let grown = |figures: &Figures| {
        figures.median("memory many").zip(figures.median("memory few")).map(|(many, few)| many - few)
    };
    let mut missed = Vec::new();
    let mut row = |what: &str,
                   values: [Option<f64>; 2],
                   show: &dyn Fn(f64) -> String,
                   more: bool,
                   most: Option<f64>| {
        let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), show);
        let ratio = match values {
            [Some(ours), Some(theirs)] if ours > 0.0 && theirs > 0.0 => {
                format!("{:.1}x", if more { ours / theirs } else { theirs / ours })
            }
            _ => "–".to_owned(),
        };
        let (target, met) = match (most, values[0]) {
            (Some(most), Some(value)) => {
                if value > most {
                    missed.push(what.to_owned());
                }
                (format!("at most {}", show(most)), if value > most { "**no**" } else { "yes" })
            }
            _ => (String::new(), ""),
        };
        println!("| {what} | {} | {} | {ratio} | {target} | {met} |", cell(values[0]), cell(values[1]));
    };
    println!("| figure | attache | acpx | ratio | target | met |\n|---|---:|---:|---:|---|---|");
    let both = |key: &str| [ours.median(key), theirs.median(key)];
    row("own CPU until the agent has the first byte", both("cpu to first byte"), &ms, false, Some(0.010));
    row("time until the agent has the first byte", both("wall to first byte"), &ms, false, None);
    row("time until the first output", both("wall to first output"), &ms, false, None);
    row("peak memory, 2,000 updates", both("memory few"), &mb, false, None);
    row("peak memory, 200,000 updates", both("memory many"), &mb, false, None);
    row("memory that 198,000 more updates take", [grown(ours), grown(theirs)], &mb, false, Some(4.0));
    row("updates, 200,000", both("rate many"), &rate, true, None);
    row("CPU for 200,000 updates", both("cpu many"), &ms, false, None);
    row("CPU of an idle chat in 5 s", [ours.median("idle"), None], &ms, false, Some(0.025));
    missed
}

/// The agent: no more than the prompt asks for.
fn agent() -> io::Result<()> {
    let mut stdin = BufReader::new(io::stdin().lock());
    let mut stdout = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    if let Some(socket) = std::env::var_os(SOCKET) {
        stdin.fill_buf()?;
        let mut boss = UnixStream::connect(socket)?;
        boss.read_exact(&mut [0])?;
    }
    let mut line = String::new();
    loop {
        line.clear();
        if stdin.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else { continue };
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({ "protocolVersion": 1, "agentCapabilities": {} }),
            "session/new" => json!({ "sessionId": "bench-session" }),
            "session/prompt" => {
                let prompt = message["params"]["prompt"][0]["text"].as_str().unwrap_or_default().to_owned();
                let mut numbers = prompt.split_whitespace().filter_map(|word| word.parse::<usize>().ok());
                let (count, length) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(1));
                let update = json!({
                    "jsonrpc": "2.0", "method": "session/update",
                    "params": { "sessionId": "bench-session", "update": {
                        "sessionUpdate": "agent_message_chunk",
                        "content": { "type": "text", "text": format!("{}\n", "x".repeat(length.saturating_sub(1))) },
                    } },
                });
                let update = format!("{update}\n");
                for _ in 0..count {
                    stdout.write_all(update.as_bytes())?;
                }
                json!({ "stopReason": "end_turn" })
            }
            _ => json!({}),
        };
        writeln!(stdout, "{}", json!({ "jsonrpc": "2.0", "id": id, "result": result }))?;
        stdout.flush()?;
    }
}
