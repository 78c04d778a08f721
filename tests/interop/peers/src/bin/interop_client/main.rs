//! The client that `cargo xtask interop` puts before the official agents: `interop_client [--skip
//! a,b] -- AGENT ARGS…|URL`.
//!
//! It runs the scenarios of `tests/interop/scenarios.json` and prints what it saw, one JSON line
//! per observation. The clients in `tests/interop`, on the official SDKs, do the same.

#![allow(clippy::print_stdout, reason = "a program that prints what it saw")]

mod brief;
mod reconnect;
mod scenarios;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache::client::Client;
use attache::http::client::Backoff;
use attache::http::client::remote::{Options, Transport, connect};
use attache::{Command, Error, Link, Result};
use attache_interop_peers::{extensions, host};
use serde_json::{Value, json};

extensions! {
    Echo "_interop/echo" request,
    Notes "_interop/notes" request,
    Note "_interop/note" notification,
    Reverse "_interop/reverse" request,
    Ping "_interop/ping" notification,
    Nothing "_interop/nothing" request,
    NothingAtAll "interop/nothing" request,
    NothingToTell "_interop/nothing" notification,
}

async fn reverse(request: Reverse) -> Result<Value> {
    let params: Value = request.0.parse()?;
    let text = params["text"].as_str().unwrap_or_default();
    Ok(json!({"text": text.chars().rev().collect::<String>()}))
}

/// Starts a program, or connects to a URL. `http` and `https` mean Streamable HTTP here, as for the
/// other clients.
async fn open(program: &str, rest: &[String]) -> Result<Link> {
    if !program.contains("://") {
        return Ok(Link::command(Command::new(program).args(rest))?);
    }
    let options = Options { reconnect: Backoff::RECONNECT, ..Options::default() };
    if program.starts_with("http") {
        let origin = program.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        options.transports.insert(origin, Transport::StreamableHttp);
    }
    Ok(connect(program, &options).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let cut = args.iter().position(|arg| arg == "--").ok_or_else(|| Error::internal("no `-- AGENT`"))?;
    let skip: Vec<&str> = match &args[..cut] {
        [flag, names] if flag == "--skip" => names.split(',').collect(),
        _ => Vec::new(),
    };
    let [program, rest @ ..] = &args[cut + 1..] else { return Err(Error::internal("no agent")) };

    let terminals = host::Processes::default();
    let pings = Arc::new(Mutex::new(Vec::new()));
    let heard = pings.clone();
    let agent = Client::new()
        .info("interop-client", "1.0.0")
        .read_files(host::read)
        .write_files(host::write)
        .terminals(terminals.clone())
        .elicitation_forms()
        .elicitation_urls()
        .on_request(|request: Reverse, _| reverse(request))
        .on_notification(move |ping: Ping, _| {
            let params: Value = ping.0.parse().unwrap_or_default();
            host::lock(&heard).push(format!("ping:{}", params["n"]));
        })
        .connect(open(program, rest).await?)
        .await?;

    let scenarios = scenarios::Scenarios::new(agent.clone(), terminals, pings)?;
    for name in scenarios::NAMES.iter().filter(|name| !skip.contains(name)) {
        match tokio::time::timeout(Duration::from_secs(20), scenarios.run(name)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => println!("{}", json!({"scenario": name, "error": error.to_string()})),
            Err(_) => println!("{}", json!({"scenario": name, "error": "timed out"})),
        }
    }
    drop(scenarios);
    let exit = agent.shutdown().await;
    println!("{}", json!({"end": exit.and_then(|exit| exit.code())}));
    Ok(())
}
