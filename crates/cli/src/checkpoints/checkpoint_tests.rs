#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use attache_conn::private::TempDir;

use super::database::Store;
use super::survey::Limits;

/// A workspace with its store.
struct Stage {
    dir: TempDir,
    store: Store,
}

impl Stage {
    fn new() -> Stage {
        let dir = TempDir::new("checkpoints").unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        let store = open(&dir);
        Stage { dir, store }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("work").join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn turn(&mut self, prompt: &str, act: impl FnOnce(&mut Stage)) {
        let turn = self.store.begin("c", prompt).unwrap();
        act(self);
        self.store.end(turn).unwrap();
    }

    /// Undoes the last turn; returns the names of the files that were changed, and those left with
    /// the reason.
    fn undo(&mut self) -> (Vec<String>, Vec<String>) {
        let outcome = self.store.undo("c").unwrap();
        self.names(outcome)
    }

    fn names(&self, outcome: super::Outcome) -> (Vec<String>, Vec<String>) {
        let work = self.dir.path().join("work");
        let name = |path: &Path| path.strip_prefix(&work).unwrap().display().to_string();
        let left = outcome.left.iter().map(|(path, why)| format!("{}: {why}", name(path))).collect();
        (outcome.changed.iter().map(|path| name(path)).collect(), left)
    }
}

fn open(dir: &TempDir) -> Store {
    Store::open(&dir.path().join("state"), &[dir.path().join("work")]).unwrap()
}

const NOTHING: [String; 0] = [];

#[test]
fn every_kind_of_change_is_undone_exactly_and_redone() {
    let mut stage = Stage::new();
    stage.write("kept", "kept");
    stage.write("changed", "before");
    stage.write("deleted/deep/file", "gone");
    stage.write("run.sh", "#!/bin/sh\n");
    stage.write("binary", [0_u8, 0xff, 0xfe]);
    symlink("kept", stage.path("link")).unwrap();
    stage.write("becomes-directory", "file");
    let mode = |stage: &Stage| fs::metadata(stage.path("run.sh")).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(stage.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let change = |stage: &mut Stage| {
        stage.write("changed", "after");
        fs::remove_dir_all(stage.path("deleted")).unwrap();
        stage.write("new/deep/file", "new");
        fs::set_permissions(stage.path("run.sh"), fs::Permissions::from_mode(0o640)).unwrap();
        stage.write("binary", [0xff_u8; 9]);
        fs::remove_file(stage.path("link")).unwrap();
        symlink("/etc/passwd", stage.path("link")).unwrap();
        fs::remove_file(stage.path("becomes-directory")).unwrap();
        stage.write("becomes-directory/inner", "inner");
    };
    stage.turn("change all", change);
    let (changed, left) = stage.undo();
    assert_eq!(left, NOTHING);
    assert_eq!(
        changed,
        [
            "becomes-directory",
            "becomes-directory/inner",
            "binary",
            "changed",
            "deleted/deep/file",
            "link",
            "new/deep/file",
            "run.sh"
        ]
    );
    assert_eq!((stage.read("changed"), stage.read("kept")), ("before".into(), "kept".into()));
    assert_eq!(stage.read("deleted/deep/file"), "gone");
    assert!(!stage.path("new").exists(), "directories of new files are gone too");
    assert_eq!(mode(&stage), 0o755);
    assert_eq!(fs::read(stage.path("binary")).unwrap(), [0, 0xff, 0xfe]);
    assert_eq!(fs::read_link(stage.path("link")).unwrap(), Path::new("kept"));
    assert_eq!(stage.read("becomes-directory"), "file");
    assert!(stage.store.diff("c").unwrap().is_empty());
    stage.store.undo("c").unwrap_err();

    let outcome = stage.store.redo("c").unwrap();
    let (_, left) = stage.names(outcome);
    assert_eq!(left, NOTHING);
    assert_eq!((stage.read("changed"), mode(&stage)), ("after".into(), 0o640));
    assert_eq!(stage.read("new/deep/file"), "new");
    assert!(!stage.path("deleted/deep/file").exists());
    assert_eq!(fs::read_link(stage.path("link")).unwrap(), Path::new("/etc/passwd"));
}

#[test]
fn what_the_user_changed_afterwards_is_left_alone() {
    let mut stage = Stage::new();
    stage.write("a", "1");
    stage.write("b", "1");
    stage.write("gone", "1");
    stage.turn("one", |stage| {
        ["a", "b", "gone", "new"].iter().for_each(|name| stage.write(name, "2"));
    });
    stage.write("a", "mine");
    stage.write("new", "mine");
    fs::remove_file(stage.path("gone")).unwrap();
    let (changed, left) = stage.undo();
    assert_eq!(changed, ["b"]);
    assert_eq!(left, ["a: changed since", "gone: changed since", "new: changed since"]);
    assert_eq!(
        (stage.read("a"), stage.read("new"), stage.read("b")),
        ("mine".into(), "mine".into(), "1".into())
    );
    assert!(!stage.path("gone").exists());
    // Redoing does not destroy later changes either.
    stage.write("b", "mine");
    let outcome = stage.store.redo("c").unwrap();
    assert_eq!(stage.names(outcome).1, ["b: changed since"]);
    assert_eq!(stage.read("b"), "mine");
}

#[test]
fn a_rewind_goes_over_several_turns_and_over_a_restart() {
    let mut stage = Stage::new();
    stage.write("a", "0");
    stage.write("b", "0");
    stage.turn("first", |stage| stage.write("a", "1"));
    stage.turn("only looks", |_| {});
    stage.turn("second", |stage| {
        stage.write("a", "2");
        stage.write("b", "2");
    });
    stage.write("b", "mine");
    stage.turn("third", |stage| stage.write("b", "3"));
    // Another process opens the file.
    stage.store = open(&stage.dir);
    let turns = stage.store.checkpoints("c").unwrap();
    let listed: Vec<_> = turns.iter().map(|turn| (turn.prompt.as_str(), turn.files)).collect();
    assert_eq!(listed, [("third", 1), ("second", 2), ("only looks", 0), ("first", 1)]);
    assert!(stage.store.checkpoints("another").unwrap().is_empty());
    let first = turns.last().unwrap().turn;
    let outcome = stage.store.rewind("c", first).unwrap();
    assert_eq!(outcome.prompt.as_deref(), Some("first"));
    let (changed, left) = stage.names(outcome);
    assert_eq!((changed, left), (vec!["a".into()], vec!["b: changed between these turns".into()]));
    assert_eq!((stage.read("a"), stage.read("b")), ("0".into(), "3".into()));
    // The last turn alone can still be undone.
    assert_eq!(stage.undo().0, ["b"]);
    assert_eq!(stage.read("b"), "mine");
}

#[test]
fn one_part_of_a_file_is_undone_beside_changes_of_the_user() {
    let mut stage = Stage::new();
    let old = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";
    stage.write("a", old);
    stage.turn("edit", |stage| stage.write("a", "ONE\ntwo\nthree\nFOUR\nfive\nsix\nseven\n"));
    stage.write("a", "ONE\ntwo\nthree\nFOUR\nfive\nsix\nseven\nmine\n");
    let parts = stage.store.parts("c", "a").unwrap();
    let shown: Vec<_> = parts.parts.iter().map(|part| (part.line, part.text.as_str())).collect();
    assert_eq!(shown, [(1, "ONE"), (4, "FOUR")]);
    stage.store.undo_part("c", &parts, 1).unwrap();
    assert_eq!(stage.read("a"), "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\nmine\n");
    stage.store.undo_part("c", &parts, 0).unwrap_err();
    let rest = stage.store.parts("c", "a").unwrap();
    assert_eq!(rest.parts.len(), 1);
    stage.write("a", "ONE!\ntwo\nthree\nfour\nfive\nsix\nseven\nmine\n");
    let why = stage.store.undo_part("c", &rest, 0).unwrap_err().message;
    assert!(why.ends_with("these lines were changed since"), "{why}");
    stage.write("a", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\nmine\n");
    stage.store.undo_part("c", &rest, 0).unwrap();
    assert_eq!(stage.read("a"), format!("{old}mine\n"));
    stage.store.parts("c", "a").unwrap_err();
    stage.store.redo("c").unwrap();
    assert_eq!(stage.read("a"), "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\nmine\n");
    assert_eq!(stage.store.parts("c", "a").unwrap().parts.len(), 1);
}

#[test]
fn ignored_files_count_once_the_agent_names_them() {
    let mut stage = Stage::new();
    stage.write(".gitignore", "ignored\n");
    stage.write("ignored/named", "1");
    stage.write("ignored/other", "1");
    stage.turn("edit", |stage| {
        let path = stage.path("ignored/named");
        stage.store.name(&path).unwrap();
        stage.write("ignored/named", "2");
        stage.write("ignored/other", "2");
    });
    assert_eq!(stage.undo().0, ["ignored/named"]);
    assert_eq!((stage.read("ignored/named"), stage.read("ignored/other")), ("1".into(), "2".into()));
}

#[test]
fn links_and_paths_outside_are_never_written_through() {
    let mut stage = Stage::new();
    fs::create_dir(stage.dir.path().join("outside")).unwrap();
    fs::write(stage.dir.path().join("outside/file"), "of the user").unwrap();
    stage.write("sub/file", "1");
    stage.turn("edit", |stage| {
        stage.write("sub/file", "2");
        let outside = stage.dir.path().join("outside/file");
        stage.store.name(&outside).unwrap();
        stage.store.name(&stage.path("../outside/file")).unwrap();
        stage.store.name(&stage.path(".git/config")).unwrap();
        fs::write(outside, "changed").unwrap();
    });
    // The directory becomes a link to one with a file that is as the turn left it.
    fs::rename(stage.path("sub"), stage.dir.path().join("moved")).unwrap();
    symlink("../moved", stage.path("sub")).unwrap();
    let (changed, left) = stage.undo();
    assert_eq!(changed, NOTHING);
    assert_eq!(left, ["sub/file: changed since"]);
    assert_eq!(fs::read_to_string(stage.dir.path().join("moved/file")).unwrap(), "2");
    assert_eq!(fs::read_to_string(stage.dir.path().join("outside/file")).unwrap(), "changed");
}

#[test]
fn version_control_and_devices_are_not_looked_at() {
    let mut stage = Stage::new();
    stage.write(".git/config", "1");
    stage.turn("edit", |stage| {
        stage.write(".git/config", "2");
        std::os::unix::net::UnixListener::bind(stage.path("socket")).unwrap();
        let fifo = std::process::Command::new("mkfifo").arg(stage.path("fifo")).status().unwrap();
        assert!(fifo.success());
    });
    stage.store.undo("c").unwrap_err();
    assert_eq!(stage.read(".git/config"), "2");
}

#[test]
fn large_files_are_noticed_and_kept_if_they_are_named_first() {
    let mut stage = Stage::new();
    stage.store.limits = Limits { entries: 100, file_bytes: 10, total_bytes: 25 };
    for name in ["large", "named"] {
        stage.write(name, "x".repeat(50));
    }
    stage.turn("edit", |stage| {
        let named = stage.path("named");
        stage.store.name(&named).unwrap();
        stage.write("large", "y".repeat(50));
        stage.write("named", "y".repeat(50));
    });
    let (changed, left) = stage.undo();
    assert_eq!(changed, ["named"]);
    assert_eq!(left, ["large: too large: its old content was not kept"]);
    assert_eq!(stage.read("named"), "x".repeat(50));
}

#[test]
fn too_many_files_leave_nothing_new_undone_by_mistake() {
    let mut stage = Stage::new();
    stage.store.limits.entries = 5;
    (0..20).for_each(|number| stage.write(&format!("f{number}"), "1"));
    stage.turn("edit", |stage| {
        fs::remove_file(stage.path("f0")).unwrap();
        let named = stage.path("f3");
        stage.store.name(&named).unwrap();
        stage.write("f3", "2");
    });
    let _ = stage.store.undo("c").map(|outcome| stage.names(outcome));
    assert_eq!(stage.read("f3"), "1");
    assert!((1..20).all(|number| stage.path(&format!("f{number}")).exists()));
}

#[test]
fn a_killed_chat_leaves_changes_that_are_undone_one_by_one() {
    let mut stage = Stage::new();
    stage.write("a", "1");
    stage.store.begin("c", "killed").unwrap();
    stage.write("a", "2");
    stage.store = open(&stage.dir);
    let outcome = stage.store.undo("c").unwrap();
    assert_eq!(stage.names(outcome).1, ["a: the chat was killed during this turn"]);
    assert_eq!(stage.read("a"), "2");
    let path = stage.path("a");
    stage.store.undo_file("c", &path).unwrap();
    assert_eq!(stage.read("a"), "1");
}

#[test]
fn two_chats_in_one_workspace_do_not_undo_each_other() {
    let mut stage = Stage::new();
    ["a", "b", "c"].iter().for_each(|name| stage.write(name, "1"));
    let mut other = open(&stage.dir);
    let here = stage.store.begin("c", "here").unwrap();
    let there = other.begin("other", "there").unwrap();
    stage.store.name(&stage.path("a")).unwrap();
    stage.write("a", "2");
    other.name(&stage.path("b")).unwrap();
    stage.write("b", "2");
    stage.write("c", "2");
    stage.store.end(here).unwrap();
    other.end(there).unwrap();
    assert_eq!(other.end(there).unwrap(), 0);
    let (changed, left) = stage.undo();
    assert_eq!(changed, ["a"]);
    assert_eq!(left, ["c: another chat worked here at the same time"]);
    assert_eq!((stage.read("b"), stage.read("c")), ("2".into(), "2".into()));
    let outcome = other.undo("other").unwrap();
    assert_eq!(stage.names(outcome).0, ["b"]);
}

#[test]
fn diffs_show_what_differs_from_before_the_conversation() {
    let mut stage = Stage::new();
    stage.write("a", "1\n");
    stage.write("b", "1\n");
    stage.turn("edit", |stage| {
        stage.write("a", "2\n");
        stage.write("b", "2\n");
        stage.write("new", "3\n");
    });
    let path = stage.path("b");
    stage.store.undo_file("c", &path).unwrap();
    stage.write("a", "4\n");
    stage.store.begin("c", "running").unwrap();
    stage.write("now", "5\n");
    let diff = stage.store.diff("c").unwrap();
    let shown: Vec<_> = diff
        .iter()
        .map(|file| {
            let name = file.path.file_name().unwrap().to_str().unwrap();
            (name, file.old.as_deref(), file.new.as_deref(), file.note.as_deref())
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("a", Some("1\n"), Some("4\n"), Some("changed since")),
            ("new", None, Some("3\n"), None),
            ("now", None, Some("5\n"), None)
        ]
    );
}

#[test]
fn old_turns_and_too_much_content_are_forgotten() {
    let mut stage = Stage::new();
    for number in 0..8 {
        stage.turn("edit", |stage| stage.write("a", format!("{number}").repeat(1000)));
    }
    let now = SystemTime::now();
    stage.store.prune(u64::MAX, now).unwrap();
    assert_eq!(stage.store.checkpoints("c").unwrap().len(), 8);
    stage.store.prune(5000, now).unwrap();
    let left = stage.store.checkpoints("c").unwrap().len();
    assert!((1..8).contains(&left), "{left}");
    assert_eq!(stage.undo().0, ["a"]);
    stage.store.prune(u64::MAX, now + Duration::from_secs(40 * 24 * 3600)).unwrap();
    assert!(stage.store.checkpoints("c").unwrap().is_empty());
    let mode = fs::metadata(stage.dir.path().join("state")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
