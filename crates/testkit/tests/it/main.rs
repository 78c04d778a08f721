//! The examples whose error lies in the context, against a running agent and a running client.

#![cfg(feature = "sdk")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use attache_testkit::judge::{Verdict, judge};
use attache_testkit::{line, semantic};

fn run(bytes: &[u8], at_least: usize) {
    let lines = line::read(bytes).expect("an example file");
    let mut failures = Vec::new();
    let mut good = 0;
    for line in lines.iter().filter(|line| line.class.as_deref() == Some("semantic")) {
        match judge(line, semantic::judge) {
            Verdict::Good => good += 1,
            Verdict::Bad(why) => {
                failures.push(format!("{} ({}, {}): {why}", line.id, line.method, line.rule))
            }
            Verdict::OutOfScope(_) => {}
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), failures.len() + good, failures.join("\n"));
    assert!(good >= at_least, "only {good} lines were run");
}

#[test]
fn examples_that_need_a_peer_behave_as_they_should() {
    run(include_bytes!("../../../wire/tests/data/invalid.jsonl"), 47);
}

/// The same for contexts that the catalogue's sample leaves out: logins, closed sessions, released terminals, …
#[test]
fn more_of_them_do_too() {
    run(include_bytes!("../data/more.jsonl"), 81);
}
