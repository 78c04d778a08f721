//! One client against one agent: every scenario, the wire between them, and the processes left at
//! the end.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::remote::{Server, Via};
use super::report::{Report, Row};
use super::{Program, home, tap, wire};

/// Long enough for every scenario to run into the time limit that the clients set for one.
const TIME: Duration = Duration::from_secs(120);
/// How long processes may take to go after the client has ended.
const AFTER: Duration = Duration::from_secs(5);
/// The variable by which the processes of a run are found again.
const MARK: &str = "ATTACHE_INTEROP_RUN";

/// A program that has run to its end.
pub(crate) struct Ended {
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: String,
    /// `None` if it had to be stopped.
    pub(crate) code: Option<i32>,
    pub(crate) problems: Vec<String>,
}

/// Runs all scenarios with one pair.
pub(super) fn run(
    client: &Program,
    agent: &Program,
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    play(client, agent, &together()?, &Some, cache, report)
}

/// Runs all scenarios with one pair and a server between them.
pub(super) fn run_via(
    client: &Program,
    agent: &Program,
    via: &Via<'_>,
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    play_via(client, agent, Some(via), &together()?, &Some, cache, report)
}

/// Runs these scenarios with one pair. `tidy` is what is made of a line that the client prints
/// before it is looked at.
pub(super) fn play(
    client: &Program,
    agent: &Program,
    scenarios: &[Value],
    tidy: &dyn Fn(String) -> Option<String>,
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    play_via(client, agent, None, scenarios, tidy, cache, report)
}

fn play_via(
    client: &Program,
    agent: &Program,
    via: Option<&Via<'_>>,
    scenarios: &[Value],
    tidy: &dyn Fn(String) -> Option<String>,
    cache: &Path,
    report: &mut Report,
) -> Result<(), String> {
    Report::start(client.name, agent.name);
    let started = Instant::now();
    let all = self::scenarios("scenarios.json")?;
    let is_played = |id: &Value| scenarios.iter().any(|scenario| scenario["id"] == *id);
    let others = all.iter().map(|scenario| &scenario["id"]).filter(|id| !is_played(id));
    let mut skip: Vec<&str> = others.filter_map(Value::as_str).collect();
    let mut left_out = Vec::new();
    for scenario in scenarios {
        let id = scenario["id"].as_str().unwrap_or_default();
        let sides = [(client.name, "client"), (agent.name, "agent")];
        let lack = sides.iter().find_map(|(name, side)| {
            let lacks = &scenario["lacks"];
            lacks[*name].as_str().or(lacks[format!("{name} {side}")].as_str())
        });
        let over = via.map(|via| format!("{} over {}", client.name, via.transport.word()));
        let lack = lack.or(over.and_then(|over| scenario["lacks"][over].as_str()));
        if let Some(reason) = lack {
            left_out.push(format!("{id}: {reason}"));
            skip.push(id);
        }
    }
    let dir = workspace(cache, &format!("{}-{}", client.name, agent.name).replace([' ', '(', ')'], ""))?;
    let log = dir.join("wire.log");
    let mut command = client.command.clone();
    if !skip.is_empty() {
        command.extend(["--skip".to_owned(), skip.join(",")]);
    }
    command.push("--".to_owned());
    let is_server = via.is_some_and(|via| via.program.is_none());
    let tapped = match is_server {
        true => agent.command.clone(),
        false => tap::command(&log, &agent.command)?,
    };
    let server = via.map(|via| Server::start(via, &tapped, &dir)).transpose()?;
    match &server {
        Some(server) => command.push(server.url.clone()),
        None => command.extend(tapped),
    }
    let mut ended = finish(&command, &dir.join("work"), "")?;
    if let Some(server) = server {
        // The agent ends with its client, before the server does.
        let is_over = || tap::read(&log).ok()?.exit.map(drop);
        if !is_server && within(AFTER, is_over).is_none() {
            ended.problems.push("the agent lives longer than its client".to_owned());
        }
        ended.problems.extend(server.stop());
    }

    let seen: Vec<String> = ended.stdout.iter().cloned().filter_map(tidy).collect();
    let (good, mut bad) = judge(scenarios, &skip, &seen);
    if ended.code != Some(0) {
        bad.push(format!("the client ended with {:?}", ended.code));
    }
    bad.extend(ended.problems);
    // A server is not tapped.
    let exchange = if is_server { Default::default() } else { tap::read(&log)? };
    if !is_server {
        bad.extend(wire::check(&exchange));
    }
    if let Some(code) = exchange.exit.filter(|code| *code != 0) {
        bad.push(format!("the agent ended with code {code}"));
    }
    if !bad.is_empty() {
        let _ = fs::write(dir.join("observed.jsonl"), ended.stdout.join("\n"));
    }
    report.add(Row {
        client: client.name.to_owned(),
        agent: agent.name.to_owned(),
        good,
        messages: exchange.lines.len(),
        bad,
        traces: dir,
        left_out,
        took: started.elapsed(),
    });
    Ok(())
}

/// The result of some scenarios.
pub(super) struct Observed {
    /// How many observations were as expected.
    pub(super) good: usize,
    /// What was wrong.
    pub(super) bad: Vec<String>,
}

/// Runs these scenarios with a client and a server at a URL. `env` is a variable for the client.
pub(super) fn play_only(
    client: &Program,
    ids: &[&str],
    url: &str,
    env: Option<String>,
    dir: &Path,
) -> Result<Observed, String> {
    let all = scenarios("scenarios.json")?;
    let id = |scenario: &Value| scenario["id"].as_str().unwrap_or_default().to_owned();
    let others: Vec<String> = all.iter().map(id).filter(|id| !ids.contains(&id.as_str())).collect();
    let skip: Vec<&str> = others.iter().map(String::as_str).collect();
    let env = env.into_iter().flat_map(|env| ["env".to_owned(), env]);
    let mut command: Vec<String> = env.chain(client.command.iter().cloned()).collect();
    command.extend(["--skip", &skip.join(","), "--", url].map(str::to_owned));
    let ended = finish(&command, &dir.join("work"), "")?;
    let (good, mut bad) = judge(&all, &skip, &ended.stdout);
    bad.extend(ended.problems);
    if !bad.is_empty() {
        let _ = fs::write(dir.join("observed.jsonl"), ended.stdout.join("\n"));
    }
    Ok(Observed { good, bad })
}

/// The scenarios that can be played one after another over one connection.
fn together() -> Result<Vec<Value>, String> {
    let mut scenarios = scenarios("scenarios.json")?;
    scenarios.retain(|scenario| scenario["alone"] != true);
    Ok(scenarios)
}

/// The reason why a scenario is left out, if one of `who` lacks something for it.
pub(super) fn lack(id: &str, who: &[String]) -> Result<Option<String>, String> {
    let scenarios = scenarios("scenarios.json")?;
    let scenario =
        scenarios.iter().find(|scenario| scenario["id"] == id).ok_or(format!("no scenario {id}"))?;
    Ok(who.iter().find_map(|who| scenario["lacks"][who].as_str()).map(str::to_owned))
}

/// The scenarios of a file of ours.
pub(super) fn scenarios(file: &str) -> Result<Vec<Value>, String> {
    let path = home().join(file);
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// A directory for one run, with the files that the scenarios work on in `work`.
pub(super) fn workspace(cache: &Path, name: &str) -> Result<PathBuf, String> {
    let dir = cache.join("runs").join(name);
    let work = dir.join("work");
    let make = || {
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        for sub in ["sub", "gone"] {
            fs::create_dir_all(work.join(sub))?;
        }
        fs::write(work.join("draft.txt"), "one\ntwo\n")?;
        fs::write(work.join("kept.txt"), "one\ntwo\n")?;
        fs::write(work.join("lines.txt"), "alpha\nbeta\ngamma\ndelta\n")
    };
    make().map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(dir)
}

/// Compares what a client saw with what it should have seen: how many were right, and which were
/// not.
fn judge(scenarios: &[Value], skip: &[&str], lines: &[String]) -> (usize, Vec<String>) {
    let (mut seen, mut bad, mut ended) = (BTreeMap::new(), Vec::new(), false);
    for line in lines {
        let Ok(line) = serde_json::from_str::<Value>(line) else {
            bad.push(format!("the client printed something else: {}", short(line)));
            continue;
        };
        let word = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        if line.get("error").is_some() {
            bad.push(format!("{}: {}", word("scenario"), short(&word("error"))));
        } else if line.get("check").is_some() {
            seen.insert((word("scenario"), word("check")), line["got"].clone());
        } else {
            ended |= line.get("end").is_some();
        }
    }
    let mut good = 0;
    for scenario in scenarios {
        let id = scenario["id"].as_str().unwrap_or_default();
        if skip.contains(&id) {
            continue;
        }
        for (check, want) in scenario["expect"].as_object().into_iter().flatten() {
            match seen.remove(&(id.to_owned(), check.clone())) {
                Some(got) if got == *want => good += 1,
                Some(got) => {
                    let (want, got) = (short(&want.to_string()), short(&got.to_string()));
                    bad.push(format!("{id}/{check}: expected {want}, observed {got}"));
                }
                None => bad.push(format!("{id}/{check}: not observed")),
            }
        }
    }
    bad.extend(seen.keys().map(|(id, check)| format!("{id}/{check}: observed, but no scenario asks for it")));
    if !ended {
        bad.push("the client did not come to its end".to_owned());
    }
    (good, bad)
}

pub(super) fn short(text: &str) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(300).collect();
    if chars.next().is_some() { format!("{head}…") } else { head }
}

/// How a program is run to its end.
pub(super) struct Start<'a> {
    pub(super) command: &'a [String],
    pub(super) cwd: &'a Path,
    pub(super) input: &'a str,
    /// The whole environment, if it is not to be ours.
    pub(super) env: Option<&'a [(String, String)]>,
    /// When to interrupt it, as a user would.
    pub(super) interrupt: Option<&'a dyn Fn() -> bool>,
    /// How long it may take, and how long what it started may take to go.
    pub(super) time: Duration,
    pub(super) after: Duration,
}

/// Runs a program to its end, or stops it, and counts what it leaves behind.
pub(super) fn finish(command: &[String], cwd: &Path, input: &str) -> Result<Ended, String> {
    finish_as(&Start { command, cwd, input, env: None, interrupt: None, time: TIME, after: AFTER })
}

/// The same, with a say in how.
pub(super) fn finish_as(start: &Start<'_>) -> Result<Ended, String> {
    static RUNS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let run = RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mark = format!("{}-{run}", std::process::id());
    let [program, args @ ..] = start.command else { return Err("no program".to_owned()) };
    let errors = start.cwd.with_file_name("stderr.log");
    let file = File::create(&errors).map_err(|error| format!("{}: {error}", errors.display()))?;
    let mut command = Command::new(program);
    if let Some(env) = start.env {
        command.env_clear().envs(env.iter().map(|(name, value)| (name, value)));
    }
    let mut child = command
        .args(args)
        .current_dir(start.cwd)
        .env(MARK, &mark)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(file)
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(start.input.as_bytes());
    }
    let (tell, lines) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
    }
    let mut problems = Vec::new();
    let mut interrupt = start.interrupt;
    let look = || {
        if interrupt.is_some_and(|is_time| is_time()) {
            interrupt = None;
            let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        }
        child.try_wait().ok().flatten()
    };
    let code = match within(start.time, look) {
        Some(status) => status.code(),
        None => {
            problems.push(format!("stopped after {} s", start.time.as_secs()));
            let _ = child.kill();
            let _ = child.wait();
            None
        }
    };
    // The clean end: nothing that was started in this run is still there.
    if within(start.after, || left(&mark).is_empty().then_some(())).is_none() {
        for (pid, what) in left(&mark) {
            problems.push(format!("process {pid} was left behind: {what}"));
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
    let stdout = lines.iter().collect();
    Ok(Ended { stdout, stderr: fs::read_to_string(&errors).unwrap_or_default(), code, problems })
}

/// How other rigs run a program: with an environment of its own.
pub(crate) struct Process<'a> {
    pub(crate) command: &'a [String],
    pub(crate) cwd: &'a Path,
    pub(crate) env: &'a [(String, String)],
    /// Polled while the program runs; it is interrupted as soon as this is `true`.
    pub(crate) interrupt: Option<&'a dyn Fn() -> bool>,
    pub(crate) time: Duration,
    pub(crate) after: Duration,
}

/// Runs a program to its end, or stops it, and ends what it leaves behind.
pub(crate) fn run_process(process: &Process<'_>) -> Result<Ended, String> {
    let Process { command, cwd, env, interrupt, time, after } = *process;
    finish_as(&Start { command, cwd, input: "", env: Some(env), interrupt, time, after })
}

/// Asks again and again until there is an answer or the time is up.
pub(super) fn within<T>(time: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if start.elapsed() > time {
            return None;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The processes that carry the mark of a run, with their command lines.
fn left(mark: &str) -> Vec<(u32, String)> {
    let wanted = format!("{MARK}={mark}");
    let carries = |pid: u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| carries(*pid))
        .map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            (pid, short(&String::from_utf8_lossy(&line).replace('\0', " ")))
        })
        .collect()
}

/// Whether processes can be counted here.
pub(super) fn counts_processes() -> bool {
    Path::new("/proc/self/environ").exists()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_left_behind_is_found_and_ended() {
        if !counts_processes() {
            return;
        }
        let dir = std::env::temp_dir().join(format!("interop-left-{}", std::process::id()));
        fs::create_dir_all(dir.join("work")).unwrap();
        let command = ["sh", "-c", "sleep 600 >/dev/null & echo started"].map(str::to_owned);
        let cwd = &dir.join("work");
        let start = Start {
            command: &command,
            cwd,
            input: "",
            env: None,
            interrupt: None,
            time: TIME,
            after: Duration::ZERO,
        };
        let ended = finish_as(&start).unwrap();
        assert_eq!(ended.stdout, ["started"]);
        assert!(ended.problems.iter().any(|problem| problem.contains("sleep 600")), "{:?}", ended.problems);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn observations_are_compared_with_what_was_expected() {
        let scenarios =
            [json!({"id": "a", "expect": {"x": 1, "y": [2]}}), json!({"id": "b", "expect": {"z": 3}})];
        let line = |check: &str, got: i32| json!({"scenario": "a", "check": check, "got": got}).to_string();
        let end = json!({"end": null}).to_string();
        let (good, bad) = judge(&scenarios, &["b"], &[line("x", 1), line("y", 2), line("w", 0), end]);
        assert_eq!(good, 1);
        assert_eq!(bad, ["a/y: expected [2], observed 2", "a/w: observed, but no scenario asks for it"]);
        let (good, bad) = judge(&scenarios, &[], &["hello".to_owned()]);
        assert_eq!(good, 0);
        assert_eq!(bad.len(), 5, "{bad:?}");
    }
}
