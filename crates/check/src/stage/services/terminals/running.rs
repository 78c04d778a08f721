//! A running command, under a guard that ends it with all its children.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use attache_conn::process::{ChildGuard, Command};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

/// The most output that is kept.
const KEPT: usize = 4 << 20;

pub(super) struct Running {
    output: Arc<Mutex<Vec<u8>>>,
    guard: ChildGuard,
}

impl Running {
    pub(super) fn start(command: &str, params: &Value, dir: &Path) -> io::Result<Running> {
        let texts = |key: &str| params[key].as_array().cloned().unwrap_or_default();
        let args: Vec<String> = texts("args").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let env = texts("env");
        let env = env.iter().filter_map(|one| Some((one["name"].as_str()?, one["value"].as_str()?)));
        let output: Arc<Mutex<Vec<u8>>> = Arc::default();
        let errors = Arc::clone(&output);
        let child = prepared(command, &args)
            .envs(env)
            .current_dir(params["cwd"].as_str().map_or(dir, Path::new))
            .on_stderr_line(move |line| push(&errors, format!("{line}\n").as_bytes()))
            .grace(Duration::ZERO)
            .spawn()?;
        let mut stdout = child.stdout;
        let theirs = Arc::clone(&output);
        tokio::spawn(async move {
            let mut chunk = vec![0; 16 << 10];
            while let Ok(count @ 1..) = stdout.read(&mut chunk).await {
                push(&theirs, &chunk[..count]);
            }
        });
        Ok(Running { output, guard: child.guard })
    }

    pub(super) fn output(&self) -> String {
        let bytes = self.output.lock();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(super) fn exit(&self) -> Option<Value> {
        let exit = crate::target::exit_of(self.guard.try_exit()?);
        let signal = exit.signal.map(|signal| match signal {
            2 => "SIGINT".to_owned(),
            9 => "SIGKILL".to_owned(),
            15 => "SIGTERM".to_owned(),
            other => format!("signal {other}"),
        });
        Some(json!({ "exitCode": exit.code, "signal": signal }))
    }

    pub(super) fn kill(&self) {
        self.guard.kill();
    }

    pub(super) async fn end(self) {
        self.guard.kill();
        self.guard.wait().await;
    }
}

/// One string with blanks and no arguments is most likely meant for a shell.
// TERM-14
fn prepared(command: &str, args: &[String]) -> Command {
    if args.is_empty() && command.contains(char::is_whitespace) && !Path::new(command).exists() {
        return Command::new("sh").arg("-c").arg(command);
    }
    Command::new(command).args(args)
}

fn push(output: &Mutex<Vec<u8>>, bytes: &[u8]) {
    let mut output = output.lock();
    output.extend_from_slice(bytes);
    let over = output.len().saturating_sub(KEPT);
    output.drain(..over);
}
