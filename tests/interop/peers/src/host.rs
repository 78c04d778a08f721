//! Files and terminals that the clients provide to agents.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache::client::{RequestContext, Terminal, Terminals};
use attache::wire::v1::{
    CreateTerminalRequest, ReadTextFileRequest, TerminalExitStatus, TerminalOutputResponse,
    WriteTextFileRequest,
};
use attache::{Error, Result};
use tokio::sync::watch;

/// Locks, also after a panic of another thread.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves `fs/read_text_file`.
///
/// # Errors
/// When the file cannot be read.
pub async fn read(_: RequestContext, request: ReadTextFileRequest) -> Result<String> {
    let text =
        std::fs::read_to_string(&request.path).map_err(|_| Error::not_found("there is no such file"))?;
    let start = request.line.unwrap_or(1).saturating_sub(1);
    let lines = text.split('\n').skip(start as usize);
    let lines: Vec<&str> = lines.take(request.limit.map_or(usize::MAX, |limit| limit as usize)).collect();
    Ok(lines.join("\n"))
}

/// Serves `fs/write_text_file`.
///
/// # Errors
/// When the file cannot be written.
pub async fn write(_: RequestContext, request: WriteTextFileRequest) -> Result<()> {
    Ok(std::fs::write(&request.path, &request.content)?)
}

/// Plain processes, without a real terminal. The number is how many have not been released.
#[derive(Clone, Default)]
pub struct Processes(pub Arc<AtomicUsize>);

/// A command that runs in a terminal of the client.
pub struct Process {
    child: Arc<Mutex<Child>>,
    output: Arc<Mutex<Vec<u8>>>,
    status: watch::Receiver<Option<TerminalExitStatus>>,
    open: Arc<AtomicUsize>,
}

impl Terminals for Processes {
    type Terminal = Process;

    async fn create(&self, cx: RequestContext, request: CreateTerminalRequest) -> Result<Process> {
        let mut command = Command::new(&request.command);
        command.args(request.args.iter().flatten());
        command.envs(request.env.iter().flatten().map(|variable| (&variable.name, &variable.value)));
        if let Some(cwd) = request.cwd.as_deref().map(Path::new).or(cx.cwd()) {
            command.current_dir(cwd);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take();
        let (child, output) = (Arc::new(Mutex::new(child)), Arc::new(Mutex::new(Vec::new())));
        let (tell, status) = watch::channel(None);
        let (waited, sink) = (child.clone(), output.clone());
        std::thread::spawn(move || {
            let mut part = [0; 4096];
            if let Some(mut stdout) = stdout {
                while let Ok(count @ 1..) = stdout.read(&mut part) {
                    lock(&sink).extend_from_slice(&part[..count]);
                }
            }
            let code = lock(&waited).wait().ok().and_then(|status| status.code());
            let exit = match code.and_then(|code| u32::try_from(code).ok()) {
                Some(code) => TerminalExitStatus::new().exit_code(code),
                None => TerminalExitStatus::new().signal("SIGKILL".to_owned()),
            };
            tell.send_replace(Some(exit));
        });
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Process { child, output, status, open: self.0.clone() })
    }
}

impl Terminal for Process {
    async fn output(&self) -> Result<TerminalOutputResponse> {
        let output = String::from_utf8_lossy(&lock(&self.output)).into_owned();
        Ok(TerminalOutputResponse::new(output, false).exit_status(self.status.borrow().clone()))
    }

    async fn wait_for_exit(&self) -> Result<TerminalExitStatus> {
        let mut status = self.status.clone();
        let exit = status.wait_for(Option::is_some).await.map_err(Error::internal)?.clone();
        Ok(exit.unwrap_or_default())
    }

    async fn kill(&self) -> Result<()> {
        Ok(lock(&self.child).kill()?)
    }

    async fn release(&self) -> Result<()> {
        self.open.fetch_sub(1, Ordering::SeqCst);
        self.kill().await
    }
}
