//! A command in a sandbox, for real: this test program starts itself again as the sandbox.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

use attache_host::sandbox::{Kind, Sandbox, become_command};

use crate::kit::Scratch;

const WORDS: &str = "ATTACHE_TEST_SANDBOX";

#[test]
#[ignore = "a program that its neighbours start"]
fn becomes_the_command() {
    let words = std::env::var(WORDS).unwrap();
    panic!("{}", become_command(words.split('\u{1f}').map(Into::into)));
}

/// Runs a shell line; `None` where the kernel has no Landlock.
fn run(sandbox: &Sandbox, line: &str) -> Option<Output> {
    if Kind::here() != Some(Kind::Landlock) {
        return None;
    }
    let (_, words) = sandbox.wrap(Kind::Landlock, Path::new("unused"), OsStr::new("sh"), &["-c", line]);
    let words: Vec<&str> = words.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let own = std::env::current_exe().unwrap();
    let child = Command::new(own)
        .args(["--ignored", "--exact", "sandbox::becomes_the_command", "--nocapture"])
        .env(WORDS, words.join("\u{1f}"))
        .output()
        .unwrap();
    Some(child)
}

#[test]
fn writing_ends_at_the_wall() {
    let scratch = Scratch::new();
    let (inside, outside) = (scratch.path().join("in"), scratch.path().join("out"));
    std::fs::create_dir(&inside).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("old"), "old").unwrap();
    let sandbox = Sandbox { writable: vec![inside.clone()], network: true };
    let (i, o) = (inside.display(), outside.display());
    let line = format!(
        "echo a > {i}/a; mkdir {i}/d && mv {i}/a {i}/d/b; cat {o}/old > {i}/read
         echo x > {o}/new; echo x >> {o}/old; rm {o}/old; mkdir {o}/d; mv {i}/read {o}/read; ln -s x {o}/l; sh -c 'echo x > {o}/grandchild'
         echo through > /dev/null && echo done"
    );
    let Some(output) = run(&sandbox, &line) else { return };
    assert!(String::from_utf8_lossy(&output.stdout).contains("done"), "{output:?}");
    assert_eq!(std::fs::read_to_string(inside.join("d/b")).unwrap(), "a\n");
    assert_eq!(std::fs::read_to_string(inside.join("read")).unwrap(), "old");
    let left: Vec<_> = std::fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["old"]);
    assert_eq!(std::fs::read_to_string(outside.join("old")).unwrap(), "old");
}

#[test]
fn the_network_ends_there_too() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // bash opens sockets by itself; without it there is nothing to try with.
    let line = format!(
        "command -v bash >/dev/null || {{ echo none; exit; }}; bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo reached || echo refused"
    );
    for (network, expected) in [(true, "reached"), (false, "refused")] {
        let Some(output) = run(&Sandbox { writable: Vec::new(), network }, &line) else { return };
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(expected) || text.contains("none"), "{network}: {output:?}");
    }
}

#[test]
fn a_command_that_is_not_there_is_an_error() {
    let Some(output) = run(&Sandbox::default(), "exec /no/such/program") else { return };
    assert!(!output.status.success());
}
