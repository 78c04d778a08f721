//! Which command lines are simple, and what hides in the others.

use attache_host::policy::CommandLine;
use proptest::prelude::*;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn begins(line: &CommandLine, prefix: &str) -> bool {
    line.begins_with_any(&[words(prefix)])
}

#[test]
fn simple_commands_are_words() {
    let cases: &[(&str, &[&str])] = &[
        ("git status", &["git", "status"]),
        ("  cargo   test\t--all ", &["cargo", "test", "--all"]),
        ("grep -rn 'a b|c' src", &["grep", "-rn", "a b|c", "src"]),
        ("echo \"it's fine\"", &["echo", "it's fine"]),
        ("echo ''", &["echo", ""]),
        ("a'b'\"c\"d", &["abcd"]),
        ("cargo build --features=x,y", &["cargo", "build", "--features=x,y"]),
        ("ls Größe", &["ls", "Größe"]),
        ("scp user@host:/a/b+c.txt .", &["scp", "user@host:/a/b+c.txt", "."]),
    ];
    for (text, expected) in cases {
        assert_eq!(
            CommandLine::shell(text).simple().unwrap(),
            [expected.iter().map(ToString::to_string).collect::<Vec<_>>()],
            "{text}"
        );
    }
}

#[test]
fn shell_syntax_is_not_simple() {
    let lines = [
        "git status; rm -rf /",
        "git status && rm -rf /",
        "git status || rm -rf /",
        "git status & rm -rf /",
        "git status | sh",
        "git status\nrm -rf /",
        "git status\rrm -rf /",
        "git status $(rm -rf /)",
        "git status `rm -rf /`",
        "git status \"$(rm -rf /)\"",
        "git status \"`rm -rf /`\"",
        "git status > /etc/passwd",
        "git status >> x",
        "git status < x",
        "git status <<E",
        "git status <(rm)",
        "GIT_SSH_COMMAND=rm git status",
        "A=b C=d git status",
        "PATH=/tmp git status",
        "git status ${IFS}x",
        "git status $HOME",
        "git status *",
        "git status ?",
        "git status [a]",
        "git status ~",
        "git status {a,b}",
        "git status #x",
        "! git status",
        "(git status)",
        "{ git status; }",
        "git 'status",
        "git \"status",
        "'' git status",
        "if git status",
        "time git status",
        "exec git status",
        "eval git status",
        ". git status",
        "=git status",
        "git status =ls",
        "git status > x && git status",
        "git status\u{0}",
        "git status \u{1b}[31m",
        "git status ^x",
        "",
        "   ",
    ];
    for line in lines {
        let line = CommandLine::shell(line);
        assert!(
            !begins(&line, "git status") && !begins(&line, "git"),
            "{:?}: {:?}",
            line.text(),
            line.simple()
        );
    }
}

#[test]
fn a_prefix_is_whole_words() {
    let begins = |line: &str, prefix: &str| begins(&CommandLine::shell(line), prefix);
    assert!(begins("git status", "git status"));
    assert!(begins("git status --short", "git status"));
    assert!(!begins("git statusx", "git status"));
    assert!(!begins("git", "git status"));
    assert!(!begins("git -c alias.status=!rm status", "git status"));
    // Another program of that name is another program.
    assert!(!begins("./git status", "git status"));
    assert!(!begins("/tmp/git status", "git status"));
    assert!(!CommandLine::shell("git status").begins_with_any(&[vec![]]));
    assert!(begins("git status; git status -s && git status 2>/dev/null", "git status"), "each of several");
}

#[test]
fn a_program_with_arguments_needs_no_shell() {
    let line = CommandLine::program("git", &["commit", "-m", "a; b $(c)"]);
    assert!(begins(&line, "git commit"));
    assert_eq!(line.text(), "git commit -m 'a; b $(c)'");
    let shell = CommandLine::program("bash", &["-lc", "git status"]);
    assert!(begins(&shell, "git status"), "the text is what counts");
    let wicked = CommandLine::program("/bin/sh", &["-c", "git status; rm x"]);
    assert!(!begins(&wicked, "git status") && !begins(&wicked, "/bin/sh"));
    let fake = CommandLine::program("/tmp/bash", &["-c", "git status"]);
    assert!(!begins(&fake, "git status"));
    let more = CommandLine::program("bash", &["-c", "git status", "x"]);
    assert!(!begins(&more, "git status"));
}

#[test]
fn denied_commands_are_found_in_any_nesting() {
    let may = |line: &str, prefix: &str| CommandLine::shell(line).may_run(&words(prefix));
    for line in [
        "rm -rf /",
        "/bin/rm -rf /",
        "cd x && rm -rf /",
        "ls; rm -rf /",
        "echo $(rm -rf /)",
        "echo `rm -rf /`",
        "A=b rm -rf /",
        "sudo rm -rf /",
        "env -i rm -rf /",
        "xargs rm -rf",
        "find . -exec rm -rf {} +",
        "bash -c 'rm -rf /'",
        "sh -c \"rm  -rf /\"",
        "true|rm -rf /",
        "if true; then rm -rf /; fi",
        "nohup rm -rf / &",
        "timeout 5 rm -rf /",
        "r\\\nm -rf /",
        "cd x && r'm' -rf /",
        "cd x && \\rm -rf /",
        "rm --verbose -rf /",
        "rm '-rf' /",
    ] {
        assert!(may(line, "rm -rf"), "{line}");
    }
    assert!(!may("git rm -rf x", "rm -rf"), "a word of another command");
    assert!(!may("rm file", "rm -rf"));
    assert!(!may("ls", "rm"));
    assert!(may("git push --force; ls", "git push"));
    assert!(may("git -C elsewhere push", "git push"));
    assert!(!may("git pull", "git push"));
}

proptest! {
    /// The shell itself is the judge: what we call simple words, it calls the same words.
    #[test]
    fn a_shell_sees_the_same_words(text in r#"[a-c '"=/.$;&|<>()*?~#!{}\[\]\\`-]{1,16}"#) {
        let text = format!("x {text}");
        if let Some([words]) = CommandLine::shell(&text).simple() {
            let script = format!("x() {{ printf '%s\\0' x \"$@\"; }}; {text}");
            // Should we be wrong, the shell may make files; let it.
            let scratch = crate::kit::Scratch::new();
            let mut shell = std::process::Command::new("sh");
            let output = shell.args(["-c", &script]).current_dir(scratch.path()).output().unwrap();
            let mut seen: Vec<String> =
                String::from_utf8(output.stdout).unwrap().split('\0').map(str::to_owned).collect();
            seen.pop();
            prop_assert_eq!(&seen, words);
        }
    }
}
