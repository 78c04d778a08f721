//! Commands of a terminal: a process, or a small interpreter on tokio's clock.
//!
//! Tests with a paused clock cannot wait for processes, so the interpreter knows the few commands
//! that a checker gives to a shell: `echo`, `printf`, `seq`, `sleep`, `exit`, `pwd`, one after the
//! other, with `>&2` and `$NAME`.

use super::terminals::{Exit, Terminal};
use std::io::Read;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

/// A command.
pub(super) struct Program {
    pub(super) command: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: PathBuf,
}

/// Runs the script of `sh -c SCRIPT`, or the one command given, until it ends or is killed; `false`
/// if it is not known.
pub(super) fn pretend(program: Program, terminal: Arc<Terminal>) -> bool {
    let name = program.command.rsplit('/').next().unwrap_or_default();
    let steps: Vec<Vec<String>> = match (name, program.args.as_slice()) {
        ("sh", [flag, script]) if flag == "-c" => script.split(';').map(words).collect(),
        ("echo" | "printf" | "seq" | "sleep" | "pwd", args) => {
            vec![std::iter::once(name.to_owned()).chain(args.iter().cloned()).collect()]
        }
        _ => return false,
    };
    tokio::spawn(async move {
        let run = interpret(steps, &program, &terminal);
        let exit = tokio::select! {
            code = run => Exit { code: Some(code), signal: None },
            () = terminal.killed() => Exit { code: None, signal: Some("SIGKILL") },
        };
        terminal.finish(exit);
    });
    true
}

async fn interpret(steps: Vec<Vec<String>>, program: &Program, terminal: &Terminal) -> u32 {
    for step in steps {
        let words: Vec<String> = step.iter().map(|word| expand(word, program)).collect();
        let arg = |index: usize| words.get(index).map(String::as_str).unwrap_or_default();
        let number = |index: usize| arg(index).parse::<u64>().unwrap_or_default();
        match arg(0) {
            "sleep" => {
                let seconds = arg(1).parse::<f64>().unwrap_or_default();
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            }
            "exit" => return u32::try_from(number(1)).unwrap_or(1),
            "seq" => {
                let lines: String = (number(1)..=number(2)).map(|line| format!("{line}\n")).collect();
                terminal.print(lines.as_bytes());
            }
            "echo" => {
                let shown: Vec<&str> =
                    words.iter().skip(1).map(String::as_str).filter(|word| *word != ">&2").collect();
                terminal.print(format!("{}\n", shown.join(" ")).as_bytes());
            }
            "printf" => terminal.print(&unescape(arg(1))),
            "pwd" => terminal.print(format!("{}\n", program.cwd.display()).as_bytes()),
            "" => {}
            _ => return 127,
        }
    }
    0
}

/// The words of a step; quotes hold them together.
fn words(step: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in step.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn expand(word: &str, program: &Program) -> String {
    program.env.iter().fold(word.to_owned(), |word, (name, value)| word.replace(&format!("${name}"), value))
}

/// `\n` and bytes as three octal digits.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'\\' {
            bytes.push(first);
            continue;
        }
        let octal = rest.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = rest.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(b'\n');
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    bytes
}

/// Starts a process whose two outputs are one (TERM-19).
pub(super) fn start(program: Program, terminal: Arc<Terminal>) -> bool {
    let Ok((mut output, input)) = std::io::pipe() else { return false };
    let Ok(errors) = input.try_clone() else { return false };
    // TERM-14, TERM-15: a program, its arguments and additional variables.
    let mut command = tokio::process::Command::new(&program.command);
    command.args(&program.args).envs(program.env).current_dir(program.cwd);
    command.stdin(Stdio::null()).stdout(input).stderr(errors).kill_on_drop(true);
    // A process group of its own, so that children of a shell end with it.
    #[cfg(unix)]
    command.process_group(0);
    let Ok(mut child) = command.spawn() else { return false };
    drop(command);
    let printing = Arc::clone(&terminal);
    let reading = std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(count @ 1..) = output.read(&mut buffer) {
            printing.print(buffer.get(..count).unwrap_or_default());
        }
    });
    tokio::spawn(async move {
        let status = tokio::select! {
            status = child.wait() => status,
            () = terminal.killed() => {
                kill(&child);
                let _ = child.start_kill();
                child.wait().await
            }
        };
        let _ = tokio::task::spawn_blocking(move || reading.join()).await;
        terminal.finish(Exit::of(status));
    });
    true
}

/// The whole group: by the system's own program, since this crate has no unsafe code.
fn kill(child: &tokio::process::Child) {
    if let Some(pid) = child.id() {
        let group = format!("-{pid}");
        let _ = std::process::Command::new("kill")
            .args(["-s", "KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
    }
}
