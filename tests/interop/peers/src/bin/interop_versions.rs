//! The client that `cargo xtask interop` puts before the routers of the official SDKs:
//! `interop_versions [--only 1|2] -- AGENT ARGS…`, where `--only` names the version that the router
//! has. Prints `ok NAME` or `not ok NAME: WHY` for each of its checks.

#![allow(clippy::print_stdout, reason = "a program that prints what it saw")]

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use attache::client::{AgentHandle, Client, Protocol, ReadFiles, RequestContext};
use attache::wire::v1::ReadTextFileRequest;
use attache::{Command, Error, Link, Result};

/// For one check.
const TIME: Duration = Duration::from_secs(20);
/// The code of an agent that does not speak the offered version.
const UNSUPPORTED_VERSION: i32 = -32022;

/// Fails with the values if they differ.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, seen: T, expected: T) -> Result<()> {
    match seen == expected {
        true => Ok(()),
        false => Err(Error::internal(format!("{what} is {seen:?} and not {expected:?}"))),
    }
}

/// The files of the client.
struct Files;

impl ReadFiles for Files {
    async fn read(&self, _: RequestContext, _: ReadTextFileRequest) -> Result<String> {
        Ok("from the client".to_owned())
    }
}

struct Checks {
    command: Vec<String>,
    cwd: PathBuf,
    /// How often the agent was started.
    starts: Cell<u32>,
}

fn client(protocol: Protocol) -> Client {
    Client::new().info("interop-versions", "1").protocol(protocol)
}

impl Checks {
    fn start(&self) -> Result<Link> {
        self.starts.set(self.starts.get() + 1);
        let Some((program, args)) = self.command.split_first() else {
            return Err(Error::Invalid("no agent".to_owned()));
        };
        Ok(Link::command(Command::new(program).args(args))?)
    }

    /// Has a conversation, whose version and number of starts are known.
    async fn talk(&self, agent: AgentHandle, version: u16, starts: u32) -> Result<()> {
        same("the version", agent.protocol_version().0, version)?;
        same("the number of starts", self.starts.get(), starts)?;
        if let Some(method) = agent.auth_methods().first().and_then(|method| method.id()) {
            agent.authenticate(method.clone()).await?;
        }
        let mut session = agent.new_session(&self.cwd).await?;
        same("the text", &*session.prompt("say hello").await?.text().await?, "hello")?;
        drop(session);
        agent.shutdown().await;
        Ok(())
    }

    /// Offers the versions of a client without capabilities.
    async fn offer(&self, protocol: Protocol, version: u16) -> Result<()> {
        self.talk(client(protocol).connect(self.start()?).await?, version, 1).await
    }

    /// A client that provides files starts the agent again if the agent has only version 1, and
    /// then provides them.
    async fn with_files(&self, version: u16, starts: u32) -> Result<()> {
        let client = client(Protocol::Auto).read_files(Files);
        let agent = client.connect_with(async || self.start()).await?;
        if version == 1 {
            self.read(&agent).await?;
        }
        self.talk(agent, version, starts).await
    }

    /// The same client, with one connection only: version 1 is offered first, as only that has
    /// files.
    async fn on_one_connection(&self, version: u16) -> Result<()> {
        let agent = client(Protocol::Auto).read_files(Files).connect(self.start()?).await?;
        if version == 1 {
            self.read(&agent).await?;
        }
        self.talk(agent, version, 1).await
    }

    /// Lets the agent read a file of the client.
    async fn read(&self, agent: &AgentHandle) -> Result<()> {
        if let Some(method) = agent.auth_methods().first().and_then(|method| method.id()) {
            agent.authenticate(method.clone()).await?;
        }
        let mut session = agent.new_session(&self.cwd).await?;
        let prompt = format!("read {}", self.cwd.join("lines.txt").display());
        same("the file", &*session.prompt(prompt).await?.text().await?, "from the client")
    }

    /// An agent without version 1 says so, and which version it has.
    async fn refused(&self) -> Result<()> {
        match client(Protocol::V1).connect(self.start()?).await {
            Err(Error::Refused(error)) => {
                same("the code", error.code, UNSUPPORTED_VERSION)?;
                let data = error.data.as_deref().map(|data| data.get().to_owned()).unwrap_or_default();
                same(
                    "the data",
                    serde_json::from_str(&data)?,
                    serde_json::json!({"requested": 1, "supported": [2]}),
                )
            }
            other => Err(Error::internal(format!(
                "the answer is {:?}",
                other.map(|agent| agent.protocol_version())
            ))),
        }
    }

    /// An agent without version 2 answers with version 1, which this client does not want.
    async fn too_old(&self) -> Result<()> {
        match client(Protocol::V2).connect(self.start()?).await {
            Err(Error::Version { theirs, ours }) => same("the versions", (theirs.0, ours.0), (1, 2)),
            other => Err(Error::internal(format!(
                "the answer is {:?}",
                other.map(|agent| agent.protocol_version())
            ))),
        }
    }
}

/// Runs one check. Returns whether it holds.
async fn check(name: &str, check: impl Future<Output = Result<()>>) -> bool {
    let outcome =
        tokio::time::timeout(TIME, check).await.unwrap_or_else(|_| Err(Error::internal("timed out")));
    match outcome {
        Ok(()) => println!("ok {name}"),
        Err(error) => {
            println!("not ok {name}: {}", error.to_string().replace('\n', " "));
            return false;
        }
    }
    true
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let mut args = std::env::args().skip(1);
    let only = args.by_ref().take_while(|arg| arg != "--").nth(1);
    let command: Vec<String> = std::env::args().skip_while(|arg| arg != "--").skip(1).collect();
    let cwd = Path::new(".").canonicalize()?;
    let new = || Checks { command: command.clone(), cwd: cwd.clone(), starts: Cell::new(0) };
    let ok = match only.as_deref() {
        None => {
            check("version_1", new().offer(Protocol::V1, 1)).await
                & check("version_2", new().offer(Protocol::V2, 2)).await
                & check("both", new().offer(Protocol::Auto, 2)).await
                & check("both_with_files", new().with_files(2, 1)).await
                & check("both_with_files_on_one_connection", new().on_one_connection(1)).await
        }
        Some("1") => {
            check("version_1", new().offer(Protocol::V1, 1)).await
                & check("version_2", new().too_old()).await
                & check("both", new().offer(Protocol::Auto, 1)).await
                & check("both_with_files", new().with_files(1, 2)).await
                & check("both_with_files_on_one_connection", new().on_one_connection(1)).await
        }
        Some(_) => {
            check("version_1", new().refused()).await
                & check("version_2", new().offer(Protocol::V2, 2)).await
                & check("both", new().offer(Protocol::Auto, 2)).await
                & check("both_with_files", new().with_files(2, 1)).await
                & check("both_with_files_on_one_connection", new().on_one_connection(2)).await
        }
    };
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
