//! The guide is true: every command in it is run, and prints what the guide says.
//!
//! In a block of `console`, a line that begins with `$ ` is a command, lines with `> ` belong to
//! it, and the others are what it prints: all of it, in order. `…` stands for any text, and alone
//! on a line for any lines. A command that fails says so by showing its exit code (`; echo "exit
//! code $?"`); one that does not must succeed. A page has a home and a repository of its own, and
//! its commands run one after the other.
//!
//! The agent `gemini` is a scripted one; `<!-- agent: NAME -->` says which script it follows from
//! there on. After `<!-- model: NAME -->` our own agent uses the scripted model of this name. After
//! `<!-- typed: A B -->` the next command has a terminal, and these words answer its questions in
//! turn. A command that does not end in time is killed with its process group, and reported like
//! one that prints something else.

use std::fs;
use std::io::{Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command as InTerminal, Pty, open};
use rustix::process::{Pid, Signal, kill_process_group};

use super::guide_agents::{model, script};
use super::world::test_agent;

/// No command of the guide takes as long; one that does hangs.
const DEADLINE: Duration = Duration::from_secs(120);

struct Step {
    line: usize,
    command: String,
    output: Vec<String>,
}

enum Item {
    Agent(String),
    Model(String),
    Typed(String),
    Step(Step),
}

fn items(text: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(name) = line.strip_prefix("<!-- agent: ") {
            items.push(Item::Agent(name.trim_end_matches("-->").trim().to_owned()));
        } else if let Some(name) = line.strip_prefix("<!-- model: ") {
            items.push(Item::Model(name.trim_end_matches("-->").trim().to_owned()));
        } else if let Some(text) = line.strip_prefix("<!-- typed: ") {
            items.push(Item::Typed(text.trim_end_matches("-->").trim().to_owned()));
        } else if !inside {
        } else if let Some(command) = line.strip_prefix("$ ") {
            items.push(Item::Step(Step {
                line: number + 1,
                command: command.to_owned(),
                output: Vec::new(),
            }));
        } else if let Some(Item::Step(step)) = items.last_mut() {
            match line.strip_prefix("> ") {
                Some(more) if step.output.is_empty() => {
                    step.command.push('\n');
                    step.command.push_str(more);
                }
                _ => step.output.push(line.to_owned()),
            }
        } else {
            panic!("line {}: output without a command", number + 1);
        }
    }
    for item in &mut items {
        if let Item::Step(step) = item {
            while step.output.last().is_some_and(String::is_empty) {
                step.output.pop();
            }
        }
    }
    items
}

/// Whether a line is what was written, `…` being anything.
fn line_fits(wanted: &str, line: &str) -> bool {
    let mut parts = wanted.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn fits(wanted: &[String], lines: &[&str]) -> bool {
    match wanted.split_first() {
        None => lines.is_empty(),
        Some((first, others)) if first == "…" => {
            (0..=lines.len()).any(|skipped| fits(others, &lines[skipped..]))
        }
        Some((first, others)) => {
            lines.split_first().is_some_and(|(line, rest)| line_fits(first, line) && fits(others, rest))
        }
    }
}

/// A reader's home, and the repository they work in.
struct Reader {
    root: PathBuf,
}

impl Reader {
    fn new(page: &str) -> Reader {
        let root = std::env::temp_dir().join(format!("attache-guide-{}-{page}", std::process::id()));
        fs::create_dir_all(root.join("home/.config/attache")).unwrap();
        fs::create_dir_all(root.join("home/project/.git")).unwrap();
        let reader = Reader { root: root.canonicalize().unwrap() };
        reader.agent("says");
        let argv = format!("[agents.gemini]\nargv = [{:?}, {:?}]\n", test_agent(), reader.script());
        fs::write(reader.root.join("home/.config/attache/config.toml"), argv).unwrap();
        reader
    }

    fn script(&self) -> PathBuf {
        self.root.join("gemini.script")
    }

    fn agent(&self, name: &str) {
        fs::write(self.script(), script(name)).unwrap();
    }

    fn model(&self, name: &str) {
        let script = self.root.join("model.script");
        fs::write(&script, model(name)).unwrap();
        let argv = ["attache", "agent", "--model", &format!("script:{}", script.display())];
        let file = self.root.join("home/.config/attache/config.toml");
        let text = fs::read_to_string(&file).unwrap();
        if !text.contains("[agents.attache]") {
            fs::write(file, format!("{text}[agents.attache]\nargv = {argv:?}\n")).unwrap();
        }
    }

    /// What a reader has in the environment, and what no reader has.
    fn environment(&self) -> (Vec<(&'static str, String)>, Vec<String>) {
        let programs = Path::new(env!("CARGO_BIN_EXE_attache")).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let is_gone = |name: &String| {
            let (settings, keys) =
                (["ATTACHE_", "XDG_", "NO_COLOR"], ["_API_KEY", "_AUTH_TOKEN", "_BASE_URL"]);
            settings.iter().any(|start| name.starts_with(start)) || keys.iter().any(|end| name.ends_with(end))
        };
        let gone = std::env::vars_os()
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .filter(is_gone)
            .collect();
        let set = vec![
            ("HOME", self.root.join("home").to_string_lossy().into_owned()),
            ("PATH", path),
            // No model server listens there.
            ("OLLAMA_HOST", "http://127.0.0.1:9".to_owned()),
            ("LMSTUDIO_BASE_URL", "http://127.0.0.1:9".to_owned()),
            ("LLAMACPP_BASE_URL", "http://127.0.0.1:9".to_owned()),
            ("VLLM_BASE_URL", "http://127.0.0.1:9".to_owned()),
            // A key that is typed is tried.
            ("OPENAI_BASE_URL", "http://127.0.0.1:9".to_owned()),
            // The owner of a session that a page does not close ends soon.
            ("ATTACHE_TTL", "20".to_owned()),
        ];
        (set, gone)
    }

    fn project(&self) -> PathBuf {
        self.root.join("home/project")
    }

    fn run(&self, step: &Step, typed: Option<String>) -> Result<(), String> {
        let wrong =
            |what: &str, text: &str| Err(format!("line {}: $ {}\n{what}\n{text}", step.line, step.command));
        let ended = match typed {
            Some(typed) => self.in_terminal(&step.command, &typed),
            None => self.without_terminal(&step.command),
        };
        let (status, text) = match ended {
            Ok(ended) => ended,
            Err(text) => {
                return wrong(&format!("it does not end within {DEADLINE:?}; it printed:"), &text);
            }
        };
        let lines: Vec<&str> = text.trim_end().lines().collect();
        if !status.success() {
            return wrong(&format!("it fails: {status}"), &text);
        }
        if !fits(&step.output, &lines) {
            return wrong(&format!("it prints not this:\n{}\nbut this:", step.output.join("\n")), &text);
        }
        Ok(())
    }

    fn without_terminal(&self, command: &str) -> Result<(ExitStatus, String), String> {
        let (set, gone) = self.environment();
        let mut shell = Command::new("sh");
        for name in &gone {
            shell.env_remove(name);
        }
        shell.args(["-c", &format!("exec 2>&1\n{command}\n")]).current_dir(self.project()).envs(set);
        let mut child = shell.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let plain = |text: String| text.replace('\r', "");
        attend(child, output, DEADLINE, |_| {}).map(|(status, text)| (status, plain(text))).map_err(plain)
    }

    fn in_terminal(&self, command: &str, typed: &str) -> Result<(ExitStatus, String), String> {
        let (set, gone) = self.environment();
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(50, 200)).unwrap();
        let shell = gone.iter().fold(InTerminal::new("sh"), |shell, name| shell.env_remove(name));
        let mut shell = shell.args(["-c", command]).current_dir(self.project()).envs(set);
        shell = shell.env("NO_COLOR", "1").env("TERM", "xterm");
        // The shell leads a session, and so a process group, of its own.
        let child = shell.spawn(pts).unwrap();
        let pty = Arc::new(pty);
        let mut answers = typed.split_whitespace();
        let mut asked = 0;
        let (status, text) = attend(child, Terminal(pty.clone()), DEADLINE, |text| {
            let text = String::from_utf8_lossy(text);
            // A question that takes keys is erased after its answer.
            let (keys, lines) =
                (text.matches("your answer: ").count(), text.ends_with(": ") || text.ends_with("[y/n] "));
            if (keys > asked || lines)
                && let Some(answer) = answers.next()
            {
                asked = keys;
                let end = if lines { "\n" } else { "" };
                (&*pty).write_all(format!("{answer}{end}").as_bytes()).unwrap();
            }
        })?;
        // As the screen shows it in the end.
        let mut screen = vt100::Parser::new(2000, 200, 0);
        screen.process(text.as_bytes());
        Ok((status, screen.screen().contents()))
    }
}

struct Terminal(Arc<Pty>);

impl Read for Terminal {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        (&*self.0).read(bytes)
    }
}

/// Reads what a command prints up to its end; `on_output` sees all of it so far. After the deadline
/// the command is killed, and what it has printed is the error.
fn attend(
    mut child: Child,
    mut output: impl Read + Send + 'static,
    limit: Duration,
    mut on_output: impl FnMut(&[u8]),
) -> Result<(ExitStatus, String), String> {
    let (sender, chunks) = mpsc::channel();
    // Not joined: a process that left the group may keep the output open for ever.
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        // Reading a terminal fails when no process has it open any more.
        while let Ok(count @ 1..) = output.read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let deadline = Instant::now() + limit;
    let mut text = Vec::new();
    let plain = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    loop {
        match chunks.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(chunk) => {
                text.extend_from_slice(&chunk);
                on_output(&text);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                let group = Pid::from_child(&child);
                kill_process_group(group, Signal::KILL).unwrap();
                child.wait().unwrap();
                return Err(plain(&text));
            }
        }
    }
    Ok((child.wait().unwrap(), plain(&text)))
}

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

#[track_caller]
fn page(name: &str) {
    let text = fs::read_to_string(guide().join(name)).unwrap();
    let reader = Reader::new(name);
    let (mut wrong, mut typed) = (Vec::new(), None);
    for item in items(&text) {
        match item {
            Item::Agent(name) => reader.agent(&name),
            Item::Model(name) => reader.model(&name),
            Item::Typed(text) => typed = Some(text),
            Item::Step(step) => wrong.extend(reader.run(&step, typed.take()).err()),
        }
    }
    assert!(wrong.is_empty(), "docs/guide/{name}\n\n{}", wrong.join("\n\n"));
}

macro_rules! pages {
    ($($test:ident $file:literal)*) => {
        $(#[test] fn $test() { page($file); })*
        const PAGES: &[&str] = &[$($file),*];
    };
}

pages! {
    contents "README.md"
    install "install.md"
    first_five_minutes "first-five-minutes.md"
    scripting "scripting.md"
    permissions "permissions.md"
    agents_and_registry "agents-and-registry.md"
    troubleshooting "troubleshooting.md"
    from_acpx "from-acpx.md"
    chat "chat.md"
    providers "providers.md"
    local_models "local-models.md"
    agent "agent.md"
    checking "checking.md"
    recordings "recordings.md"
    files "files.md"
    sdk "sdk.md"
    versions "versions.md"
    remote "remote.md"
    hub "hub.md"
}

#[test]
fn no_page_is_left_out() {
    for entry in fs::read_dir(guide()).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(PAGES.contains(&name.as_str()), "{name} is not in the table of this test");
    }
}

/// The lines of a page that are not in blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        let is_fence = line.starts_with("```");
        inside ^= is_fence;
        !inside && !is_fence
    })
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().chars().filter_map(|char| match char {
        ' ' => Some('-'),
        char if char.is_alphanumeric() || "-_".contains(char) => Some(char.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

#[test]
fn no_link_is_broken() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<PathBuf> = PAGES.iter().map(|name| guide().join(name)).collect();
    pages.extend(
        ["README.md", "SECURITY.md", "docs/security.md", "docs/ARCHITECTURE.md"].map(|name| root.join(name)),
    );
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        let links =
            prose(&text).flat_map(|line| line.split("](").skip(1)).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.starts_with("http")) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.with_file_name("").join(file) };
            assert!(target.exists(), "{}: {link} is not there", page.display());
            if !place.is_empty() {
                let target = fs::read_to_string(&target).unwrap();
                let mut headings = prose(&target).filter(|line| line.starts_with('#')).map(anchor);
                assert!(
                    headings.any(|heading| heading == place),
                    "{}: {link} has no such heading",
                    page.display()
                );
            }
        }
    }
}

#[test]
fn a_command_that_hangs_is_killed_with_its_group() {
    let (mut watched, held) = std::io::pipe().unwrap();
    let mut shell = Command::new("sh");
    // The command in the background keeps both pipes open until it is killed too.
    shell.args(["-c", "sleep 1000 & sleep 1000"]).process_group(0).stdout(Stdio::piped()).stderr(held);
    let mut child = shell.spawn().unwrap();
    drop(shell);
    let output = child.stdout.take().unwrap();
    assert_eq!(attend(child, output, Duration::ZERO, |_| {}).unwrap_err(), "");
    assert_eq!(watched.read(&mut [0]).unwrap(), 0, "a process of the group is left");
}

#[test]
fn what_fits() {
    let wanted = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert!(fits(&wanted(&["a … c", "…", "end"]), &["a b c", "x", "y", "end"]));
    assert!(fits(&wanted(&["…"]), &[]));
    assert!(!fits(&wanted(&["a … c"]), &["a b d"]));
    assert!(!fits(&[], &["unsaid"]));
    assert!(!fits(&wanted(&["a"]), &["a", "b"]));
}
