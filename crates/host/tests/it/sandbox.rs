//! Commands in a sandbox: what they can read, write and inherit, and how they end.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use attache_host::sandbox::{Backend, Confinement, Environment, Limits, View};

use crate::kit::Scratch;
use crate::sandbox_kit::{Outside, backends, command, program, shell, with_namespaces};

#[test]
fn a_backend_is_found_once_and_really_tried() {
    let found = Backend::detect(&program()).expect("a sandbox on Linux");
    assert!(backends().contains(&found));
    assert_eq!(Backend::detect(&program()), Some(found));
    assert!(!Backend::Seatbelt.works(&program()));
}

#[test]
fn writing_ends_at_the_writable_directories() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let (inside, outside) = (scratch.dir("in"), scratch.dir("out"));
        scratch.file("out/old", "old");
        let confinement = Confinement::writable([&inside]);
        let script = format!(
            "cd {i}; echo a > a && mkdir d && mv a d/b && ln -s b d/link && rm d/link && chmod 700 d && touch d/b && echo wrote
             for try in 'echo x > {o}/new' 'echo x >> {o}/old' 'rm {o}/old' 'mkdir {o}/d' 'mv d/b {o}/b' 'ln -s x {o}/l' \
                'ln {o}/old hard' 'chmod 777 {o}/old' 'touch -d 2001-01-01 {o}/old' 'mv {o} {o}2' 'truncate -s 0 {o}/old'; do
                sh -c \"$try\" 2>/dev/null && echo \"did: $try\"
             done; true",
            i = inside.display(),
            o = outside.display()
        );
        // A private /tmp may contain copies of the names: what counts is what is left outside.
        let outcome = shell(backend, &confinement, &inside, &script);
        outcome.shows("wrote");
        assert_eq!(fs::read_to_string(inside.join("d/b")).unwrap(), "a\n", "{outcome:?}");
        assert_eq!(fs::metadata(inside.join("d")).unwrap().permissions().mode() & 0o777, 0o700);
        let left: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["old"], "{outcome:?}");
        let old = fs::metadata(outside.join("old")).unwrap();
        assert_eq!(old.len(), 3);
        assert_ne!(old.permissions().mode() & 0o777, 0o777, "{outcome:?}");
        assert!(old.modified().unwrap().elapsed().unwrap().as_secs() < 3600, "{outcome:?}");
        assert!(!inside.join("hard").exists(), "{outcome:?}");
    }
}

#[test]
fn a_read_only_view_shows_its_roots_and_the_system() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let root = scratch.dir("project");
        scratch.file("project/file", "content");
        scratch.file("secret", "treasure");
        scratch.link("project/out", scratch.join("secret"));
        scratch.link("project/etc", "/etc");
        let home = std::env::var("HOME").unwrap_or_else(|_| "/root".to_owned());
        let confinement = Confinement::read_only([&root]);
        assert!(confinement.is_read_only());
        let script = format!(
            "cat file; echo; cat out ../secret {s}; cat etc/shadow etc/hostname /etc/shadow /etc/hostname /etc/machine-id; ls {home} /root /home /var/lib
             echo x > new; echo x > file; rm file; echo temporary > $TMPDIR/t && cat $TMPDIR/t; cat < out; diff out file; cd / | cat ../secret",
            s = scratch.join("secret").display()
        );
        let outcome = shell(backend, &confinement, &root, &script);
        outcome.prints("content\ntemporary");
        outcome.hides("treasure");
        assert_eq!(fs::read_to_string(root.join("file")).unwrap(), "content");
        assert!(!root.join("new").exists());
    }
}

#[test]
fn nothing_else_is_visible() {
    for backend in with_namespaces() {
        let scratch = Scratch::new();
        let root = scratch.dir("project");
        let confinement = Confinement::read_only([&root]);
        let outcome =
            shell(backend, &confinement, &root, "ls -A / /etc /tmp /var; ls -d /proc/[0-9]* | wc -l");
        for name in ["home", "root", "sys", "run", "shadow", "ssh", "hostname", "sudoers"] {
            assert!(outcome.stdout.lines().all(|line| line != name), "{name} in {outcome:?}");
        }
        // The first process, the shell and what it runs.
        let count: usize = outcome.stdout.lines().last().unwrap().parse().unwrap();
        assert!(count <= 4, "{outcome:?}");
    }
}

#[test]
fn everything_can_be_read_but_what_is_hidden() {
    for &backend in backends() {
        let Some(outside) = Outside::visible() else { return };
        let base = outside.path();
        fs::create_dir_all(base.join("keys/deep")).unwrap();
        let write = |name: &str, text: &str| fs::write(base.join(name), text).unwrap();
        fs::create_dir_all(base.join("keys/project")).unwrap();
        write("open", "visible\n");
        write("keys/private", "treasure");
        write("keys/deep/private", "treasure");
        write("keys/project/file", "mine\n");
        write("token", "treasure");
        let mut confinement = Confinement::writable([base.join("keys/project")]);
        confinement.view =
            View::Everything { hidden: vec![base.join("keys"), base.join("token"), base.join("missing")] };
        let script = format!(
            "cd {b}; cat open keys/project/file; cat keys/private keys/deep/private token; cat keys/project/../private; cp token {b}/keys/project/t
             echo more >> keys/project/file; tail -1 keys/project/file",
            b = base.display()
        );
        let outcome = shell(backend, &confinement, base, &script);
        outcome.prints("visible\nmine\nmore");
        outcome.hides("treasure");
        let copy = fs::read_to_string(base.join("keys/project/t")).unwrap_or_default();
        assert_eq!(copy, "", "{outcome:?}");
    }
}

#[test]
fn the_private_temporary_directory_is_gone_afterwards() {
    for &backend in backends() {
        let scratch = Scratch::new();
        for confinement in [Confinement::read_only([scratch.path()]), Confinement::writable([scratch.path()])]
        {
            let script = "mkdir -p $TMPDIR/a/b && mkdir -m 0 $TMPDIR/closed && echo x > $TMPDIR/a/b/c && touch $TMPDIR/mine
                [ \"$(stat -c %u $TMPDIR/mine)\" = \"$(id -u)\" ] && echo $TMPDIR";
            let outcome = shell(backend, &confinement, scratch.path(), script);
            let tmp = Path::new(outcome.stdout.trim_end()).to_owned();
            assert!(tmp.is_absolute(), "{outcome:?}");
            match backend.guarantees().private_tmp {
                true => assert!(!tmp.join("mine").exists(), "{outcome:?}"),
                false => assert!(!tmp.exists(), "{outcome:?}"),
            }
        }
    }
}

#[test]
fn other_temporary_files_are_out_of_reach() {
    for backend in with_namespaces() {
        let scratch = Scratch::new();
        let shared = Scratch::new();
        shared.file("note", "treasure");
        let confinement = Confinement::writable([scratch.path()]);
        let script = format!(
            "cat {0}/note; ls -A /tmp /var/tmp /dev/shm; echo x > /dev/shm/x && echo x > /var/tmp/x && echo wrote",
            shared.path().display()
        );
        let outcome = shell(backend, &confinement, scratch.path(), &script);
        outcome.hides("treasure");
        outcome.shows("wrote");
        assert!(!Path::new("/dev/shm/x").exists() && !Path::new("/var/tmp/x").exists());
    }
}

#[test]
fn exit_codes_come_through() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let confinement = Confinement::read_only([scratch.path()]);
        for (script, code) in [
            ("exit 0", 0),
            ("exit 7", 7),
            ("exit 255", 255),
            ("kill -TERM $$", 143),
            ("kill -KILL $$", 137),
            ("kill -SEGV $$", 139),
        ] {
            assert_eq!(
                shell(backend, &confinement, scratch.path(), script).code,
                code,
                "{backend:?}: {script}"
            );
        }
        for (program, reason) in
            [("/no/such/program", "No such file"), ("no-such-program", ""), ("/etc", "denied")]
        {
            let output =
                command(backend, &confinement, &[program]).current_dir(scratch.path()).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(125));
            assert!(
                text.contains(&format!("cannot run `{program}`")) && text.contains(reason),
                "{backend:?}: {text}"
            );
        }
    }
}

#[test]
fn a_working_directory_that_is_not_visible_is_an_error() {
    for backend in with_namespaces() {
        let (scratch, other) = (Scratch::new(), Scratch::new());
        let outcome = shell(backend, &Confinement::read_only([scratch.path()]), other.path(), "echo ran");
        outcome.prints("");
        assert!(outcome.stderr.contains("is not visible in the sandbox"), "{outcome:?}");
    }
}

#[test]
fn arguments_and_input_arrive_as_they_are() {
    use std::io::Write as _;
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::Stdio;
    for &backend in backends() {
        let scratch = Scratch::new();
        let odd = std::ffi::OsStr::from_bytes(b"a b\n\"'--\xff");
        let argv =
            [std::ffi::OsStr::new("printf"), std::ffi::OsStr::new("%s|"), odd, std::ffi::OsStr::new("")];
        let confinement = Confinement::read_only([scratch.path()]);
        let output = command(backend, &confinement, &argv).current_dir(scratch.path()).output().unwrap();
        assert_eq!(output.stdout, b"a b\n\"'--\xff||", "{backend:?}");
        let mut child = command(backend, &confinement, &["cat"])
            .current_dir(scratch.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"through").unwrap();
        assert_eq!(child.wait_with_output().unwrap().stdout, b"through");
    }
}

#[test]
fn the_environment_is_cleaned() {
    for &backend in backends() {
        let scratch = Scratch::new();
        for (environment, kept) in [(Environment::Minimal, false), (Environment::Keep, true)] {
            let confinement = Confinement { environment, ..Confinement::writable([scratch.path()]) };
            let script = "cat /proc/self/environ | tr '\\0' '\\n'; cat /proc/[0-9]*/environ; env";
            let mut command = command(backend, &confinement, &["sh", "-c", script]);
            let output = command
                .current_dir(scratch.path())
                .env("OPENAI_API_KEY", "treasure")
                .env("ATTACHE_AUTH_TOKEN", "treasure")
                .env("ATTACHE_SANDBOX_BACKEND", "none")
                .env("PLAIN", "plain-value")
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(
                !text.contains("treasure") && !text.contains("ATTACHE"),
                "{backend:?} {environment:?}: {text}"
            );
            assert_eq!(text.contains("plain-value"), kept, "{backend:?} {environment:?}: {text}");
        }
    }
}

#[test]
fn limits_hold() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let limits = Limits { cpu_seconds: Some(1), file_bytes: Some(4096), tmp_bytes: Some(1 << 20) };
        let confinement = Confinement { limits, ..Confinement::writable([scratch.path()]) };
        let spin = shell(backend, &confinement, scratch.path(), "while :; do :; done");
        assert!([137, 152].contains(&spin.code), "{spin:?}");
        shell(backend, &confinement, scratch.path(), "head -c 100000 /dev/zero > big");
        assert_eq!(fs::metadata(scratch.join("big")).unwrap().len(), 4096);
        if backend.guarantees().tmp_size {
            let script = "for i in $(seq 2000); do head -c 4096 /dev/zero > $TMPDIR/$i || break; done 2>/dev/null; du -xsk $TMPDIR | cut -f1";
            let used: u64 =
                shell(backend, &confinement, scratch.path(), script).stdout.trim().parse().unwrap();
            assert!((512..=1024).contains(&used), "{backend:?}: {used} KiB");
        }
        shell(backend, &confinement, scratch.path(), "ulimit -c").prints("0");
    }
}

#[test]
fn a_confinement_that_cannot_be_enforced_runs_nothing() {
    let scratch = Scratch::new();
    let confinement =
        Confinement { read_only: vec![scratch.join(".git")], ..Confinement::writable([scratch.path()]) };
    let outcome = shell(Backend::Landlock, &confinement, scratch.path(), "echo ran");
    outcome.prints("");
    assert!(
        outcome.stderr.contains("cannot keep paths inside a writable directory read-only"),
        "{outcome:?}"
    );
    for path in ["/proc/self", "/sys", "/dev", "/dev/pts", "/"] {
        for &backend in backends() {
            for confinement in [Confinement::writable([path]), Confinement::read_only([path])] {
                let outcome = shell(backend, &confinement, Path::new("/"), "echo ran");
                if backend != Backend::Landlock || !confinement.write.is_empty() {
                    outcome.prints("");
                }
            }
        }
    }
    let outcome =
        shell(Backend::Seatbelt, &Confinement::read_only([scratch.path()]), scratch.path(), "echo ran");
    outcome.prints("");
}

#[test]
fn arguments_that_are_not_those_of_a_sandbox_run_nothing() {
    for words in [
        &["--", "echo", "ran"][..],
        &[],
        &["--inside=3,4,5,-1", "--", "echo", "ran"],
        &["echo", "ran"],
        &["--backend=none", "--", "echo", "ran"],
    ] {
        let output = std::process::Command::new(program()).arg("__sandbox").args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{words:?}");
        assert!(output.stdout.is_empty(), "{words:?}");
    }
}
