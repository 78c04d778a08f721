//! Every example message behaves as its line says.

use attache_testkit::example;
use attache_testkit::verify::{Verdict, verify};

/// Runs the lines and says which fail; those that need a running agent or client belong to the
/// testkit's tests.
fn run(bytes: &[u8], at_least: usize) {
    let mut failures = Vec::new();
    let mut good = 0;
    for line in example::read(bytes).expect("an example file") {
        match verify(&line, |_| Verdict::OutOfScope("needs a running peer")) {
            Verdict::Pass => good += 1,
            Verdict::Fail(why) => failures.push(format!("{} ({}, {}): {why}", line.id, line.ty, line.rule)),
            Verdict::OutOfScope(_) => {}
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), failures.len() + good, failures.join("\n"));
    assert!(good >= at_least, "only {good} lines were run");
}

#[test]
fn valid_messages_are_read_and_written_again() {
    run(include_bytes!("../data/valid.jsonl"), 333);
}

#[test]
fn invalid_messages_behave_as_they_should() {
    run(include_bytes!("../data/invalid.jsonl"), 165);
}
