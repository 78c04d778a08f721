//! Trust of a project is bound to the content of its files.

use std::fs;
use std::path::Path;

use attache_host::trust::{FileKind, ProjectFiles, Trust, TrustStore};

use crate::kit::Scratch;

fn names(project: &ProjectFiles) -> Vec<String> {
    let files = project.files().iter();
    files.map(|file| format!("{} {}", project.short(&file.path).display(), file.kind)).collect()
}

#[test]
fn everything_that_takes_effect_is_found() {
    let scratch = Scratch::new();
    scratch.dir("repo/.git");
    scratch.file("AGENTS.md", "outside of the repository");
    scratch.file("repo/AGENTS.md", "a");
    scratch.file("repo/.attache.toml", "x = 1");
    scratch.file("repo/sub/CLAUDE.md", "b");
    scratch.file("repo/sub/.attache/commands/fix.md", "c");
    scratch.file("repo/sub/.attache/commands/notes.txt", "not a command");
    scratch.file("repo/.claude/skills/pdf/SKILL.md", "d");
    scratch.file("repo/sub/.agents/skills/pdf/SKILL.md", "e");
    scratch.file("repo/sub/.agents/skills/pdf/more.md", "not a skill");
    scratch.file("elsewhere/SKILL.md", "f");
    scratch.link("repo/sub/.agents/skills/out", scratch.join("elsewhere"));
    let project = ProjectFiles::scan(&scratch.join("repo/sub"));
    assert_eq!(project.root(), scratch.join("repo"));
    assert_eq!(
        names(&project),
        [
            ".attache.toml settings",
            "sub/.attache/commands/fix.md slash command",
            "AGENTS.md instructions for agents",
            "sub/CLAUDE.md instructions for agents",
            "sub/.agents/skills/pdf/SKILL.md skill",
            ".claude/skills/pdf/SKILL.md skill",
        ]
    );
    let empty = scratch.dir("plain");
    assert_eq!(TrustStore::new(scratch.path()).status(&ProjectFiles::scan(&empty)), Trust::Nothing);
}

#[test]
fn an_answer_holds_until_a_file_changes() {
    let scratch = Scratch::new();
    let repo = scratch.dir("repo");
    scratch.file("repo/AGENTS.md", "a");
    scratch.file("repo/.attache.toml", "permission_policy = 'policy.json'");
    let policy = scratch.file("repo/policy.json", "{}");
    let store = TrustStore::new(&scratch.join("state"));
    let scan = || {
        let mut project = ProjectFiles::scan(&repo);
        project.add(policy.clone(), FileKind::Named);
        project
    };
    assert!(matches!(store.status(&scan()), Trust::Unknown(files) if files.len() == 3));
    store.set(&scan(), true).unwrap();
    assert_eq!(store.status(&scan()), Trust::Trusted);
    // Another process sees it, by another path to the same directory.
    scratch.link("alias", &repo);
    let again = TrustStore::new(&scratch.join("state"));
    assert!(again.status(&ProjectFiles::scan(&scratch.join("alias"))).is_trusted());

    fs::write(&policy, "{\"autoApprove\":[\"*\"]}").unwrap();
    let Trust::Unknown(changed) = store.status(&scan()) else { panic!() };
    assert_eq!(changed.iter().map(|file| file.path.as_path()).collect::<Vec<_>>(), [policy.as_path()]);
    store.set(&scan(), true).unwrap();
    assert_eq!(store.status(&scan()), Trust::Trusted);
    scratch.file("repo/.attache/commands/new.md", "x");
    assert!(matches!(store.status(&scan()), Trust::Unknown(files) if files.len() == 1));

    store.set(&scan(), false).unwrap();
    assert_eq!(store.status(&scan()), Trust::Declined);
    assert!(!store.status(&scan()).is_trusted());
    scratch.file("repo/AGENTS.md", "changed");
    assert!(matches!(store.status(&scan()), Trust::Unknown(_)), "asked again");

    assert_eq!(store.list().unwrap().len(), 1);
    assert!(store.remove(&repo).unwrap() && !store.remove(&repo).unwrap());
    assert!(store.list().unwrap().is_empty());
}

#[test]
fn files_that_cannot_be_read_are_never_trusted() {
    let scratch = Scratch::new();
    let repo = scratch.dir("repo");
    let store = TrustStore::new(&scratch.join("state"));
    let fifo = std::process::Command::new("mkfifo").arg(repo.join("AGENTS.md")).status().unwrap();
    assert!(fifo.success());
    let project = ProjectFiles::scan(&repo);
    store.set(&project, true).unwrap();
    assert!(!store.status(&project).is_trusted(), "a FIFO has no content that could be trusted");
    fs::remove_file(repo.join("AGENTS.md")).unwrap();
    // A sparse giant is neither read whole nor mistaken for another one.
    fs::File::create(repo.join("AGENTS.md")).unwrap().set_len(2 << 30).unwrap();
    let project = ProjectFiles::scan(&repo);
    store.set(&project, true).unwrap();
    assert!(store.status(&project).is_trusted());
}

#[test]
fn commands_do_not_come_from_elsewhere() {
    let scratch = Scratch::new();
    let repo = scratch.dir("repo");
    scratch.file("other/evil.md", "x");
    scratch.dir("repo/.attache");
    scratch.link("repo/.attache/commands", scratch.join("other"));
    assert!(ProjectFiles::scan(&repo).is_empty());
    fs::remove_file(scratch.join("repo/.attache/commands")).unwrap();
    scratch.dir("repo/.attache/commands");
    scratch.link("repo/.attache/commands/evil.md", scratch.join("other/evil.md"));
    assert!(ProjectFiles::scan(&repo).is_empty());
}

#[test]
fn a_broken_store_trusts_nothing() {
    let scratch = Scratch::new();
    let repo = scratch.dir("repo");
    scratch.file("repo/AGENTS.md", "a");
    let store = TrustStore::new(&scratch.join("state"));
    store.set(&ProjectFiles::scan(&repo), true).unwrap();
    fs::write(scratch.join("state/trust.json"), "{").unwrap();
    assert!(!store.status(&ProjectFiles::scan(&repo)).is_trusted());
    assert!(store.set(&ProjectFiles::scan(&repo), true).is_err(), "nothing is overwritten");
    assert!(Path::new(&scratch.join("state/trust.json")).exists());
}
