//! The laws on real NATS servers, and servers that fail. `cargo xtask nats` runs these with several
//! versions.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use attache_journal::nats::{Message, Messenger, Nats, Options, RequestError};
use attache_journal::{Clock, Error, Journal, ManualClock, Seq};
use proptest::test_runner::{Config, TestRunner};

use crate::laws::laws;
use crate::model::{block_on, compare, operations};
use crate::rig::{Place, Rig, TempDir, append, claim, fill, key, numbers, page, texts};

laws! { [ignore = "needs a server: cargo xtask nats"] Rig::nats().await }

/// A server of our own.
pub(crate) struct Server {
    child: Child,
    directory: TempDir,
    pub(crate) port: u16,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_in(TempDir::new(), 0, true)
    }

    fn start_in(directory: TempDir, port: u16, has_jetstream: bool) -> Self {
        let program =
            std::env::var_os("ATTACHE_NATS_SERVER").expect("ATTACHE_NATS_SERVER names a nats-server");
        let mut command = Command::new(program);
        command.args(["-a", "127.0.0.1", "-p", &if port == 0 { "-1".to_owned() } else { port.to_string() }]);
        if has_jetstream {
            command.arg("-js").arg("-sd").arg(directory.file().parent().unwrap());
        }
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut listening = None;
        for line in lines.by_ref() {
            if let Some((_, address)) = line.split_once("Listening for client connections on ") {
                listening = address.rsplit(':').next().and_then(|port| port.trim().parse().ok());
            }
            if line.contains("Server is ready") {
                break;
            }
        }
        std::thread::spawn(move || lines.for_each(drop));
        Server { child, directory, port: listening.expect("the server listens") }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Ends the server without warning, and starts it with the same data at the same port.
    fn kill_and_restart(&mut self) {
        self.kill();
        let directory = std::mem::replace(&mut self.directory, TempDir::new());
        *self = Self::start_in(directory, self.port, true);
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
#[ignore = "needs a server: cargo xtask nats"]
fn nats_is_like_the_model() {
    let server = Server::start();
    let case = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
    runner
        .run(&operations(), |ops| {
            case.set(case.get() + 1);
            let name = format!("CASE{}", case.get());
            block_on(async {
                let clock = ManualClock::default();
                let place = Place::Nats { url: server.url(), name, _server: None };
                compare(Rig::open(place, clock).await, ops).await;
            });
            Ok(())
        })
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask nats"]
async fn a_killed_server_loses_nothing_and_followers_go_on() {
    let mut server = Server::start();
    let journal = Journal::nats(&server.url(), Options::default()).await.unwrap();
    let other = Journal::nats(&server.url(), Options::default()).await.unwrap();
    let lease = journal.claim(&key("a"), &claim("one")).await.unwrap();
    let mut follower = other.follow(&key("a"), Seq::ZERO).await.unwrap();
    let mut last = Seq::ZERO;
    for round in 1..=3 {
        last = append(&journal, &lease, last, 10).await;
        server.kill_and_restart();
        // The first calls may still meet the connection that was lost.
        last = loop {
            match journal.append(&lease, last, crate::rig::numbered(last, 10)).await {
                Ok(last) => break last,
                Err(Error::Unavailable(_)) => {}
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(last, Seq::new(round * 20));
        while follower.position() < last {
            match follower.next().await {
                Ok(page) => assert!(page.last() <= last),
                Err(Error::Unavailable(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert_eq!(texts(&journal, &key("a"), Seq::ZERO).await, numbers(1, last.get()));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask nats"]
async fn a_full_stream_refuses_appends() {
    let server = Server::start();
    let options = Options::default().max_bytes(1 << 20).clock(Clock::system());
    let journal = Journal::nats(&server.url(), options).await.unwrap();
    let lease = journal.claim(&key("a"), &claim("one")).await.unwrap();
    let text = "x".repeat(100 << 10);
    let last = fill(&journal, &lease, &text).await;
    journal.trim(&key("a"), last).await.unwrap();
    journal.append(&lease, last, page(&[&text])).await.unwrap();
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask nats"]
async fn servers_that_cannot_be_used_are_named() {
    let plain = Server::start_in(TempDir::new(), 0, false);
    let refused = Journal::nats(&plain.url(), Options::default()).await;
    assert!(refused.unwrap_err().to_string().contains("JetStream is not enabled"));
    let url = plain.url();
    drop(plain);
    let refused = Journal::nats(&url, Options::default()).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    for bad in ["http://127.0.0.1", "nats://", Path::new("a").to_str().unwrap()] {
        let refused = Journal::nats(bad, Options::default()).await;
        assert!(matches!(refused, Err(Error::InvalidAddress { .. })), "{refused:?}");
    }
}

/// Longer than any request takes.
const WAIT: Duration = Duration::from_secs(5);

async fn messenger(server: &Server) -> Messenger {
    Nats::connect(&server.url(), Options::default()).await.unwrap().messenger()
}

/// Sends requests until one has a reply: the receiver may just be about to subscribe.
async fn request(messenger: &Messenger, subject: &str, text: &'static str) -> Message {
    loop {
        match messenger.request(subject, text.into(), WAIT).await {
            Ok(reply) => return reply,
            Err(RequestError::NoResponders | RequestError::Failed(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a server: cargo xtask nats"]
async fn requests_are_answered_also_after_the_server_was_killed() {
    let mut server = Server::start();
    let (near, far) = (messenger(&server).await, messenger(&server).await);
    let subject = near.subject(&["to", "a.b c"]);
    assert_eq!(subject, "ATT.to.a%2Eb%20c");
    let unheard = near.request(&subject, "hi".into(), WAIT).await;
    assert!(matches!(unheard, Err(RequestError::NoResponders)), "{unheard:?}");

    let mut messages = far.subscribe(&subject, 8).await.unwrap();
    let answering = {
        let far = far.clone();
        tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                match message.reply_to() {
                    // A request without an answer.
                    Some(_) if message.payload().is_empty() => {}
                    Some(sender) => far.publish(sender, message.payload().repeat(2).into()).await.unwrap(),
                    None => return,
                }
            }
        })
    };
    assert_eq!(request(&near, &subject, "hi").await.payload(), "hihi");
    let unanswered = near.request(&subject, "".into(), Duration::from_millis(50)).await;
    assert!(matches!(unanswered, Err(RequestError::TimedOut)), "{unanswered:?}");
    let limit = near.max_payload().await.unwrap();
    let large = near.request(&subject, vec![b'x'; limit + 1].into(), WAIT).await;
    assert!(matches!(large, Err(RequestError::TooLarge { limit: at }) if at == limit), "{large:?}");

    server.kill_and_restart();
    assert_eq!(request(&near, &subject, "again").await.payload(), "againagain");
    // A message has no sender that waits. It ends the subscription.
    near.publish(&subject, "end".into()).await.unwrap();
    answering.await.unwrap();
    while near.request(&subject, "hi".into(), WAIT).await.is_ok() {}
    let unheard = near.request(&subject, "hi".into(), WAIT).await;
    assert!(matches!(unheard, Err(RequestError::NoResponders)), "{unheard:?}");
}
