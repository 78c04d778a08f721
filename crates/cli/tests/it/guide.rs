//! The guide is true: every command in it is run, and prints what the guide says.
//!
//! In a block of `console`, a line that begins with `$ ` is a command, lines with `> ` belong to it, and the others are what it
//! prints: all of it, in order. `…` stands for any text, and alone on a line for any lines. A command that fails says so by
//! showing its exit code (`; echo "exit code $?"`); one that does not must succeed. A page has a home and a repository
//! of its own, and its commands run one after the other.
//!
//! The agent `gemini` is a scripted one; `<!-- agent: NAME -->` says which script it follows from there on. Behind
//! `<!-- typed: TEXT -->` the next command has a terminal, and this is the answer to its question.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use pty_process::Size;
use pty_process::blocking::{Command as InTerminal, open};

use super::guide_agents::script;
use super::world::test_agent;

struct Step {
    line: usize,
    command: String,
    output: Vec<String>,
}

enum Item {
    Agent(String),
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

    /// What a reader has in the environment, and what no reader has.
    fn environment(&self) -> (Vec<(&'static str, String)>, Vec<String>) {
        let programs = Path::new(env!("CARGO_BIN_EXE_attache")).parent().unwrap();
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let ours =
            |name: &String| name.starts_with("ATTACHE_") || name.starts_with("XDG_") || name == "NO_COLOR";
        let gone =
            std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).filter(ours).collect();
        let set = vec![
            ("HOME", self.root.join("home").to_string_lossy().into_owned()),
            ("PATH", path),
            // Nobody is left behind for long, should a page not close what it opens.
            ("ATTACHE_TTL", "20".to_owned()),
        ];
        (set, gone)
    }

    fn project(&self) -> PathBuf {
        self.root.join("home/project")
    }

    fn run(&self, step: &Step, typed: Option<String>) -> Result<(), String> {
        let (status, text) = match typed {
            Some(typed) => self.in_terminal(&step.command, &typed),
            None => self.without_terminal(&step.command),
        };
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let wrong = |what: &str| Err(format!("line {}: $ {}\n{what}\n{text}", step.line, step.command));
        if !status.success() {
            return wrong(&format!("it fails: {status}"));
        }
        if !fits(&step.output, &lines) {
            return wrong(&format!("it prints not this:\n{}\nbut this:", step.output.join("\n")));
        }
        Ok(())
    }

    fn without_terminal(&self, command: &str) -> (ExitStatus, String) {
        let (set, gone) = self.environment();
        let mut shell = Command::new("sh");
        for name in &gone {
            shell.env_remove(name);
        }
        shell.args(["-c", &format!("exec 2>&1\n{command}\n")]).current_dir(self.project()).envs(set);
        let out = shell.stdin(Stdio::null()).output().unwrap();
        (out.status, String::from_utf8_lossy(&out.stdout).into_owned())
    }

    fn in_terminal(&self, command: &str, typed: &str) -> (ExitStatus, String) {
        let (set, gone) = self.environment();
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(50, 200)).unwrap();
        let shell = gone.iter().fold(InTerminal::new("sh"), |shell, name| shell.env_remove(name));
        let mut shell = shell.args(["-c", command]).current_dir(self.project()).envs(set);
        shell = shell.env("NO_COLOR", "1").env("TERM", "xterm");
        let mut child = shell.spawn(pts).unwrap();
        let (mut text, mut bytes, mut answered) = (Vec::new(), [0; 4096], false);
        // Reading fails when nobody has the terminal any more.
        while let Ok(count @ 1..) = (&pty).read(&mut bytes) {
            text.extend_from_slice(&bytes[..count]);
            if !answered && text.ends_with(b": ") {
                (&pty).write_all(format!("{typed}\n").as_bytes()).unwrap();
                answered = true;
            }
        }
        (child.wait().unwrap(), String::from_utf8_lossy(&text).replace('\r', ""))
    }
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
    first_five_minutes "first-five-minutes.md"
    scripting "scripting.md"
    permissions "permissions.md"
    agents_and_registry "agents-and-registry.md"
    troubleshooting "troubleshooting.md"
    from_acpx "from-acpx.md"
    chat "chat.md"
    providers "providers.md"
    agent "agent.md"
    checking "checking.md"
    recordings "recordings.md"
    files "files.md"
}

#[test]
fn no_page_is_left_out_and_no_link_is_broken() {
    for entry in fs::read_dir(guide()).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(PAGES.contains(&name.as_str()), "{name} is not in the table of this test");
        let text = fs::read_to_string(guide().join(&name)).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            assert!(
                file.starts_with("http") || guide().join(file).exists(),
                "{name} links to {link}, which is not there"
            );
        }
    }
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
