//! `attache check` against real programs that break exactly one rule: the peers of
//! `attache-mutants` as processes, judged by this program.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::world::{Run, World};

/// Far more than anything here takes on a machine that has other things to do: only what never
/// comes takes as long.
const DEADLINE: [&str; 2] = ["--deadline", "30"];

fn peer(name: &str) -> String {
    let path: PathBuf =
        Path::new(env!("CARGO_BIN_EXE_attache")).parent().unwrap().join("examples").join(name);
    assert!(path.exists(), "build it first: cargo build -p attache-cli --example {name}");
    path.to_str().unwrap().to_owned()
}

fn check_agent(scenarios: &[&str], variant: &[&str]) -> Run {
    let agent = peer("mutant_agent");
    let mut args = vec!["check", "agent", "--format", "json"];
    args.extend(DEADLINE);
    args.extend(scenarios.iter().flat_map(|name| ["--scenario", *name]));
    args.extend(["--", &agent]);
    World::new().run(&[&args[..], variant].concat())
}

fn check_client(scenarios: &[&str], variant: &[&str]) -> Run {
    let client = peer("mutant_client");
    let load =
        format!("{client} --act load --session {{session}} --prompt {{prompt}} --cwd {{cwd}} {{agent}}");
    let load = format!("load={load}");
    let mut args =
        vec!["check", "client", "--format", "json", "--action", "cancel=SIGINT", "--action", &load];
    args.extend(DEADLINE);
    args.extend(scenarios.iter().flat_map(|name| ["--scenario", *name]));
    args.extend(["--", &client, "--prompt", "{prompt}", "--cwd", "{cwd}"]);
    World::new().run(&[&args[..], variant, &["{agent}"]].concat())
}

fn with<'a>(report: &'a Value, status: &str) -> BTreeSet<&'a str> {
    let rules = report["rules"].as_array().unwrap().iter();
    rules.filter(|rule| rule["status"] == status).map(|rule| rule["id"].as_str().unwrap()).collect()
}

/// Nothing is broken, and these were seen to be kept.
#[track_caller]
fn assert_good(run: Run, kept: &[&str]) {
    let run = run.code(0);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["conclusion"], "nothing broken");
    assert_eq!(with(&report, "fail"), BTreeSet::new());
    let passed = with(&report, "pass");
    let missing: Vec<_> = kept.iter().filter(|rule| !passed.contains(**rule)).collect();
    assert!(missing.is_empty(), "{missing:?} did not show, only {passed:?}");
}

/// This rule is broken, and no other.
#[track_caller]
fn assert_broken(run: Run, rule: &str) {
    let run = run.code(1);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["conclusion"], "broken");
    assert_eq!(with(&report, "fail"), BTreeSet::from([rule]), "{}", run.stdout);
}

/// This rule is broken and no other; it is advice, which does not count for the verdict.
#[track_caller]
fn assert_advised(run: Run, rule: &str) {
    let run = run.code(0);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["conclusion"], "nothing broken");
    assert_eq!(with(&report, "fail"), BTreeSet::from([rule]), "{}", run.stdout);
}

#[test]
fn the_good_agent_is_a_program_like_any_other() {
    let scenarios = [
        "version-1",
        "baseline",
        "lines",
        "read",
        "write",
        "run",
        "plan",
        "cancel-asking",
        "cancel-running",
        "list",
        "load",
        "permission-waits",
        "fault-garbage",
        "fault-split",
        "fault-long-line",
    ];
    let kept = [
        "RPC-01",
        "STDIO-01",
        "STDIO-08",
        "INIT-05",
        "PROMPT-08",
        "FS-04",
        "TERM-05",
        "PERM-13",
        "PLAN-01",
        "CANCEL-05",
        "LIST-05",
        "SESS-11",
        "RPC-09",
    ];
    assert_good(check_agent(&scenarios, &[]), &kept);
}

#[test]
fn an_envelope_of_another_version_is_found() {
    assert_broken(check_agent(&["bare-client"], &["RPC-01"]), "RPC-01");
}

#[test]
fn a_second_answer_is_found() {
    assert_broken(check_agent(&["modes"], &["RPC-24/twice"]), "RPC-24");
}

#[test]
fn an_early_effect_is_found() {
    assert_broken(check_agent(&["permission-waits"], &["PERM-13"]), "PERM-13");
}

#[test]
fn a_terminal_that_was_left_is_found() {
    assert_broken(check_agent(&["run", "cancel-running"], &["TERM-05"]), "TERM-05");
}

#[test]
fn a_log_on_standard_output_is_found() {
    assert_broken(check_agent(&["baseline"], &["STDIO-08/log"]), "STDIO-08");
}

#[test]
fn an_agent_that_dies_is_found() {
    assert_advised(check_agent(&["odd-code"], &["RPC-16"]), "RPC-16");
}

#[test]
fn the_good_client_is_a_program_like_any_other() {
    let scenarios = [
        "first-words",
        "agreed-version",
        "unknown-method",
        "read-lines",
        "write-new",
        "terminal-run",
        "terminal-release",
        "cancel",
        "load",
        "not-json",
        "meta",
        "end",
    ];
    let kept = [
        "RPC-01",
        "STDIO-09",
        "INIT-01",
        "INIT-02",
        "RPC-12",
        "FS-10",
        "TERM-11",
        "CANCEL-01",
        "RPC-09",
        "EXT-01",
        "SESS-10",
    ];
    assert_good(check_client(&scenarios, &[]), &kept);
}

#[test]
fn a_client_that_does_not_wait_for_the_first_answer_is_found() {
    assert_advised(check_client(&["agreed-version"], &["--variant", "INIT-02"]), "INIT-02");
}

#[test]
fn garbage_of_a_client_is_found() {
    assert_broken(check_client(&["agreed-version"], &["--variant", "STDIO-09"]), "STDIO-09");
}

#[test]
fn a_terminal_that_works_after_its_release_is_found() {
    assert_broken(check_client(&["terminal-release"], &["--variant", "TERM-11"]), "TERM-11");
}

#[test]
fn a_client_that_answers_what_it_does_not_know_is_found() {
    assert_advised(check_client(&["unknown-method"], &["--variant", "RPC-12"]), "RPC-12");
}
