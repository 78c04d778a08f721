//! Seeded runs with lost connections, repeated prompts, dying agents and killed hubs, and the laws
//! that hold for each of them.
//!
//! `ATTACHE_SEEDS=FROM..TO` chooses other seeds.

use std::collections::{BTreeMap, HashSet};

use attache_journal::Journal;
use serde_json::{Value, json};

use crate::agent::{Abilities, Record};
use crate::rig::{Rig, TestClient, prompt, text};

/// Seeds of a usual test run.
const SEEDS: std::ops::Range<u64> = 1..25;
const CLIENTS: usize = 3;
/// Lives of the hub in one run, and steps in each.
const LIVES: u64 = 4;
const STEPS: u64 = 12;

/// Random numbers that a seed determines.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A client that survives its connections.
struct Survivor {
    number: usize,
    prompts: u64,
    /// Its position, counted as docs/hub.md says.
    epoch: u64,
    seq: u64,
    /// What it has seen, by position.
    seen: BTreeMap<u64, String>,
    /// The prompt without a response: its id and its text.
    pending: Option<(String, String)>,
    connection: Option<TestClient>,
}

impl Survivor {
    fn new(number: usize, at: &str) -> Survivor {
        let mut survivor = Survivor {
            number,
            prompts: 0,
            epoch: 0,
            seq: 0,
            seen: BTreeMap::new(),
            pending: None,
            connection: None,
        };
        survivor.set(at);
        survivor
    }

    fn set(&mut self, at: &str) {
        let (epoch, seq) = at.split_once('.').unwrap();
        let seq: u64 = seq.parse().unwrap();
        assert!(seq >= self.seq, "positions only grow: {seq} after {}", self.seq);
        (self.epoch, self.seq) = (epoch.parse().unwrap(), seq);
    }

    /// Counts a message and keeps its text.
    fn see(&mut self, message: &Value) {
        let params = &message["params"];
        if params["sessionId"].is_null() {
            return;
        }
        let meta = &params["_meta"]["attache"];
        let at = if message["method"] == "_attache/position" { &params["at"] } else { &meta["at"] };
        match (at.as_str(), meta.is_object()) {
            (Some(at), _) => self.set(at),
            (None, true) => {}
            (None, false) => self.seq += 1,
        }
        if let Some(text) = text(message) {
            let before = self.seen.insert(self.seq, text.clone());
            assert_eq!(before, None, "position {} is seen twice: {text}", self.seq);
        }
    }

    /// Connects, takes up the session where it was, and sends the open prompt again.
    async fn connect(&mut self, rig: &Rig, session: &str) {
        let mut client = rig.counting_client().await;
        let after = format!("{}.{}", self.epoch, self.seq);
        let resumed = client.open("session/resume", session, json!({"after": after, "strict": true})).await;
        for message in std::mem::take(&mut client.seen) {
            self.see(&message);
        }
        let at = resumed["result"]["_meta"]["attache"]["at"].as_str().unwrap_or_else(|| panic!("{resumed}"));
        assert_eq!(at.split_once('.').unwrap().1, self.seq.to_string(), "counting agrees with the hub");
        self.set(at);
        self.connection = Some(client);
        self.send(session).await;
    }

    async fn send(&mut self, session: &str) {
        let (Some((name, text)), Some(client)) = (&self.pending, &mut self.connection) else { return };
        let mut params = prompt(session, text);
        params["_meta"] = json!({"attache": {"prompt": name}});
        client.request("session/prompt", params).await;
    }

    fn make_prompt(&mut self, word: &str) {
        self.prompts += 1;
        let name = format!("c{}p{}", self.number, self.prompts);
        self.pending = Some((name.clone(), format!("{word} {name}").trim().to_owned()));
    }

    /// Reads until the open prompt has its response. Questions are answered.
    async fn finish(&mut self) {
        while self.pending.is_some() {
            let Some(client) = &mut self.connection else { return };
            let message = client.next().await.expect("an open connection");
            match message["method"].as_str() {
                Some("session/request_permission") => client.choose(&message["id"], "yes").await,
                Some(_) => {}
                None => self.pending = None,
            }
            self.see(&message);
        }
    }
}

/// Plays one run.
fn play(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (journal, record) = (Journal::memory(), Record::default());
    let rig = || {
        Rig::on(journal.clone(), record.clone(), Abilities { load: true, resume: false }, |options| options)
    };
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();

    let first = runtime();
    let (session, at) = first.block_on(async {
        let mut client = rig().counting_client().await;
        let opened = client.call("session/new", json!({"cwd": "/", "mcpServers": []})).await;
        let at = opened["result"]["_meta"]["attache"]["at"].as_str().unwrap().to_owned();
        (opened["result"]["sessionId"].as_str().unwrap().to_owned(), at)
    });
    first.shutdown_background();
    let mut clients: Vec<Survivor> = (0..CLIENTS).map(|number| Survivor::new(number, &at)).collect();

    for life in 0..LIVES {
        let runtime = runtime();
        runtime.block_on(async {
            let rig = rig();
            for client in &mut clients {
                client.connect(&rig, &session).await;
            }
            for _ in 0..STEPS {
                let client = &mut clients[random.below(CLIENTS as u64) as usize];
                match random.below(8) {
                    0 | 1 if client.pending.is_none() => {
                        let word = ["", "many", "many", "ask", "die"][random.below(5) as usize];
                        client.make_prompt(word);
                        client.send(&session).await;
                    }
                    // The same prompt on the same connection: both requests are answered once its
                    // turn ends.
                    2 => client.send(&session).await,
                    3 | 4 => {
                        client.connection = None;
                        client.connect(&rig, &session).await;
                    }
                    _ => client.finish().await,
                }
                // A response that was left over belongs to an earlier prompt.
                if client.pending.is_none() {
                    client.connection = None;
                    client.connect(&rig, &session).await;
                }
            }
            if life == LIVES - 1 {
                for client in &mut clients {
                    client.connection = None;
                    client.connect(&rig, &session).await;
                    client.finish().await;
                }
                check(&rig, &session, &clients).await;
            }
        });
        clients.iter_mut().for_each(|client| client.connection = None);
        runtime.shutdown_background();
    }
    let ran = record.of("prompt");
    let different: HashSet<&String> = ran.iter().collect();
    assert_eq!(ran.len(), different.len(), "no prompt ran twice: {ran:?}");
}

/// Compares what each client saw with the journal.
async fn check(rig: &Rig, session: &str, clients: &[Survivor]) {
    let mut reader = rig.counting_client().await;
    reader.load(session).await;
    let mut all = Survivor::new(CLIENTS, "0.0");
    for message in &reader.seen {
        all.see(message);
    }
    for client in clients {
        for (seq, text) in &client.seen {
            assert_eq!(all.seen.get(seq), Some(text), "client {} at {seq}", client.number);
        }
        let own = format!("c{}p", client.number);
        for (seq, text) in all.seen.range(..=client.seq) {
            // A client need not be shown its own prompts.
            let is_own_prompt = text.starts_with("> ") && text.contains(&own);
            assert!(
                client.seen.contains_key(seq) || is_own_prompt,
                "client {} lacks {seq}: {text}",
                client.number
            );
        }
    }
}

#[test]
fn clients_see_a_prefix_of_the_journal_and_no_prompt_runs_twice() {
    let seeds = std::env::var("ATTACHE_SEEDS").ok().and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    for seed in seeds.unwrap_or(SEEDS) {
        let played = std::panic::catch_unwind(|| play(seed));
        assert!(played.is_ok(), "seed {seed} failed: ATTACHE_SEEDS={seed}..{}", seed + 1);
    }
}
