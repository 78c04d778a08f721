//! Files that change: stored before, restored by `/undo`.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use serde_json::json;

use super::tests::Scratch;
use super::*;

#[test]
fn a_turn_is_reverted_to_the_byte() {
    let scratch = Scratch::new("undo");
    let store = scratch.open();
    let kept = scratch.write("kept.txt", "one\r\ntwo");
    let gone = scratch.write("gone.txt", "bye");
    let made = scratch.project().join("new/deep/made.txt");
    store.log(&[Entry::Mark(Mark::Began)]);
    for (path, text) in [(&kept, Some("1")), (&kept, Some("2")), (&gone, None), (&made, Some("x"))] {
        store.about_to_change("s", path, text.map(str::as_bytes)).unwrap();
        match text {
            Some(text) => {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            None => std::fs::remove_file(path).unwrap(),
        }
        store.changed("s", path, text.map(str::as_bytes)).unwrap();
    }
    drop(store);
    let store = scratch.open();
    let undone = store.undo("s").unwrap();
    assert_eq!(undone.len(), 3);
    assert_eq!(std::fs::read(&kept).unwrap(), b"one\r\ntwo");
    assert_eq!(std::fs::read(&gone).unwrap(), b"bye");
    assert!(!scratch.project().join("new").exists());
    assert!(matches!(store.undo("s"), Err(UndoError::Nothing)));
}

#[test]
fn permissions_come_back_too() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new("mode");
    let store = scratch.open();
    let script = scratch.write("run.sh", "#!/bin/sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o750)).unwrap();
    store.log(&[Entry::Mark(Mark::Began)]);
    store.about_to_change("s", &script, None).unwrap();
    std::fs::remove_file(&script).unwrap();
    store.undo("s").unwrap();
    assert_eq!(std::fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o750);
}

#[test]
fn later_changes_are_not_lost() {
    let scratch = Scratch::new("foreign");
    let store = scratch.open();
    let (one, two) = (scratch.write("a", "1"), scratch.write("b", "1"));
    store.log(&[Entry::Mark(Mark::Began)]);
    for path in [&one, &two] {
        store.about_to_change("s", path, Some(b"2")).unwrap();
        std::fs::write(path, "2").unwrap();
    }
    std::fs::write(&two, "mine").unwrap();
    assert!(matches!(store.undo("s"), Err(UndoError::ChangedSince(paths)) if paths == [two.clone()]));
    assert_eq!(std::fs::read(&one).unwrap(), b"2");
    assert_eq!(std::fs::read(&two).unwrap(), b"mine");
}

#[test]
fn turns_are_reverted_one_after_the_other() {
    let scratch = Scratch::new("turns");
    let store = scratch.open();
    let path = scratch.write("a", "0");
    for text in ["1", "2"] {
        store.log(&[Entry::Mark(Mark::Began)]);
        store.about_to_change("s", &path, Some(text.as_bytes())).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    store.undo("s").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"1");
    store.undo("s").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"0");
    assert!(matches!(store.undo("s"), Err(UndoError::Nothing)));
}

#[test]
fn changes_of_a_command_are_reverted() {
    let scratch = Scratch::new("command");
    let store = scratch.open();
    let roots = [scratch.project()];
    let (changed, removed) = (scratch.write("src/changed", "1"), scratch.write("removed", "2"));
    scratch.write(".gitignore", "build\n");
    store.log(&[Entry::Mark(Mark::Began)]);
    let before = store.snapshot("s", &roots, SnapshotLimits::default(), None).unwrap();
    assert!(before.is_complete());
    std::fs::write(&changed, "other").unwrap();
    std::fs::remove_file(&removed).unwrap();
    let made = scratch.write("made", "3");
    let built = scratch.write("build/out", "4");
    let mut paths = store.settle("s", &roots, &before).unwrap();
    paths.sort();
    assert_eq!(paths, [made.clone(), removed.clone(), changed.clone()]);
    store.undo("s").unwrap();
    assert_eq!(std::fs::read(&changed).unwrap(), b"1");
    assert_eq!(std::fs::read(&removed).unwrap(), b"2");
    assert!(!made.exists());
    assert!(built.exists(), "what the project ignores is not its own");
}

#[test]
fn a_crash_in_the_middle_of_a_command_loses_nothing() {
    let scratch = Scratch::new("crash");
    let roots = [scratch.project()];
    let changed = scratch.write("changed", "1");
    {
        let store = scratch.open();
        store.log(&[Entry::Mark(Mark::Began)]);
        store.snapshot("s", &roots, SnapshotLimits::default(), None).unwrap();
        std::fs::write(&changed, "half").unwrap();
        scratch.write("made", "x");
    }
    let store = scratch.open();
    assert_eq!(store.undo("s").unwrap().len(), 2);
    assert_eq!(std::fs::read(&changed).unwrap(), b"1");
    assert!(!scratch.project().join("made").exists());
}

#[test]
fn temporary_files_of_a_killed_process_are_removed() {
    let scratch = Scratch::new("sweep");
    let store = scratch.open();
    let file = scratch.write("src/a.txt", "old");
    let dead = scratch.write(&format!("src/.attache-{}-0.tmp", u32::MAX), "half");
    let alive = scratch.write(&format!("src/.attache-{}-0.tmp", std::process::id()), "half");
    let foreign = scratch.write("src/.notes.tmp", "mine");
    store.log(&[Entry::Mark(Mark::Began)]);
    store.about_to_change("s", &file, Some(b"new")).unwrap();
    store.log(&[Entry::Mark(Mark::Ended { stop: "end_turn".into(), usage: json!({}) })]);
    store.read("s").unwrap().remove_temp_files();
    assert!(dead.exists(), "nothing broke off");
    store.log(&[Entry::Mark(Mark::Began)]);
    store.read("s").unwrap().remove_temp_files();
    assert!(!dead.exists() || !std::path::Path::new("/proc/self").exists());
    assert!(alive.exists() && foreign.exists() && file.exists());
}

#[test]
fn a_snapshot_of_a_large_project_is_incomplete() {
    let scratch = Scratch::new("large");
    let store = scratch.open();
    scratch.write("small", "1");
    scratch.write("large", &"x".repeat(100));
    let limits = SnapshotLimits { files: 10, file_bytes: 50, total_bytes: 1000 };
    let before = store.snapshot("s", &[scratch.project()], limits, None).unwrap();
    assert!(!before.is_complete());
    // An unknown file is not taken for a new one.
    assert_eq!(store.settle("s", &[scratch.project()], &before).unwrap(), Vec::<PathBuf>::new());
    assert!(matches!(store.undo("s"), Err(UndoError::Nothing)));
}

#[test]
fn directories_that_a_crash_left_half_made_are_removed() {
    let scratch = Scratch::new("half");
    let store = scratch.open();
    store.log(&[Entry::Mark(Mark::Began)]);
    store.about_to_change("s", &scratch.project().join("one/two/made.txt"), Some(b"x")).unwrap();
    std::fs::create_dir(scratch.project().join("one")).unwrap();
    store.undo("s").unwrap();
    assert!(!scratch.project().join("one").exists());
}
