//! A client for tests that provides every capability, sends one prompt to the agent that its
//! arguments name, and prints the most memory that it ever had, in kB.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use attache::client::{Client, Event};
use attache::wire::v1::PermissionOptionKind;
use attache::{Command, Link};
use attache_host::Host;
use attache_host::policy::{Mode, Policy};

#[tokio::main]
async fn main() {
    attache_conn::process::return_freed_memory();
    let mut arguments = std::env::args().skip(1);
    let command = Command::new(arguments.next().unwrap()).args(arguments);
    let host = Host::new(Policy::new(Mode::APPROVE_ALL));
    let client = Client::new()
        .read_files(host.files())
        .write_files(host.files())
        .terminals(host.terminals())
        .elicitation_forms()
        .elicitation_urls()
        .subagents();
    let agent = client.connect(Link::command(command).unwrap()).await.unwrap();
    // A task always waits for the next event, as in a real client.
    let mut events = agent.events().unwrap();
    let listener = tokio::spawn(async move { while events.next().await.is_some() {} });
    let mut session = agent.new_session(std::env::current_dir().unwrap()).await.unwrap();
    let mut turn = session.prompt("go").await.unwrap();
    let mut seen = 0;
    while let Some(event) = turn.next().await.unwrap() {
        // Made by the client itself.
        if matches!(event, Event::State(_)) {
            continue;
        }
        seen += 1;
        match event {
            Event::Permission(ask) => ask.choose_kind(PermissionOptionKind::AllowOnce),
            Event::Elicitation(ask) => ask.decline(),
            _ => {}
        }
    }
    drop(turn);
    println!("events {seen}");
    println!("peak {}", peak());
    drop((session, agent));
    listener.abort();
}

/// The most memory that was resident, in kB; zero where the system does not tell.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
