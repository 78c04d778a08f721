//! Attacks on `/undo` and on the snapshots before commands: links, FIFOs, devices, sparse files and
//! hard links where a file or a directory of the project was.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tests::Scratch;
use super::*;

/// A project with a directory `src`, and a file outside of it that must not change.
struct Stage {
    scratch: Scratch,
    store: Store,
    outside: PathBuf,
}

impl Stage {
    fn new(name: &str) -> Self {
        let scratch = Scratch::new(&format!("attack-{name}"));
        let outside = scratch.0.join("outside");
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("keys"), "theirs").unwrap();
        let store = scratch.open();
        store.log(&[Entry::Mark(Mark::Began)]);
        Stage { scratch, store, outside }
    }

    /// A file of the project that was changed in this turn, from `old` to `new`.
    fn changed(&self, name: &str) -> PathBuf {
        let path = self.scratch.write(name, "old");
        self.store.about_to_change("s", &path, Some(b"new")).unwrap();
        fs::write(&path, "new").unwrap();
        path
    }

    fn snapshot(&self) -> Snapshot {
        self.store.snapshot("s", &[self.scratch.project()], SnapshotLimits::default(), None).unwrap()
    }

    fn settle(&self, before: &Snapshot) -> Vec<PathBuf> {
        self.store.settle("s", &[self.scratch.project()], before).unwrap()
    }

    /// Undo is refused for this path, with this reason.
    fn refuses(&self, path: &Path, why: &str) {
        match self.store.undo("s") {
            Err(UndoError::Failed(failed, error)) => {
                assert_eq!(failed, path);
                assert!(error.to_string().contains(why), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }

    fn outside_is_untouched(&self) {
        let names: Vec<_> =
            fs::read_dir(&self.outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["keys"]);
        assert_eq!(fs::read(self.outside.join("keys")).unwrap(), b"theirs");
    }
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_directory_that_became_a_link_is_not_written_through() {
    for made in [false, true] {
        let stage = Stage::new(&format!("directory-{made}"));
        // A file that was changed would be written, one that was made would be removed.
        let path = match made {
            false => stage.changed("src/keys"),
            true => {
                let path = stage.scratch.project().join("src/keys");
                stage.store.about_to_change("s", &path, Some(b"theirs")).unwrap();
                stage.scratch.write("src/keys", "theirs")
            }
        };
        let src = stage.scratch.project().join("src");
        fs::remove_dir_all(&src).unwrap();
        symlink(&stage.outside, &src).unwrap();
        stage.refuses(&path, "src is a symbolic link");
        stage.outside_is_untouched();
        // With the directory in its place again it works.
        fs::remove_file(&src).unwrap();
        fs::create_dir(&src).unwrap();
        fs::write(&path, if made { "theirs" } else { "new" }).unwrap();
        stage.store.undo("s").unwrap();
        assert_eq!(fs::read(&path).ok().as_deref(), (!made).then_some(&b"old"[..]));
    }
}

#[test]
fn a_root_that_became_a_link_is_not_written_through() {
    let stage = Stage::new("root");
    let path = stage.changed("keys");
    fs::remove_dir_all(stage.scratch.project()).unwrap();
    symlink(&stage.outside, stage.scratch.project()).unwrap();
    stage.refuses(&path, "project is a symbolic link");
    stage.outside_is_untouched();
}

#[test]
fn a_file_that_became_a_link_is_not_written_through() {
    let stage = Stage::new("file");
    let path = stage.changed("src/a");
    fs::remove_file(&path).unwrap();
    symlink(stage.outside.join("keys"), &path).unwrap();
    stage.refuses(&path, "src/a is a symbolic link");
    stage.outside_is_untouched();
}

#[test]
fn paths_that_are_no_longer_files_are_left_alone() {
    let stage = Stage::new("kinds");
    let path = stage.changed("src/a");
    fs::remove_file(&path).unwrap();
    fifo(&path);
    stage.refuses(&path, "is a FIFO");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    stage.refuses(&path, "is a directory");
    fs::remove_dir(&path).unwrap();
    // A giant is not the file that the turn left, and is not read to find out.
    File::create(&path).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(stage.store.undo("s"), Err(UndoError::ChangedSince(paths)) if paths == [path]));
}

#[test]
fn a_hard_link_to_an_outside_file_is_parted_and_not_written_through() {
    let stage = Stage::new("hard");
    let keys = stage.outside.join("keys");
    let path = stage.scratch.write("src/a", "old");
    stage.store.about_to_change("s", &path, Some(b"theirs")).unwrap();
    fs::remove_file(&path).unwrap();
    fs::hard_link(&keys, &path).unwrap();
    stage.store.undo("s").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    stage.outside_is_untouched();
    // A new file that is a hard link is removed by its name only.
    stage.store.log(&[Entry::Mark(Mark::Began)]);
    let made = stage.scratch.project().join("made");
    stage.store.about_to_change("s", &made, Some(b"theirs")).unwrap();
    fs::hard_link(&keys, &made).unwrap();
    stage.store.undo("s").unwrap();
    assert!(!made.exists());
    stage.outside_is_untouched();
}

#[test]
fn bits_that_give_rights_are_not_restored() {
    use std::os::unix::fs::PermissionsExt as _;
    let stage = Stage::new("bits");
    let path = stage.scratch.write("a", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
    stage.store.about_to_change("s", &path, None).unwrap();
    fs::remove_file(&path).unwrap();
    stage.store.undo("s").unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o755);
}

#[test]
fn a_project_that_is_named_through_a_link_can_be_taken_back() {
    let stage = Stage::new("named");
    let named = stage.scratch.0.join("named");
    symlink(stage.scratch.project(), &named).unwrap();
    let store = &stage.store;
    stage.scratch.write("a", "old");
    let before = store.snapshot("s", std::slice::from_ref(&named), SnapshotLimits::default(), None).unwrap();
    fs::write(named.join("a"), "new").unwrap();
    store.settle("s", std::slice::from_ref(&named), &before).unwrap();
    store.about_to_change("s", &named.join("deep/made"), Some(b"x")).unwrap();
    stage.scratch.write("deep/made", "x");
    store.undo("s").unwrap();
    assert_eq!(fs::read(stage.scratch.project().join("a")).unwrap(), b"old");
    assert!(!stage.scratch.project().join("deep").exists());
}

#[test]
fn a_snapshot_reads_neither_through_links_nor_from_fifos() {
    let stage = Stage::new("snapshot");
    let project = stage.scratch.project();
    stage.scratch.write("a", "1");
    symlink(&stage.outside, project.join("link")).unwrap();
    symlink(stage.outside.join("keys"), project.join("keys")).unwrap();
    fifo(&project.join("fifo"));
    File::create(project.join("sparse")).unwrap().set_len(1 << 40).unwrap();
    let before = stage.snapshot();
    assert!(!before.is_complete());
    assert_eq!(stage.settle(&before), Vec::<PathBuf>::new());
    assert!(
        fs::read(stage.scratch.0.join("data/sessions.db"))
            .is_ok_and(|bytes| { !bytes.windows(6).any(|window| window == b"theirs") })
    );
}

#[test]
fn giants_that_a_command_makes_are_taken_back_unread() {
    let stage = Stage::new("giants");
    let before = stage.snapshot();
    let paths: Vec<PathBuf> =
        (0..300).map(|n| stage.scratch.project().join(format!("giant-{n:03}"))).collect();
    for path in &paths {
        File::create(path).unwrap().set_len(1 << 40).unwrap();
    }
    let mut settled = stage.settle(&before);
    settled.sort();
    assert!(settled == paths, "{} giants were seen", settled.len());
    // A file that has changed since is not restored.
    File::options().write(true).open(&paths[7]).unwrap().set_len(1 << 39).unwrap();
    let undone = stage.store.undo("s");
    assert!(matches!(undone, Err(UndoError::ChangedSince(changed)) if changed == [paths[7].clone()]));
    fs::remove_file(&paths[7]).unwrap();
    stage.store.undo("s").unwrap();
    assert!(paths.iter().all(|path| !path.exists()));
}

#[test]
fn rules_for_what_to_ignore_that_cannot_be_read_do_not_hold_a_snapshot() {
    let stage = Stage::new("rules");
    let project = stage.scratch.project();
    stage.scratch.write("a", "1");
    stage.scratch.write("sub/b", "1");
    let files = || {
        stage.snapshot();
        crate::project_files::walk(&project).count()
    };
    fifo(&project.join("sub/.gitignore"));
    assert_eq!(files(), 1, "the directory is passed over");
    fs::remove_file(project.join("sub/.gitignore")).unwrap();
    File::create(project.join(".ignore")).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(files(), 3, "nothing is ignored");
    fs::remove_file(project.join(".ignore")).unwrap();
    let git = stage.scratch.0.join("git");
    fs::create_dir(&git).unwrap();
    fifo(&git.join("commondir"));
    stage.scratch.write("sub/.git", &format!("gitdir: {}\n", git.display()));
    assert_eq!(files(), 1, "the directory is passed over");
}

#[test]
fn a_file_too_large_for_undo_is_not_changed() {
    let stage = Stage::new("kept");
    let path = stage.scratch.project().join("large");
    File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let error = stage.store.about_to_change("s", &path, Some(b"x")).unwrap_err().to_string();
    assert!(error.contains("too large for /undo"), "{error}");
}
