//! Several processes on one file. The other processes are this test program, with the role in its
//! environment.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use attache_journal::sqlite::Options;
use attache_journal::{Claim, Error, Journal, Seq};

use crate::rig::{TempDir, append, claim, key, numbers, texts};

const FILE: &str = "ATTACHE_JOURNAL_TEST_FILE";
const OWNER: &str = "ATTACHE_JOURNAL_TEST_OWNER";
/// An append has this many entries.
const PAGE: u64 = 20;

/// A process that claims the session, appends without end, and prints each acknowledged position.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(file: &Path, owner: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sqlite_processes::writer_process", "--ignored", "--nocapture"])
            .env(FILE, file)
            .env(OWNER, owner)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Process { child, lines }
    }

    /// The next report of the process; `None` when it has ended.
    fn report(&mut self) -> Option<String> {
        self.lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, report) = line.split_once("report: ")?;
            Some(report.to_owned())
        })
    }

    fn acknowledged(&mut self) -> Option<u64> {
        self.report().and_then(|report| report.parse().ok())
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "a process of the other tests"]
#[allow(clippy::print_stdout, reason = "the reports of this process")]
fn writer_process() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let owner = std::env::var(OWNER).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    runtime.block_on(async {
        let journal = Journal::sqlite(Path::new(&file), Options::default()).await.unwrap();
        let claim = Claim::new(owner, Duration::from_secs(3600)).force();
        let lease = journal.claim(&key("a"), &claim).await.unwrap();
        let mut last = lease.last();
        loop {
            match journal.append(&lease, last, crate::rig::numbered(last, PAGE)).await {
                Ok(now) => last = now,
                Err(error) => return println!("report: {error}"),
            }
            println!("report: {last}");
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_pages_survive_kill_in_order_and_once() {
    let directory = TempDir::new();
    let mut seen = 0;
    for round in 0..8 {
        let mut process = Process::start(&directory.file(), &format!("owner-{round}"));
        for _ in 0..=round * 3 {
            let now = process.acknowledged().unwrap();
            assert!(now > seen);
            seen = now;
        }
        process.kill();
        // It may have been acknowledged more before it died.
        while let Some(now) = process.acknowledged() {
            seen = now;
        }
        let journal = Journal::sqlite(&directory.file(), Options::default()).await.unwrap();
        let last = journal.info(&key("a")).await.unwrap().last.get();
        assert!(last >= seen, "acknowledged {seen}, stored {last}");
        assert!(last <= seen + PAGE, "at most one append was under way");
        assert_eq!(texts(&journal, &key("a"), Seq::ZERO).await, numbers(1, last));
        // The owner died without a release, so its lease has time left.
        let refused = journal.claim(&key("a"), &claim("other")).await;
        assert!(matches!(refused, Err(Error::Held { .. })), "{refused:?}");
        seen = last;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_is_fenced_by_another() {
    let directory = TempDir::new();
    let mut old = Process::start(&directory.file(), "old");
    let mut last_of_old = old.acknowledged().unwrap();
    let mut new = Process::start(&directory.file(), "new");
    let first_of_new = new.acknowledged().unwrap() - PAGE;
    let refusal = loop {
        let report = old.report().unwrap();
        match report.parse() {
            Ok(now) => last_of_old = now,
            Err(_) => break report,
        }
    };
    assert_eq!(refusal, "the session was taken over by another owner");
    assert_eq!(last_of_old, first_of_new);
    new.kill();
    let journal = Journal::sqlite(&directory.file(), Options::default()).await.unwrap();
    let last = journal.info(&key("a")).await.unwrap().last.get();
    assert_eq!(texts(&journal, &key("a"), Seq::ZERO).await, numbers(1, last));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_reads_what_another_process_appends() {
    let directory = TempDir::new();
    let journal = Journal::sqlite(&directory.file(), Options::default()).await.unwrap();
    let lease = journal.claim(&key("a"), &claim("here")).await.unwrap();
    let last = append(&journal, &lease, Seq::ZERO, 5).await;
    let mut follower = journal.follow(&key("a"), Seq::new(2)).await.unwrap();
    let mut process = Process::start(&directory.file(), "there");
    process.acknowledged().unwrap();
    let mut reached = Seq::new(2);
    while reached < last.plus(20 * PAGE) {
        let page = follower.next().await.unwrap();
        assert_eq!(page.first(), reached.plus(1));
        for entry in page.entries() {
            assert_eq!(entry.bytes(), entry.seq().to_string().as_bytes());
        }
        reached = page.last();
    }
    process.kill();
}
