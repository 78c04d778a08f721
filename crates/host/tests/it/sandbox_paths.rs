//! Paths of a sandbox: links, odd names, nested roots, what is protected inside a writable
//! directory, and what is missing.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use attache_host::sandbox::{Confinement, Limits, View};

use crate::kit::Scratch;
use crate::sandbox_kit::{Outcome, backends, command, shell, start_ready, with_namespaces};

/// Names in a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn roots_may_have_any_name() {
    for &backend in backends() {
        let scratch = Scratch::new();
        for name in
            [&b"a b"[..], b"c:d", b"new\nline", b"\xff\xfe", b"%2f", b"--", b"quote'\"\\", b"t\xc3\xa4g"]
        {
            let root = scratch.path().join(OsStr::from_bytes(name));
            fs::create_dir(&root).unwrap();
            fs::write(root.join("file"), "content").unwrap();
            for confinement in [Confinement::read_only([&root]), Confinement::writable([&root])] {
                let outcome = shell(backend, &confinement, &root, "cat file; echo x > new && echo wrote");
                let writes = !confinement.write.is_empty();
                outcome.prints(if writes { "contentwrote" } else { "content" });
                assert_eq!(root.join("new").exists(), writes);
            }
        }
    }
}

#[test]
fn roots_may_be_links_nested_or_missing() {
    for &backend in backends() {
        let scratch = Scratch::new();
        scratch.file("real/project/file", "content");
        scratch.file("real/project/sub/file", "nested");
        scratch.dir("home");
        let link = scratch.link("home/project", "../real/project");
        scratch.link("chain", "home");
        let through = scratch.join("chain/project");
        let roots = [
            through.clone(),
            link.join("sub"),
            scratch.join("missing"),
            scratch.join("home/./project/../project"),
        ];
        let confinement = Confinement::read_only(roots);
        let script = format!(
            "cat file sub/file; cd {} && cat file; cd {} && pwd -P; ls ../..",
            through.display(),
            link.display()
        );
        let outcome = shell(backend, &confinement, &through, &script);
        outcome.shows(&format!("contentnestedcontent{}", scratch.join("real/project").display()));
        if backend.guarantees().private_metadata {
            assert_eq!(outcome.stdout.lines().last(), Some("real"), "{outcome:?}");
        }
    }
}

#[test]
fn links_inside_a_root_are_not_followed_by_another_root() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let (project, outside) = (scratch.dir("project"), scratch.dir("outside"));
        scratch.file("outside/secret", "treasure");
        // An earlier command, or the repository itself, has put a link where a root should be.
        symlink(&outside, project.join("vendor")).unwrap();
        symlink("vendor", project.join("deps")).unwrap();
        for extra in ["vendor", "deps", "vendor/.", "deps/../vendor"] {
            let read = Confinement::read_only([project.clone(), project.join(extra)]);
            shell(backend, &read, &project, "cat vendor/secret deps/secret").prints("");
            let write = Confinement::writable([project.clone(), project.join(extra)]);
            shell(backend, &write, &project, "echo x > vendor/new; echo x >> vendor/secret");
            assert_eq!(names(&outside), ["secret"], "{backend:?} {extra}");
            assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "treasure");
        }
    }
}

#[test]
fn a_single_file_can_be_a_root() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let (one, two) = (scratch.file("d/one", "1"), scratch.file("d/two", "2"));
        let mut confinement = Confinement::read_only([&one]);
        let script = format!("cat {0}; echo x >> {0}; cat {1}; true", one.display(), two.display());
        shell(backend, &confinement, Path::new("/"), &script).prints("1");
        confinement.write.push(one.clone());
        shell(backend, &confinement, Path::new("/"), &script).prints("1");
        assert_eq!(fs::read_to_string(&one).unwrap(), "1x\n");
        assert_eq!(fs::read_to_string(&two).unwrap(), "2");
    }
}

#[test]
fn programs_can_be_denied() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let head = which("head");
        let confinement = Confinement {
            deny_exec: vec![head.clone(), "/no/such/program".into()],
            ..Confinement::read_only([scratch.path()])
        };
        let script = format!(
            "echo text | cat; echo text | head; echo text | {h}; cp {h} $TMPDIR/copy && chmod +x $TMPDIR/copy; echo text | $TMPDIR/copy
             for ld in /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.*; do [ -e $ld ] && echo text | $ld {h}; done; true",
            h = head.display()
        );
        shell(backend, &confinement, scratch.path(), &script).prints("text");
        // The same file under another name in its directory.
        let bin = scratch.dir("bin");
        let tool = bin.join("tool");
        fs::write(&tool, "#!/bin/sh\necho ran\n").unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        fs::hard_link(&tool, bin.join("alias")).unwrap();
        symlink("tool", bin.join("link")).unwrap();
        let confinement = Confinement { deny_exec: vec![tool], ..Confinement::read_only([scratch.path()]) };
        shell(
            backend,
            &confinement,
            scratch.path(),
            "bin/tool; bin/alias; bin/link; cat bin/*; sh bin/alias",
        )
        .prints("");
        let confinement = Confinement { deny_exec: Vec::new(), ..confinement };
        shell(backend, &confinement, scratch.path(), "bin/tool; bin/alias; bin/link").prints("ran\nran\nran");
    }
}

fn which(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let found =
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file());
    found.unwrap().canonicalize().unwrap()
}

/// A project with some git metadata, as a writable root with protected paths.
fn project() -> (Scratch, Confinement) {
    let scratch = Scratch::new();
    scratch.file("p/.git/config", "[core]\n");
    scratch.file("p/.git/hooks/sample", "sample");
    scratch.file("p/.git/index", "index");
    scratch.file("p/src/main.rs", "main");
    let root = scratch.join("p");
    let read_only =
        [".git/config", ".git/hooks", ".attache.toml", ".attache", ".vscode/tasks.json", "AGENTS.md"];
    let confinement = Confinement {
        read_only: read_only.iter().map(|path| root.join(path)).collect(),
        ..Confinement::writable([&root])
    };
    (scratch, confinement)
}

#[test]
fn protected_paths_cannot_be_changed_renamed_or_created() {
    for backend in with_namespaces() {
        let (scratch, confinement) = project();
        let root = scratch.join("p");
        let script = "
            echo x > src/new && echo x > .git/index && mkdir .git/objects && mv src/new top && mv top src/new && echo wrote
            exec 2>/dev/null
            echo evil > .git/hooks/post-checkout
            echo evil >> .git/config
            rm -rf .git/hooks .git/config .git
            mv .git/hooks .git/hooks2
            mv .git git2 && mkdir -p .git/hooks && echo evil > .git/hooks/post-checkout
            mv .git/config .git/config2
            ln -f src/main.rs .git/config
            ln -sf src/main.rs .git/config
            ln .git/hooks/sample src/sample
            cp src/main.rs .git/config.lock && mv -f .git/config.lock .git/config
            chmod 777 .git/hooks .git/config
            for name in .attache.toml .attache .vscode AGENTS.md; do
                echo evil > $name; mkdir $name; echo evil > $name/x; ln -s src $name; mv src/new $name; rm -rf $name; rmdir $name
            done
            mkdir -p .vscode && echo evil > .vscode/tasks.json
            mv -T src .attache
            mount -o remount,rw .git/hooks; umount .git/hooks; umount -l .git/config
            true";
        let outcome = shell(backend, &confinement, &root, script);
        outcome.prints("wrote");
        assert_eq!(names(&root), [".git", "src"], "{outcome:?}");
        assert_eq!(names(&root.join(".git/hooks")), ["sample"], "{outcome:?}");
        assert_eq!(fs::read_to_string(root.join(".git/config")).unwrap(), "[core]\n");
        let mode = fs::metadata(root.join(".git/hooks")).unwrap().permissions().mode();
        assert_ne!(mode & 0o777, 0o777, "{outcome:?}");
    }
}

#[test]
fn protected_links_stay_and_what_they_lead_to_too() {
    for backend in with_namespaces() {
        let scratch = Scratch::new();
        let root = scratch.dir("p");
        scratch.file("p/meta/hooks/sample", "sample");
        scratch.file("p/CLAUDE.md", "text");
        scratch.file("elsewhere/config", "config");
        scratch.link("p/.git", "meta");
        scratch.link("p/AGENTS.md", "CLAUDE.md");
        scratch.link("p/settings", scratch.join("elsewhere/config"));
        scratch.link("p/dangling", "not-there.toml");
        scratch.link("p/loop", "loop");
        let paths = [".git/hooks", "AGENTS.md", "settings", "dangling", "loop"];
        let confinement = Confinement {
            read_only: paths.iter().map(|path| root.join(path)).collect(),
            ..Confinement::writable([&root])
        };
        let script = "
            ls .git/hooks; cat AGENTS.md; echo x > meta/index && echo x > new && echo ' wrote'
            exec 2>/dev/null
            for name in .git AGENTS.md settings dangling loop; do rm -rf $name; mv $name other; ln -sfn src $name; echo evil > $name; done
            echo evil > .git/hooks/x; echo evil > meta/hooks/x; mv meta m2; rm -rf meta/hooks; echo evil > CLAUDE.md; rm CLAUDE.md; mv CLAUDE.md c
            echo evil > not-there.toml; mkdir not-there.toml
            true";
        let outcome = shell(backend, &confinement, &root, script);
        outcome.prints("sample\ntext wrote");
        assert_eq!(
            names(&root),
            [".git", "AGENTS.md", "CLAUDE.md", "dangling", "loop", "meta", "new", "settings"],
            "{outcome:?}"
        );
        for (link, target) in
            [(".git", "meta"), ("AGENTS.md", "CLAUDE.md"), ("dangling", "not-there.toml"), ("loop", "loop")]
        {
            assert_eq!(fs::read_link(root.join(link)).unwrap(), Path::new(target), "{outcome:?}");
        }
        assert_eq!(names(&root.join("meta/hooks")), ["sample"], "{outcome:?}");
        assert_eq!(fs::read_to_string(root.join("CLAUDE.md")).unwrap(), "text");
    }
}

#[test]
fn a_file_in_the_place_of_a_directory_is_protected_itself() {
    for backend in with_namespaces() {
        let scratch = Scratch::new();
        let root = scratch.dir("p");
        // As in a worktree of git.
        scratch.file("p/.git", "gitdir: elsewhere\n");
        let confinement =
            Confinement { read_only: vec![root.join(".git/hooks")], ..Confinement::writable([&root]) };
        let script = "rm .git; mv .git x; mkdir .git; echo x > .git; echo x > new";
        let outcome = shell(backend, &confinement, &root, script);
        assert_eq!(names(&root), [".git", "new"], "{outcome:?}");
        assert_eq!(fs::read_to_string(root.join(".git")).unwrap(), "gitdir: elsewhere\n", "{outcome:?}");
    }
}

#[test]
fn placeholders_are_shared_and_removed_by_the_last() {
    use std::io::Write as _;
    use std::process::Stdio;
    for backend in with_namespaces() {
        let (scratch, confinement) = project();
        let root = scratch.join("p");
        let start = || {
            let script = "echo ready; read go; echo evil > .attache.toml; mkdir .attache; echo done";
            let mut command = command(backend, &confinement, &["sh", "-c", script]);
            start_ready(command.current_dir(&root).stdin(Stdio::piped()).stderr(Stdio::null()))
        };
        let (mut first, _first_output) = start();
        let (mut second, _second_output) = start();
        assert!(root.join(".attache.toml").is_dir() && root.join(".attache").is_dir());
        // The end of one must not lift the protection in the other.
        for child in [&mut first, &mut second] {
            child.stdin.take().unwrap().write_all(b"go\n").unwrap();
            assert!(child.wait().unwrap().success());
        }
        assert_eq!(names(&root), [".git", "src"], "{backend:?}");
    }
}

#[test]
fn only_what_was_put_there_for_the_command_is_removed() {
    for backend in with_namespaces() {
        let (scratch, confinement) = project();
        let root = scratch.join("p");
        // Neither an empty file nor an empty directory of the user is a placeholder.
        fs::write(root.join("AGENTS.md"), "").unwrap();
        fs::create_dir(root.join(".attache")).unwrap();
        shell(
            backend,
            &confinement,
            &root,
            "cat AGENTS.md; echo x > .attache/x; git init -q 2>/dev/null; true",
        )
        .prints("");
        assert_eq!(names(&root), [".attache", ".git", "AGENTS.md", "src"]);
        assert_eq!(names(&root.join(".attache")), [""; 0]);
    }
}

#[test]
fn git_does_not_see_placeholders() {
    for backend in with_namespaces() {
        let (scratch, confinement) = project();
        let root = scratch.join("p");
        fs::remove_dir_all(root.join(".git")).unwrap();
        let init = std::process::Command::new("git").args(["init", "-q"]).current_dir(&root).status();
        if !init.is_ok_and(|status| status.success()) {
            eprintln!("skipped: git is not installed");
            return;
        }
        let outcome = shell(backend, &confinement, &root, "git add -A && git status --short");
        outcome.prints("A  src/main.rs");
    }
}

/// Ends a busy thread, also when a check fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_directory_that_changes_meanwhile_opens_nothing() {
    for &backend in backends() {
        let scratch = Scratch::new();
        let (root, outside) = (scratch.dir("p"), scratch.dir("outside"));
        scratch.file("outside/secret", "treasure");
        scratch.dir("p/sub");
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _stop = Stop(&stop);
            // Another thread swaps a root with a link to the outside as fast as possible.
            scope.spawn(|| {
                let (sub, other) = (root.join("sub"), root.join("other"));
                symlink(&outside, &other).unwrap();
                while !stop.load(Ordering::Relaxed) {
                    let _ = fs::rename(&sub, root.join("third"));
                    let _ = fs::rename(&other, &sub);
                    let _ = fs::rename(root.join("third"), &other);
                }
            });
            for _ in 0..25 {
                let mut confinement = Confinement::writable([root.clone(), root.join("sub")]);
                if backend.guarantees().read_only_paths {
                    confinement.read_only.push(root.join("sub/.git"));
                }
                let outcome =
                    shell(backend, &confinement, &root, "echo evil > sub/evil; echo evil > other/evil; true");
                assert_eq!(names(&outside), ["secret"], "{outcome:?}");
                let confinement = Confinement::read_only([root.clone(), root.join("sub")]);
                shell(backend, &confinement, &root, "cat sub/secret other/secret").hides("treasure");
            }
        });
    }
}

#[test]
fn a_project_below_a_hidden_directory_is_all_that_is_left_of_it() {
    for backend in with_namespaces() {
        let scratch = Scratch::new();
        let root = scratch.dir("home/work/p");
        scratch.file("home/.ssh/id", "treasure");
        scratch.file("home/work/p/.env", "treasure");
        scratch.file("home/work/p/file", "content");
        let confinement = Confinement {
            view: View::Everything {
                hidden: vec![scratch.join("home"), root.join(".env"), scratch.join("home/.ssh")],
            },
            limits: Limits::default(),
            ..Confinement::writable([&root])
        };
        let script = format!(
            "cat file; cat .env {h}/.ssh/id; mv .env env2; rm .env; ls -A {h} {h}/work; cat .env; ls",
            h = scratch.join("home").display()
        );
        let outcome: Outcome = shell(backend, &confinement, &root, &script);
        outcome.hides("treasure");
        outcome.shows("content");
        assert_eq!(fs::read_to_string(root.join(".env")).unwrap(), "treasure", "{outcome:?}");
    }
}
