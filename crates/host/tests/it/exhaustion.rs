//! A client keeps its memory with an agent that wants all of it: real processes on both sides, and
//! the client's peak as the system counted it.

use std::path::PathBuf;
use std::process::Command;

use crate::kit::Scratch;

/// What a client may have at most, in kB. It needs about a sixth of this by itself.
const MOST: u64 = 64 << 10;

fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let path = own.parent().unwrap().parent().unwrap().join("examples").join(name);
    assert!(path.exists(), "build it first: cargo build -p attache-host --example {name}");
    path
}

/// Lets an agent attack a client. Returns how many events the client saw.
fn attack(name: &str) -> u64 {
    let scratch = Scratch::new();
    scratch.file("big", "0123456789abcdef\n".repeat((9 << 20) / 17));
    let output = Command::new(example("plain_client"))
        .arg(example("hostile_agent"))
        .arg(name)
        .current_dir(scratch.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let number = |start: &str| -> u64 {
        let found = text.lines().find_map(|line| line.strip_prefix(start)?.trim().parse().ok());
        found.unwrap_or_else(|| panic!("{name}: {text}{}", String::from_utf8_lossy(&output.stderr)))
    };
    let peak = number("peak");
    eprintln!("{name}: {peak} kB");
    assert!(peak > 1_000 && peak < MOST, "{name}: the client had {peak} kB");
    number("events")
}

#[test]
fn files_that_are_asked_for_and_never_taken() {
    attack("unread-reads");
}

#[test]
fn files_that_are_asked_for_before_any_is_taken() {
    attack("reads");
}

#[test]
fn output_of_many_terminals() {
    attack("unread-outputs");
}

#[test]
fn contents_of_tool_calls() {
    // Those of 10 MB are delivered, and those of 20 MB are larger than a frame may be.
    assert_eq!(attack("contents"), 20);
}

#[test]
fn updates_of_unannounced_calls() {
    assert_eq!(attack("orphans"), 0);
}

#[test]
fn very_many_tool_calls() {
    assert_eq!(attack("calls"), 100_000);
}

#[test]
fn unopened_sessions() {
    // Every subagent is announced, and a thousand of them have events of their own.
    assert_eq!(attack("sessions"), 20_000 + 1_024);
}

#[test]
fn updates_before_the_session_has_its_id() {
    attack("early");
}

#[test]
fn lists_of_very_many_entries() {
    attack("lists");
}

#[test]
fn forms_of_very_many_fields() {
    // The one of 500 fields is shown.
    assert_eq!(attack("forms"), 1);
}

#[test]
fn questions_by_the_thousand() {
    attack("permissions");
}

#[test]
fn files_that_are_written_at_once() {
    attack("writes");
}

#[test]
fn notifications_and_noise() {
    attack("notifications");
}

#[test]
fn unknown_requests() {
    attack("unread-unknown");
}
