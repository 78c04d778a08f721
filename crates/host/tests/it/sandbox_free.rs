//! Commands that run without a question, in hostile repositories: they see the project, and change
//! and start nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use attache_host::sandbox::Confinement;

use crate::kit::Scratch;
use crate::sandbox_kit::{backends, command, shell};

/// Runs git outside, with an identity and without the user's settings.
fn git(directory: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=u", "-c", "user.email=u@example.org", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
}

fn has_git() -> bool {
    let found = Command::new("git").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: git is not installed");
    }
    found
}

/// A repository whose settings name a program wherever git takes one.
fn hostile(scratch: &Scratch) -> std::path::PathBuf {
    let root = scratch.dir("repository");
    let evil = scratch.file("repository/evil", "#!/bin/sh\nprintf EXE%s CUTED >&2\nexec cat\n");
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    git(&root, &["init", "-q"]);
    scratch.file("repository/file.txt", "one\n");
    scratch.file("repository/.gitattributes", "*.txt filter=evil diff=evil merge=evil\n");
    git(&root, &["add", "."]);
    git(&root, &["commit", "-q", "-m", "first"]);
    scratch.file("repository/file.txt", "two\n");
    let evil = evil.to_str().unwrap();
    for key in [
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "diff.evil.textconv",
        "diff.evil.command",
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "core.alternateRefsCommand",
        "credential.helper",
        "gpg.program",
        "gpg.ssh.program",
        "pager.log",
        "pager.status",
    ] {
        git(&root, &["config", key, evil]);
    }
    git(&root, &["config", "log.showSignature", "true"]);
    git(&root, &["config", "core.hooksPath", root.to_str().unwrap()]);
    git(&root, &["config", "format.pretty", "%H %G? %GG %s"]);
    // A bare repository inside the tree, which survives a clone.
    let bare = scratch.dir("repository/vendor");
    git(&bare, &["init", "-q", "--bare", "lib"]);
    let mut settings = fs::read_to_string(bare.join("lib/config")).unwrap();
    settings.push_str(&format!(
        "[core]\n\tfsmonitor = {evil}\n\tbare = false\n\tworktree = .\n[filter \"e\"]\n\tclean = {evil}\n"
    ));
    fs::write(bare.join("lib/config"), settings).unwrap();
    fs::write(bare.join("lib/.gitattributes"), "* filter=e\n").unwrap();
    root
}

#[test]
fn git_starts_no_program_of_a_repository() {
    if !has_git() {
        return;
    }
    for &backend in backends() {
        let scratch = Scratch::new();
        let root = hostile(&scratch);
        let confinement = Confinement::read_only([&root]);
        for (line, expected) in [
            ("git status --short", " M file.txt"),
            ("git diff", "+two"),
            ("git diff HEAD --stat", "file.txt"),
            ("git log", "first"),
            ("git log -p --format=%GG%s", "first"),
            ("git show HEAD:file.txt", "one"),
            ("git ls-files -m", "file.txt"),
            ("git blame file.txt", "two"),
            ("git branch -a", "main"),
            ("git grep one HEAD", "file.txt:one"),
        ] {
            let outcome = shell(backend, &confinement, &root, line);
            outcome.hides("EXECUTED");
            outcome.shows(expected);
        }
        for line in [
            "cd vendor/lib && git status",
            "cd vendor/lib && git ls-files -m",
            "git fetch https://example.org/x",
            "git fetch ssh://example.org/x",
            "git ls-remote ext::./evil",
            "git commit --allow-empty -m x",
            "git checkout -f",
            "git verify-commit HEAD",
            "git gc",
        ] {
            shell(backend, &confinement, &root, line).hides("EXECUTED");
        }
        assert_eq!(fs::read_to_string(root.join("file.txt")).unwrap(), "two\n");
    }
}

#[test]
fn git_works_on_a_terminal_too() {
    if !has_git() {
        return;
    }
    for &backend in backends() {
        let scratch = Scratch::new();
        let root = hostile(&scratch);
        let line =
            Confinement::read_only([&root]).command(backend, &crate::sandbox_kit::program(), ["git", "log"]);
        let quoted: Vec<String> =
            line.iter().map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', "'\\''"))).collect();
        let output = Command::new("script")
            .args(["-qec", &quoted.join(" "), "/dev/null"])
            .current_dir(&root)
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("first") && !text.contains("EXECUTED"), "{backend:?}: {text}");
    }
}

#[test]
fn harmless_looking_commands_read_and_change_nothing_outside() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let root = scratch.dir("project");
        let home = scratch.dir("home");
        scratch.file("home/.ssh/id_rsa", "treasure");
        scratch.file("treasure", "treasure");
        for name in ["a/b/c/x", "d1/y", "d2/y", "-a", "-delete", "-exec", "Makefile", "keep"] {
            scratch.file(&format!("project/{name}"), "mine\n");
        }
        scratch.link("project/-", "../treasure");
        scratch.link("project/d1/x", "../../treasure");
        scratch.link("project/environ", "/proc/self/environ");
        let before = listing(&root);
        let confinement = Confinement::read_only([&root]);
        for line in [
            "grep -ie . ~/.ssh/id_rsa".replace('~', home.to_str().unwrap()),
            "cd a/b/c | cat ../treasure".to_owned(),
            "true || cd a; cat ../treasure ../home/.ssh/id_rsa".to_owned(),
            "cat < -".to_owned(),
            "diff d1 d2; diff -r d1 d2".to_owned(),
            "cat environ /proc/self/environ /proc/$PPID/environ".to_owned(),
            "find . -not -name -[ad]*; find . -delete; find . -name '*' -fprintf keep x".to_owned(),
            "find / -name id_rsa -exec cat {} +".to_owned(),
            "sort -o keep Makefile; tee keep < Makefile; sed -i s/mine/x/ keep; awk 'BEGIN { print \"x\" > \"keep\" }'".to_owned(),
            "tree -Io x Makefile; date -s 2001-01-01; xxd -r - keep < /dev/null".to_owned(),
            "ls -R .. ; cat ../* ../*/* ../*/.ssh/*; tar cf - .. | tr -d '\\0'; cp ../treasure /tmp/x && cat /tmp/x".to_owned(),
        ] {
            let output = command(backend, &confinement, &["/bin/sh", "-c", &line])
                .current_dir(&root)
                .env("HOME", &home)
                .env("OPENAI_API_KEY", "treasure")
                .output()
                .unwrap();
            // The name of the file is no secret, its content is.
            let text = String::from_utf8_lossy(&output.stdout).replace("../treasure", "").replace("x -> treasure", "");
            assert!(!text.lines().any(|line| line == "treasure" || line.contains("=treasure")), "{backend:?}: {line}: {text}");
            assert_eq!(listing(&root), before, "{backend:?}: {line}: {output:?}");
        }
    }
}

/// All files below a directory, with their content.
fn listing(directory: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            files.extend(listing(&entry.path()));
        } else if entry.file_type().unwrap().is_file() {
            files.push((entry.path(), fs::read(entry.path()).unwrap()));
        }
    }
    files.sort();
    files
}
