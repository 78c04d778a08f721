//! The examples whose error lies in the context, against a running agent and a running client.

#![cfg(feature = "sdk")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use attache_rpc::code;
use attache_testkit::verify::{Verdict, verify};
use attache_testkit::{example, semantic};
use attache_wire::v1::ErrorCode;

fn run(bytes: &[u8], at_least: usize) {
    run_some(bytes, at_least, |line| line.class.as_deref() == Some("semantic"));
}

fn run_some(bytes: &[u8], at_least: usize, is_run: impl Fn(&example::Example) -> bool) {
    let lines = example::read(bytes).expect("an example file");
    let mut failures = Vec::new();
    let mut good = 0;
    for line in lines.iter().filter(|line| is_run(line)) {
        match verify(line, semantic::verify) {
            Verdict::Pass => good += 1,
            Verdict::Fail(why) => {
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
    run(include_bytes!("../../../../crates/wire/tests/data/invalid.jsonl"), 56);
}

/// The same for contexts that the catalogue's sample leaves out: logins, closed sessions, released
/// terminals, …
#[test]
fn more_of_them_do_too() {
    run(include_bytes!("../data/more.jsonl"), 92);
}

/// Forms of version 2 that the sample leaves out: unknown and malformed states, reasons, lists and
/// members, values at their limits, refusals, and methods that are gone.
#[test]
fn more_of_version_2_behaves_as_it_should() {
    run_some(include_bytes!("../data/v2.jsonl"), 219, |_| true);
}

/// Valid, but not for this peer: an override it does not take, a cursor it never gave out, a mode
/// and a protocol it does not know; in version 2 extensions of servers, values and content, a mode
/// of elicitation, and a call that cannot be cancelled.
const ELSEWHERE: &[&str] =
    &["V-033", "V-053", "V-188", "V-214", "V-322", "V-336", "V-340", "V-345", "V-439", "V-457", "V-472"];

/// Refusing for reasons of its own is a peer's right; calling a valid message malformed is not.
#[test]
fn no_valid_message_is_called_malformed() {
    let lines = example::read(include_bytes!("../../../../crates/wire/tests/data/valid.jsonl"))
        .expect("an example file");
    let mut failures = Vec::new();
    let mut asked = 0;
    let has_receiver = |line: &&example::Example| !line.is_answer() && line.dir != "cond";
    for line in lines.iter().filter(has_receiver) {
        if ELSEWHERE.contains(&line.id.as_str()) {
            continue;
        }
        asked += 1;
        match semantic::answer(line) {
            Ok(Some(answer))
                if [-32700, -32600, -32602].iter().any(|code| answer["error"]["code"] == *code) =>
            {
                failures.push(format!("{} ({}): {answer}", line.id, line.method));
            }
            Ok(_) => {}
            Err(failure) => failures.push(format!("{} ({}): {failure}", line.id, line.method)),
        }
    }
    assert!(failures.is_empty(), "{} of {asked}:\n{}", failures.len(), failures.join("\n"));
}

/// `attache-rpc` and `attache-wire` do not depend on each other, so each has a table of the error
/// codes.
#[test]
fn both_tables_of_error_codes_are_equal() {
    let pairs = [
        (code::PARSE_ERROR, ErrorCode::PARSE_ERROR),
        (code::INVALID_REQUEST, ErrorCode::INVALID_REQUEST),
        (code::METHOD_NOT_FOUND, ErrorCode::METHOD_NOT_FOUND),
        (code::INVALID_PARAMS, ErrorCode::INVALID_PARAMS),
        (code::INTERNAL_ERROR, ErrorCode::INTERNAL_ERROR),
        (code::CANCELLED, ErrorCode::REQUEST_CANCELLED),
        (code::AUTH_REQUIRED, ErrorCode::AUTH_REQUIRED),
        (code::RESOURCE_NOT_FOUND, ErrorCode::RESOURCE_NOT_FOUND),
    ];
    for (rpc, wire) in pairs {
        assert_eq!(ErrorCode(rpc), wire);
    }
}
