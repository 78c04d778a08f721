//! The laws in a SQLite file, and the errors of files.

use std::io::{Seek as _, SeekFrom, Write as _};

use attache_journal::sqlite::{Durability, Options};
use attache_journal::{Error, Journal, Seq};
use rusqlite::Connection;

use crate::laws::laws;
use crate::rig::{Rig, TempDir, append, claim, fill, key, numbers, page, texts};

laws! { [] Rig::sqlite().await }

#[tokio::test]
async fn a_file_that_is_not_a_database_is_refused_and_untouched() {
    let directory = TempDir::new();
    let content = b"this is not a database, but a text file\n".repeat(100);
    std::fs::write(directory.file(), &content).unwrap();
    make_private(&directory.file());
    let refused = Journal::sqlite(&directory.file(), Options::default()).await;
    assert!(matches!(refused, Err(Error::Damaged(_))), "{refused:?}");
    assert_eq!(std::fs::read(directory.file()).unwrap(), content);
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_untouched() {
    let directory = TempDir::new();
    let foreign = Connection::open(directory.file()).unwrap();
    foreign.execute_batch("CREATE TABLE other (x); PRAGMA user_version = 1;").unwrap();
    drop(foreign);
    make_private(&directory.file());
    let content = std::fs::read(directory.file()).unwrap();
    let refused = Journal::sqlite(&directory.file(), Options::default()).await;
    assert!(matches!(&refused, Err(Error::Damaged(_))), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("another program"));
    assert_eq!(std::fs::read(directory.file()).unwrap(), content);
}

fn make_private(file: &std::path::Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    #[cfg(not(unix))]
    let _ = file;
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_others_can_read_and_a_link_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = TempDir::new();
    drop(Journal::sqlite(&directory.file(), Options::default()).await.unwrap());
    let link = directory.file().with_file_name("link.db");
    std::os::unix::fs::symlink(directory.file(), &link).unwrap();
    let refused = Journal::sqlite(&link, Options::default()).await.unwrap_err();
    assert!(refused.to_string().contains("not a regular file"), "{refused}");
    std::fs::set_permissions(directory.file(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = Journal::sqlite(&directory.file(), Options::default()).await.unwrap_err();
    assert!(refused.to_string().contains("chmod 600"), "{refused}");
}

#[tokio::test]
async fn a_newer_layout_is_refused() {
    let directory = TempDir::new();
    drop(Journal::sqlite(&directory.file(), Options::default()).await.unwrap());
    Connection::open(directory.file()).unwrap().pragma_update(None, "user_version", 7).unwrap();
    let refused = Journal::sqlite(&directory.file(), Options::default()).await;
    assert!(matches!(refused, Err(Error::Newer { version: 7 })), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("update"));
}

#[tokio::test]
async fn damaged_rows_are_errors_and_not_entries() {
    let (directory, key) = (TempDir::new(), key("a"));
    let journal = Journal::sqlite(&directory.file(), Options::default()).await.unwrap();
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    let mut last = Seq::ZERO;
    for _ in 0..3 {
        last = append(&journal, &lease, last, 4).await;
    }
    let read = async || {
        let mut pages = journal.read(&key, Seq::ZERO, None).await?;
        while pages.next().await?.is_some() {}
        Ok::<(), Error>(())
    };
    read().await.unwrap();
    let connection = Connection::open(directory.file()).unwrap();
    for damage in [
        "UPDATE page SET body = substr(body, 2) WHERE last = 8",
        "UPDATE page SET body = x'31323334', contents = substr(contents, 6) WHERE last = 8",
        "UPDATE page SET body = 'text' WHERE last = 8",
        "DELETE FROM page WHERE last = 8",
        "DELETE FROM page WHERE last = 12",
    ] {
        connection.execute_batch(damage).unwrap();
        let result = read().await;
        assert!(matches!(result, Err(Error::Damaged(_))), "{damage}: {result:?}");
    }
}

#[tokio::test]
async fn a_damaged_file_is_an_error() {
    let (directory, key) = (TempDir::new(), key("a"));
    let journal = Journal::sqlite(&directory.file(), Options::default()).await.unwrap();
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    journal.append(&lease, Seq::ZERO, page(&[&"x".repeat(1 << 20)])).await.unwrap();
    drop(journal);
    let connection = Connection::open(directory.file()).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    let mut file = std::fs::OpenOptions::new().write(true).open(directory.file()).unwrap();
    file.seek(SeekFrom::Start(16 << 10)).unwrap();
    file.write_all(&[0xAA; 80 << 10]).unwrap();
    drop(file);
    let result = async {
        let journal = Journal::sqlite(&directory.file(), Options::default()).await?;
        journal.info(&key).await
    };
    let result = result.await;
    assert!(matches!(result, Err(Error::Damaged(_))), "{result:?}");
    assert!(result.unwrap_err().to_string().contains("move it away"));
}

#[tokio::test]
async fn a_full_journal_refuses_appends_and_goes_on_when_there_is_room() {
    let (directory, large) = (TempDir::new(), key("large"));
    let options = Options::default().max_bytes(1 << 20).durability(Durability::Written);
    let journal = Journal::sqlite(&directory.file(), options).await.unwrap();
    let lease = journal.claim(&large, &claim("one")).await.unwrap();
    let text = "x".repeat(100 << 10);
    let last = fill(&journal, &lease, &text).await;
    assert_eq!(journal.info(&large).await.unwrap().last, last);
    // A small append beside one that does not fit is not refused with it.
    let small = key("small");
    let other = journal.claim(&small, &claim("one")).await.unwrap();
    let (full, fits) = tokio::join!(
        journal.append(&lease, last, page(&[&text])),
        journal.append(&other, Seq::ZERO, page(&["1"])),
    );
    assert!(matches!(full, Err(Error::Full)), "{full:?}");
    fits.unwrap();
    assert_eq!(texts(&journal, &small, Seq::ZERO).await, numbers(1, 1));
    journal.trim(&large, last).await.unwrap();
    journal.append(&lease, last, page(&[&text])).await.unwrap();
}

#[tokio::test]
async fn a_directory_or_a_missing_one_is_an_error() {
    let directory = TempDir::new();
    let here = directory.file().parent().unwrap().to_owned();
    for path in [here.clone(), here.join("missing").join("journal.db")] {
        let refused = Journal::sqlite(&path, Options::default()).await;
        assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_open_a_new_file_at_once() {
    let directory = TempDir::new();
    let opening: Vec<_> = (0..16)
        .map(|number: u32| {
            let path = directory.file();
            tokio::spawn(async move {
                let journal = Journal::sqlite(&path, Options::default()).await.unwrap();
                let key = key(&number.to_string());
                let lease = journal.claim(&key, &claim("one")).await.unwrap();
                append(&journal, &lease, Seq::ZERO, 1).await;
                lease.epoch().get()
            })
        })
        .collect();
    let mut epochs = Vec::new();
    for opened in opening {
        epochs.push(opened.await.unwrap());
    }
    epochs.sort_unstable();
    assert_eq!(epochs, (1..=16).collect::<Vec<_>>());
}

#[cfg(unix)]
#[tokio::test]
async fn the_files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = TempDir::new();
    let journal = Journal::sqlite(&directory.file(), Options::default()).await.unwrap();
    journal.claim(&key("a"), &claim("one")).await.unwrap();
    let files: Vec<_> = std::fs::read_dir(directory.file().parent().unwrap()).unwrap().flatten().collect();
    assert!(files.len() >= 3, "the file, its log and its lock");
    for file in files {
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{:?}", file.path());
    }
}
