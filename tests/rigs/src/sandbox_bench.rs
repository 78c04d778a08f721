//! `cargo xtask bench-sandbox`: what the sandbox adds to a command that the agent runs without a
//! question.
//!
//! Two figures. *The process*: `sh -c ls` started directly, and by the command line of the sandbox.
//! *The tool call*: the program runs its own agent on a scripted model, once with few and once with
//! many commands; the difference, divided by the number of commands in between, is the cost of one
//! with everything that belongs to it: the model's call, the judgement, the terminal, the output.
//! Without a sandbox the agent also has to record the project for `/undo`, because any command may
//! change it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::program_bench::{BenchDirs, median, release_program};

const USAGE: &str = "usage: cargo xtask bench-sandbox [OPTIONS]
  --reps N      repetitions, interleaved between the ways (5)
  --no-fail     a missed target does not make the exit code 1";

const FEW: usize = 5;
const MANY: usize = 85;
/// What a sandbox may add to a command, in milliseconds.
const TARGET: f64 = 15.0;

/// How the commands are run.
struct SandboxKind {
    name: &'static str,
    flags: &'static str,
    backend: Option<&'static str>,
    /// Whether it must be possible here.
    required: bool,
}

const KINDS: &[SandboxKind] = &[
    SandboxKind { name: "no sandbox", flags: " --no-sandbox", backend: None, required: true },
    SandboxKind { name: "default sandbox", flags: "", backend: None, required: true },
    SandboxKind { name: "namespaces", flags: "", backend: Some("namespaces"), required: false },
    SandboxKind { name: "bubblewrap", flags: "", backend: Some("bubblewrap"), required: false },
    SandboxKind { name: "landlock", flags: "", backend: Some("landlock"), required: false },
];

/// Runs the benchmark.
///
/// # Errors
/// When an argument is unknown, a program cannot be built or started, or a target is missed.
pub fn run(args: &[String]) -> Result<(), String> {
    let (mut reps, mut no_fail) = (5, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--no-fail" => no_fail = true,
            "--reps" => {
                let value = args.next().and_then(|value| value.parse().ok()).filter(|reps| *reps > 0);
                reps = value.ok_or_else(|| format!("--reps wants a number\n{USAGE}"))?;
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    if !cfg!(target_os = "linux") {
        return Err("the sandbox that is measured is the one of Linux".to_owned());
    }
    let place = BenchDirs::new()?;
    let program = release_program()?;
    for count in [FEW, MANY] {
        let path = place.scratch.join(format!("{count}.txt"));
        fs::write(&path, script(count)).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let mut started: Vec<Vec<f64>> = KINDS.iter().map(|_| Vec::new()).collect();
    let mut figures: Vec<Vec<f64>> = KINDS.iter().map(|_| Vec::new()).collect();
    let mut missing: Vec<Option<String>> = KINDS.iter().map(|_| None).collect();
    for rep in 1..=reps {
        for (at, kind) in
            KINDS.iter().enumerate().filter(|(at, _)| missing[*at].is_none()).collect::<Vec<_>>()
        {
            eprintln!("[{rep}/{reps}] {}", kind.name);
            let measured = time(&program, &place, kind, FEW)
                .and_then(|few| Ok((few, time(&program, &place, kind, MANY)?)));
            match measured {
                Ok((few, many)) => {
                    figures[at].push((many - few) * 1e3 / (MANY - FEW) as f64);
                    started[at].push(start(&program, &place, kind)?);
                }
                Err(why) if kind.required => return Err(why),
                Err(why) => missing[at] = Some(why),
            }
        }
    }
    println!("\nThe process\n");
    let processes = print(&started, &missing);
    println!("\nThe tool call\n");
    let met = processes? & print(&figures, &missing)?;
    if met || no_fail { Ok(()) } else { Err("missed: the cost of the default sandbox".to_owned()) }
}

/// How long a command takes that is started directly, in milliseconds.
fn start(program: &str, place: &BenchDirs, kind: &SandboxKind) -> Result<f64, String> {
    let work = place.scratch.join("work");
    let begin = Instant::now();
    for _ in 0..MANY {
        let mut command = match kind.flags {
            "" => {
                let mut command = Command::new(program);
                let backend = kind.backend.unwrap_or("namespaces");
                command.arg("__sandbox").arg(format!("--backend={backend}")).arg("--view=only");
                command.arg(format!("--read={}", work.display())).args([
                    "--network=off",
                    "--environment=minimal",
                    "--cpu-seconds=60",
                    "--file-bytes=67108864",
                    "--tmp-bytes=67108864",
                    "--",
                    "/bin/sh",
                ]);
                command
            }
            _ => Command::new("/bin/sh"),
        };
        let output = command.args(["-c", "ls"]).current_dir(&work).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{command:?}: {error}"))?;
        if !output.status.success() || !output.stdout.starts_with(b"canary-file") {
            return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    Ok(begin.elapsed().as_secs_f64() * 1e3 / MANY as f64)
}

/// Prints one table. False if a target is missed.
fn print(figures: &[Vec<f64>], missing: &[Option<String>]) -> Result<bool, String> {
    let plain = figures.first().and_then(|values| median(values)).ok_or("nothing was measured")?;
    println!("| kind | a command | more than without | ratio | target | met |\n|---|---:|---:|---:|---|---|");
    let mut missed = false;
    for ((kind, values), missing) in KINDS.iter().zip(figures).zip(missing) {
        let Some(value) = median(values) else {
            let why = missing.as_deref().and_then(|why| why.lines().next()).unwrap_or("not measured");
            println!("| {} | – | – | – |  | not here: {why} |", kind.name);
            continue;
        };
        let more = value - plain;
        // Bubblewrap and Landlock are what is left where the default does not work.
        let (target, met) = match kind.name {
            "default sandbox" => (format!("at most {TARGET} ms more"), more <= TARGET),
            _ => (String::new(), true),
        };
        missed |= !met;
        let met = if target.is_empty() {
            ""
        } else if met {
            "yes"
        } else {
            "NO"
        };
        println!(
            "| {} | {value:.2} ms | {more:.2} ms | {:.2}x | {target} | {met} |",
            kind.name,
            value / plain
        );
    }
    Ok(!missed)
}

/// A model that runs a command this often, and then says that it has.
fn script(count: usize) -> String {
    let mut script = "name: bench\npace: 0ms\n\n== when \"go\"\n".to_owned();
    for _ in 0..count {
        script.push_str("--\ncall run {\"command\": \"ls\"}\n");
    }
    script.push_str("--\nsay all commands ran\n");
    script
}

/// How long a turn with so many commands takes, in seconds.
fn time(program: &str, place: &BenchDirs, kind: &SandboxKind, count: usize) -> Result<f64, String> {
    let model = place.scratch.join(format!("{count}.txt"));
    let agent = format!("{program} agent --no-store{} --model script:{}", kind.flags, model.display());
    let work: &Path = &place.scratch.join("work");
    fs::write(work.join("canary-file"), "").map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .args(["--approve-all", "--agent", &agent, "exec", "go"])
        .current_dir(work)
        .env("ATTACHE_HOME", place.scratch.join("home"))
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    if let Some(backend) = kind.backend {
        command.env("ATTACHE_SANDBOX_BACKEND", backend);
    }
    let begin = Instant::now();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    let time = begin.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !text.contains("all commands ran") {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}: {}{text}", kind.name, output.status, why));
    }
    // Each of them really listed the directory.
    let listed = text.matches("canary-file").count();
    if listed < count {
        return Err(format!("{}: {listed} of {count} commands ran:\n{text}", kind.name));
    }
    Ok(time)
}
