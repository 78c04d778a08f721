#![allow(clippy::unwrap_used)]

use super::*;

struct Project(PathBuf);

impl Project {
    fn new(name: &str) -> Self {
        let at = std::env::temp_dir().join(format!("attache-shell-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&at);
        std::fs::create_dir_all(at.join("root/src")).unwrap();
        std::fs::create_dir_all(at.join("other")).unwrap();
        std::fs::write(at.join("root/src/a.rs"), "a").unwrap();
        std::fs::write(at.join("other/secret"), "s").unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at.join("other"), at.join("root/way-out")).unwrap();
            std::os::unix::fs::symlink("/no/such/place", at.join("root/dangling")).unwrap();
        }
        Self(at)
    }
    fn ask(&self, line: &str) -> Result<(), NotReadOnly> {
        let root = self.0.join("root");
        check_read_only(line, &root, std::slice::from_ref(&root))
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn read_only_commands_are_accepted() {
    let project = Project::new("looks");
    for line in [
        "ls",
        "ls -la src",
        "cat src/a.rs | head -20 | wc -l",
        "grep -rn 'fn main' src",
        "grep -e x -e y src/a.rs",
        "rg -n --glob '*.rs' needle src",
        "find . -name '*.rs' -type f",
        "find src ! -name x -o -empty",
        "git status --short",
        "git --no-pager log --oneline -5",
        "git branch --show-current",
        "pwd && ls; true",
        "cat nothing-yet.txt",
        "sort -u src/a.rs",
        "uniq -c src/a.rs",
        "echo 'rm -rf /' \"; rm x\"",
        "date +%Y",
        "cd src && cat a.rs",
        "ls 2>/dev/null",
        "ls 2>&1 | tail -n 3",
        "cat < src/a.rs",
        "tail -5 src/a.rs",
        "find . \\( -name a -o -name b \\)",
        "head -c 10 src/../src/a.rs",
        "rg --files",
    ] {
        assert_eq!(project.ask(line), Ok(()), "{line}");
    }
}

#[test]
fn commands_that_may_change_something_are_refused() {
    let project = Project::new("changes");
    for line in [
        "rm x",
        "ls; rm x",
        "ls && rm x",
        "ls || rm x",
        "ls | tee x",
        "ls\nrm x",
        "ls > x",
        "ls >> x",
        "ls 2> x",
        "cat x >| y",
        "echo $(rm x)",
        "echo `rm x`",
        "echo \"$(rm x)\"",
        "PAGER=x git log",
        "LD_PRELOAD=./x.so ls",
        "find . -delete",
        "find . -exec rm {} +",
        "find . -name x -fprint y",
        "find * -name x",
        "sort -o x y",
        "sort --output=x y",
        "sort -ox y",
        "sort -S1 --compress-program=./x y",
        "uniq a b",
        "tree -o x",
        "date -s 2020-01-01",
        "date 010100002020",
        "git diff",
        "git show",
        "git log -p",
        "git -c core.pager=x status",
        "git log --output=x",
        "git branch new",
        "git branch -D main",
        "git checkout .",
        "git -C /tmp status",
        "git remote add x y",
        "rg --pre ./x y",
        "rg -z x",
        "grep -f x y",
        "./ls",
        "/tmp/ls",
        "sh -c ls",
        "env ls",
        "xargs rm",
        "sudo ls",
        "eval ls",
        "exec ls",
        ". ./x",
        "source x",
        "tail -f x",
        "wc *",
        "wc -l ./*.rs",
        "diff -r src x",
        "ls *",
        "cat -- *",
        "command ls",
        "l\\s; r\\m x",
        "ls & rm x",
        "file -C x",
        "awk '{system(\"x\")}' y",
        "sed -i s/a/b/ y",
        "sed 'w x' y",
        "wc --files0-from=x",
        "python3 -c 1",
        "cargo test",
        "A=1",
        "ls -e",
        "alias ls=rm",
        "find . -not -name -[ad]*",
        "find . -name x*",
        "find . -printf *",
        "tree -Io x Makefile",
        "tree -Lo 1 Makefile",
        "sort -uo x y",
        "git log --format=%GG",
        "git log '--pretty=%G?'",
        "git ls-files -m '%Gx'",
        "=ls",
        "cat < -",
    ] {
        assert!(project.ask(line).is_err(), "{line}");
    }
}

#[test]
fn reading_outside_the_roots_is_refused() {
    let project = Project::new("outside");
    let mut lines: Vec<&str> = vec![
        "cat /etc/passwd",
        "cat ../other/secret",
        "cat ~/.ssh/id_rsa",
        "ls /",
        "cd .. && ls",
        "cd / && cat etc/passwd",
        "find / -name x",
        "cat < /etc/passwd",
        "grep -r x ..",
        "grep x ../other/secret",
        "rg --files ..",
        "head src/../../other/secret",
        "diff src/a.rs ../other/secret",
        "cat ./*/../../other/secret",
        "cd",
        "cd -",
        "rg x /",
        "grep -e x /etc/passwd",
        "git status /",
        "grep -ie . ../other/secret",
        "grep -ne . ../other/secret",
        "grep --regexp=. ../other/secret",
        "cd src | cat ../../other/secret",
        "true || cd src; cat ../../other/secret",
        "cd src && true; cat ../../other/secret",
        "cd src && true || cat ../../other/secret",
        "cd nothing; cat ../other/secret",
        "diff src src",
    ];
    if cfg!(unix) {
        lines.extend(["cat way-out/secret", "cat dangling", "cd way-out && cat secret", "ls way-out/../"]);
    }
    for line in lines {
        assert!(
            matches!(
                project.ask(line),
                Err(NotReadOnly::Outside(_) | NotReadOnly::Program(_) | NotReadOnly::Argument(_))
            ),
            "{line}: {:?}",
            project.ask(line)
        );
    }
}

#[test]
fn the_reason_is_reported() {
    let project = Project::new("reason");
    assert_eq!(project.ask("ls; rm x").unwrap_err().to_string(), "`rm` may change something");
    assert_eq!(project.ask("ls > x").unwrap_err().to_string(), "`>x` changes something");
    assert_eq!(
        project.ask("cat /etc/passwd").unwrap_err().to_string(),
        "`/etc/passwd` is outside the session's directories"
    );
}
