//! Terminals: output that is cut from its beginning, waiting, killing, releasing.

use super::wire::{Answer, Failure, bad_params, failure};
use super::{Client, shell};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How a command ended.
#[derive(Clone, Debug)]
pub(crate) struct Exit {
    pub(super) code: Option<u32>,
    pub(super) signal: Option<&'static str>,
}

impl Exit {
    pub(super) fn of(status: std::io::Result<std::process::ExitStatus>) -> Exit {
        let code = status.ok().and_then(|status| status.code()).and_then(|code| u32::try_from(code).ok());
        Exit { signal: code.is_none().then_some("SIGKILL"), code }
    }

    /// TERM-16: a signal has no exit code.
    fn json(&self, client: &Client) -> Value {
        if client.is("TERM-16") && self.signal.is_some() {
            return json!({ "exitCode": 137, "signal": self.signal });
        }
        json!({ "exitCode": self.code, "signal": self.signal })
    }
}

pub(crate) struct Terminal {
    limit: usize,
    shown: Mutex<Output>,
    exit: watch::Sender<Option<Exit>>,
    kill: watch::Sender<bool>,
    /// Variants cut in another way.
    cut: Truncation,
}

#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    truncated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Truncation {
    Good,
    /// Keeps the beginning.
    End,
    /// Cuts anywhere.
    Anywhere,
}

impl Terminal {
    fn new(client: &Client, limit: usize) -> Arc<Terminal> {
        let cut = match client.setup.variant.as_deref() {
            Some("TERM-06") => Truncation::End,
            Some("TERM-07") => Truncation::Anywhere,
            _ => Truncation::Good,
        };
        Arc::new(Terminal {
            limit,
            shown: Mutex::default(),
            exit: watch::Sender::new(None),
            kill: watch::Sender::new(false),
            cut,
        })
    }

    fn shown(&self) -> MutexGuard<'_, Output> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn print(&self, bytes: &[u8]) {
        let mut shown = self.shown();
        shown.bytes.extend_from_slice(bytes);
        if shown.bytes.len() <= self.limit {
            return;
        }
        shown.truncated = true;
        if self.cut == Truncation::End {
            shown.bytes.truncate(self.limit);
            return;
        }
        // TERM-06: the beginning goes; TERM-07: whole characters of it.
        let mut at = shown.bytes.len() - self.limit;
        while self.cut == Truncation::Good && shown.bytes.get(at).is_some_and(|byte| byte & 0xC0 == 0x80) {
            at += 1;
        }
        shown.bytes.drain(..at);
    }

    pub(super) fn finish(&self, exit: Exit) {
        self.exit.send_replace(Some(exit));
    }

    pub(super) async fn killed(&self) {
        let mut kill = self.kill.subscribe();
        if kill.wait_for(|kill| *kill).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    fn exit(&self) -> Option<Exit> {
        self.exit.borrow().clone()
    }

    async fn ended(&self) -> Option<Exit> {
        let mut exit = self.exit.subscribe();
        exit.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone())
    }
}

impl Client {
    pub(super) fn end_terminals(&self) {
        for (_, terminal) in self.state().terminals.drain() {
            terminal.kill.send_replace(true);
        }
    }

    fn terminal(&self, params: &Value) -> Result<Arc<Terminal>, Failure> {
        let id = params.get("terminalId").and_then(Value::as_str);
        let Some(id) = id.filter(|_| params.get("sessionId").is_some_and(Value::is_string)) else {
            return Err(bad_params("sessionId or terminalId is missing"));
        };
        let known = self.state().terminals.get(id).cloned();
        known.ok_or_else(|| failure(-32002, "there is no such terminal"))
    }
}

fn program(client: &Client, params: &Value) -> Result<shell::Program, Failure> {
    let session =
        params.get("sessionId").and_then(Value::as_str).ok_or_else(|| bad_params("sessionId is missing"))?;
    let command =
        params.get("command").and_then(Value::as_str).ok_or_else(|| bad_params("command is missing"))?;
    let home = client.state().sessions.get(session).map(|session| session.cwd.clone());
    let Some(home) = home else { return Err(failure(-32002, "there is no such session")) };
    let cwd = match params.get("cwd").and_then(Value::as_str) {
        Some(cwd) if !Path::new(cwd).is_absolute() => return Err(bad_params("cwd is not absolute")),
        Some(cwd) => PathBuf::from(cwd),
        None => home,
    };
    let strings = |value: &Value| value.as_str().map(str::to_owned);
    let list = |name: &str| params.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let env = list("env")
        .iter()
        .filter_map(|entry| Some((strings(entry.get("name")?)?, strings(entry.get("value")?)?)))
        .collect();
    let args = list("args").iter().filter_map(strings).collect();
    let env = if client.is("TERM-15") { Vec::new() } else { env };
    let args: Vec<String> = args;
    if client.is("TERM-14") && command != "sh" {
        // Everything through a shell.
        let script =
            std::iter::once(command).chain(args.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
        return Ok(shell::Program {
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), script],
            env,
            cwd,
        });
    }
    Ok(shell::Program { command: command.to_owned(), args, env, cwd })
}

/// TERM-04: the id is returned at once.
pub(super) async fn create(client: &Client, params: &Value) -> Answer {
    let program = program(client, params)?;
    let limit = params.get("outputByteLimit").and_then(Value::as_u64);
    let terminal =
        Terminal::new(client, limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX));
    let run = if client.setup.processes { shell::start } else { shell::pretend };
    // TERM-18: a command that cannot be started gets no terminal.
    if !run(program, Arc::clone(&terminal)) && !client.is("TERM-18") {
        return Err(failure(-32603, "the command cannot be started"));
    }
    let id = {
        let mut state = client.state();
        state.made += 1;
        let id = format!("term-{}", state.made);
        state.terminals.insert(id.clone(), Arc::clone(&terminal));
        id
    };
    if client.is("TERM-04") {
        terminal.ended().await;
    }
    Ok(json!({ "terminalId": id }))
}

/// TERM-08: the output so far, with the exit status only after the exit.
pub(super) fn output(client: &Client, params: &Value) -> Answer {
    let terminal = match client.terminal(params) {
        Err(_) if client.is("RPC-24") => return Err(Failure::Silence),
        terminal => terminal?,
    };
    let shown = terminal.shown();
    let output = String::from_utf8_lossy(&shown.bytes);
    let output = if client.is("TERM-19") { output.replace('\u{FFFD}', "") } else { output.into_owned() };
    let mut answer = json!({ "output": output, "truncated": shown.truncated });
    match terminal.exit() {
        Some(exit) => answer["exitStatus"] = exit.json(client),
        None if client.is("TERM-08") => answer["exitStatus"] = json!({ "exitCode": 0, "signal": null }),
        None => {}
    }
    Ok(answer)
}

/// TERM-09, TERM-17: every waiting request is answered at the exit.
pub(super) async fn wait(client: &Client, id: &Value, params: &Value) -> Answer {
    let terminal = client.terminal(params)?;
    let withdrawn = client.serve(id);
    if client.is("TERM-17") && std::mem::replace(&mut client.state().waited, true) {
        return Err(Failure::Silence);
    }
    if client.is("TERM-09") {
        return Ok(json!({ "exitCode": 0, "signal": null }));
    }
    tokio::select! {
        exit = terminal.ended() => Ok(exit.map_or(json!({}), |exit| exit.json(client))),
        // CANCEL-16: a request that was withdrawn is answered too.
        () = withdrawn.notified() => match client.is("CANCEL-16") {
            true => Err(Failure::Silence),
            false => Err(failure(-32800, "the request was cancelled")),
        },
    }
}

/// TERM-10: the command ends and the terminal stays.
pub(super) async fn kill(client: &Client, params: &Value) -> Answer {
    let terminal = client.terminal(params)?;
    terminal.kill.send_replace(true);
    terminal.ended().await;
    if client.is("TERM-10") {
        forget(client, params);
    }
    Ok(json!({}))
}

/// TERM-11: the command ends and the terminal with it.
pub(super) async fn release(client: &Client, params: &Value) -> Answer {
    if client.is("TERM-21") && client.terminal(params).is_err() {
        return Err(failure(-32603, "it was released before"));
    }
    let terminal = client.terminal(params)?;
    terminal.kill.send_replace(true);
    if !client.is("TERM-11") {
        forget(client, params);
    }
    Ok(json!({}))
}

fn forget(client: &Client, params: &Value) {
    if let Some(id) = params.get("terminalId").and_then(Value::as_str) {
        client.state().terminals.remove(id);
    }
}
