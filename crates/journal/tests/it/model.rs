//! Random operations, compared with a model that is too simple to be wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use attache_journal::{Claim, Error, Journal, Lease, Page, Result, Seq, SessionKey};
use proptest::prelude::*;

use crate::rig::{Rig, key, page};

const SESSIONS: [&str; 2] = ["a", "b"];
const OWNERS: [&str; 3] = ["one", "two", "three"];

/// An operation on the journal.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Claim {
        session: usize,
        owner: usize,
        force: bool,
        existing: bool,
    },
    /// Appends at the last entry plus `offset`.
    Append {
        lease: usize,
        offset: i64,
        count: usize,
    },
    /// Repeats the last append of a lease.
    Repeat {
        lease: usize,
    },
    Renew {
        lease: usize,
    },
    Release {
        lease: usize,
    },
    Advance {
        seconds: u64,
    },
    Trim {
        session: usize,
        upto: u64,
    },
    Forget {
        session: usize,
    },
    Read {
        session: usize,
        after: u64,
        upto: Option<u64>,
    },
    Info {
        session: usize,
    },
    List,
    /// Opens the data a second time and goes on with that.
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    let session = 0..SESSIONS.len();
    let lease = 0..16_usize;
    prop_oneof![
        4 => (session.clone(), 0..OWNERS.len(), prop::bool::weighted(0.3), prop::bool::weighted(0.1))
            .prop_map(|(session, owner, force, existing)| Op::Claim { session, owner, force, existing }),
        8 => (lease.clone(), prop_oneof![8 => Just(0_i64), 1 => -3..3_i64], 1..5_usize)
            .prop_map(|(lease, offset, count)| Op::Append { lease, offset, count }),
        2 => lease.clone().prop_map(|lease| Op::Repeat { lease }),
        1 => lease.clone().prop_map(|lease| Op::Renew { lease }),
        1 => lease.prop_map(|lease| Op::Release { lease }),
        2 => (0..12_u64).prop_map(|seconds| Op::Advance { seconds }),
        1 => (session.clone(), 0..20_u64).prop_map(|(session, upto)| Op::Trim { session, upto }),
        1 => session.clone().prop_map(|session| Op::Forget { session }),
        3 => (session.clone(), 0..20_u64, prop::option::of(0..25_u64))
            .prop_map(|(session, after, upto)| Op::Read { session, after, upto }),
        2 => session.prop_map(|session| Op::Info { session }),
        1 => Just(Op::List),
        1 => Just(Op::Reopen),
    ]
}

/// First entry, last entry, owner, bytes.
type Summary = (u64, u64, Option<(String, u64)>, u64);

/// One session: every entry with the append and the claim that it came from.
#[derive(Default)]
struct Log {
    claim: usize,
    owner: Option<(&'static str, u64)>,
    entries: Vec<ModelEntry>,
    /// How many entries were removed from the front.
    trimmed: usize,
}

#[derive(Clone)]
struct ModelEntry {
    text: String,
    append: usize,
    claim: usize,
}

#[derive(Default)]
struct Model {
    now: u64,
    claims: usize,
    appends: usize,
    sessions: BTreeMap<usize, Log>,
}

/// A lease of the journal and what the model knows of it.
struct Held {
    lease: Lease,
    session: usize,
    claim: usize,
    last_append: Option<(Seq, Page, Vec<String>)>,
}

impl Model {
    fn leased(&mut self, held: &Held) -> Result<&mut Log> {
        self.sessions.get_mut(&held.session).filter(|log| log.claim == held.claim).ok_or(Error::Fenced)
    }

    fn claim(&mut self, session: usize, owner: &'static str, force: bool, existing: bool) -> Result<u64> {
        match self.sessions.get(&session) {
            None if existing => return Err(Error::Unknown),
            Some(Log { owner: Some((other, until)), .. })
                if !force && *other != owner && *until > self.now =>
            {
                return Err(Error::Held { owner: (*other).to_owned(), until: *until });
            }
            _ => {}
        }
        self.claims += 1;
        let log = self.sessions.entry(session).or_default();
        log.claim = self.claims;
        log.owner = Some((owner, self.now + 10_000));
        Ok(log.entries.len() as u64)
    }

    fn append(&mut self, held: &Held, after: Seq, texts: &[String]) -> Result<u64> {
        self.appends += 1;
        let append = self.appends;
        let log = self.leased(held)?;
        let last = Seq::new(log.entries.len() as u64);
        let from = usize::try_from(after.get()).unwrap();
        if after == last {
            let entry = |text: &String| ModelEntry { text: text.clone(), append, claim: held.claim };
            log.entries.extend(texts.iter().map(entry));
            return Ok(log.entries.len() as u64);
        }
        let end = from + texts.len();
        let repeats = from >= log.trimmed
            && log.entries.get(from..end).is_some_and(|entries| {
                let append = entries[0].append;
                entries.iter().zip(texts).all(|(entry, text)| {
                    entry.text == *text && entry.append == append && entry.claim == held.claim
                })
            })
            // It was a whole page.
            && from.checked_sub(1).is_none_or(|before| log.entries[before].append != log.entries[from].append)
            && log.entries.get(end).is_none_or(|next| next.append != log.entries[from].append);
        if repeats { Ok(end as u64) } else { Err(Error::Conflict { last }) }
    }

    fn read(&self, session: usize, after: u64, upto: Option<u64>) -> Result<Vec<String>> {
        let log = self.sessions.get(&session).ok_or(Error::Unknown)?;
        let last = log.entries.len() as u64;
        if after > last {
            return Err(Error::PastEnd { last: Seq::new(last) });
        }
        if after < log.trimmed as u64 {
            return Err(Error::Trimmed { first: Seq::new(log.trimmed as u64 + 1) });
        }
        let upto = upto.map_or(last, |upto| upto.min(last)).max(after);
        let range = usize::try_from(after).unwrap()..usize::try_from(upto).unwrap();
        Ok(log.entries[range].iter().map(|entry| entry.text.clone()).collect())
    }

    fn trim(&mut self, session: usize, upto: u64) -> Result<()> {
        let log = self.sessions.get_mut(&session).ok_or(Error::Unknown)?;
        let end = |number: usize| {
            let append = log.entries[number].append;
            number + log.entries[number..].iter().take_while(|entry| entry.append == append).count()
        };
        while log.trimmed < log.entries.len() {
            let end = end(log.trimmed);
            if end as u64 > upto || end == log.entries.len() {
                break;
            }
            log.trimmed = end;
        }
        Ok(())
    }

    fn info(&self, session: usize) -> Result<Summary> {
        let log = self.sessions.get(&session).ok_or(Error::Unknown)?;
        let bytes: usize = log.entries[log.trimmed..].iter().map(|entry| entry.text.len()).sum();
        let owner = log.owner.map(|(owner, until)| (owner.to_owned(), until));
        Ok((log.trimmed as u64 + 1, log.entries.len() as u64, owner, bytes as u64))
    }
}

async fn read(journal: &Journal, key: &SessionKey, after: u64, upto: Option<u64>) -> Result<Vec<String>> {
    let mut pages = journal.read(key, Seq::new(after), upto.map(Seq::new)).await?;
    let mut texts = Vec::new();
    while let Some(page) = pages.next().await? {
        texts.extend(page.entries().map(|entry| String::from_utf8(entry.bytes().to_vec()).unwrap()));
    }
    Ok(texts)
}

async fn info(journal: &Journal, key: &SessionKey) -> Result<Summary> {
    let info = journal.info(key).await?;
    let owner = info.owner.map(|owner| (owner.name, owner.until));
    Ok((info.first.get(), info.last.get(), owner, info.bytes))
}

/// Results are compared by their text: errors have no equality.
fn same<T: std::fmt::Debug>(got: &Result<T>, expected: &Result<T>, op: &Op) {
    assert_eq!(format!("{got:?}"), format!("{expected:?}"), "{op:?}");
}

/// Runs the operations against a journal and the model.
pub(crate) async fn compare(rig: Rig, ops: Vec<Op>) {
    let mut journal = rig.journal.clone();
    let mut model = Model::default();
    let mut leases: Vec<Held> = Vec::new();
    let mut greatest = None;
    for (number, op) in ops.into_iter().enumerate() {
        let choose = |lease: usize| lease.checked_rem(leases.len());
        match op.clone() {
            Op::Claim { session, owner, force, existing } => {
                let mut claim = Claim::new(OWNERS[owner], Duration::from_secs(10));
                claim = if force { claim.force() } else { claim };
                claim = if existing { claim.existing() } else { claim };
                let got = journal.claim(&key(SESSIONS[session]), &claim).await;
                let expected = model.claim(session, OWNERS[owner], force, existing);
                same(&got.as_ref().map(|lease| lease.last().get()).map_err(Clone::clone), &expected, &op);
                if let Ok(lease) = got {
                    assert!(Some(lease.epoch()) > greatest, "epochs grow");
                    greatest = Some(lease.epoch());
                    leases.push(Held { lease, session, claim: model.claims, last_append: None });
                }
            }
            Op::Append { lease, offset, count } => {
                let Some(lease) = choose(lease) else { continue };
                let last =
                    model.sessions.get(&leases[lease].session).map_or(0, |log| log.entries.len() as u64);
                let after = Seq::new(last.saturating_add_signed(offset));
                let texts: Vec<String> = (0..count).map(|index| format!("{number}-{index}")).collect();
                let content = page(&texts.iter().map(String::as_str).collect::<Vec<_>>());
                let got = journal.append(&leases[lease].lease, after, content.clone()).await.map(Seq::get);
                same(&got, &model.append(&leases[lease], after, &texts), &op);
                leases[lease].last_append = Some((after, content, texts));
            }
            Op::Repeat { lease } => {
                let Some(lease) = choose(lease) else { continue };
                let Some((after, content, texts)) = leases[lease].last_append.clone() else { continue };
                let got = journal.append(&leases[lease].lease, after, content).await.map(Seq::get);
                same(&got, &model.append(&leases[lease], after, &texts), &op);
            }
            Op::Renew { lease } => {
                let Some(lease) = choose(lease) else { continue };
                let got = journal.renew(&leases[lease].lease, Duration::from_secs(10)).await;
                let until = model.now + 10_000;
                let owner = OWNERS.into_iter().find(|owner| *owner == leases[lease].lease.owner()).unwrap();
                let expected = model.leased(&leases[lease]).map(|log| log.owner = Some((owner, until)));
                same(&got, &expected, &op);
            }
            Op::Release { lease } => {
                let Some(lease) = choose(lease) else { continue };
                let held = leases.swap_remove(lease);
                let expected = model.leased(&held).map(|log| log.owner = None);
                same(&journal.release(held.lease).await, &expected, &op);
            }
            Op::Advance { seconds } => {
                rig.clock.advance(Duration::from_secs(seconds));
                model.now += seconds * 1000;
            }
            Op::Trim { session, upto } => {
                let got = journal.trim(&key(SESSIONS[session]), Seq::new(upto)).await;
                same(&got, &model.trim(session, upto), &op);
            }
            Op::Forget { session } => {
                let got = journal.forget(&key(SESSIONS[session])).await;
                same(&got, &model.sessions.remove(&session).map(drop).ok_or(Error::Unknown), &op);
            }
            Op::Read { session, after, upto } => {
                let got = read(&journal, &key(SESSIONS[session]), after, upto).await;
                same(&got, &model.read(session, after, upto), &op);
            }
            Op::Info { session } => {
                same(&info(&journal, &key(SESSIONS[session])).await, &model.info(session), &op);
            }
            Op::List => {
                let got = journal.list("tenant", None, 10).await.unwrap();
                let got: Vec<&str> = got.iter().map(|info| info.key.session()).collect();
                assert_eq!(got, model.sessions.keys().map(|session| SESSIONS[*session]).collect::<Vec<_>>());
            }
            Op::Reopen => journal = rig.second().await,
        }
    }
    for (session, name) in SESSIONS.into_iter().enumerate() {
        let op = Op::Info { session };
        same(&info(&journal, &key(name)).await, &model.info(session), &op);
        let after = model.sessions.get(&session).map_or(0, |log| log.trimmed as u64);
        same(&read(&journal, &key(name), after, None).await, &model.read(session, after, None), &op);
    }
}

/// Sequences of operations.
pub(crate) fn operations() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..80)
}

/// Runs a future of a property test.
pub(crate) fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn memory_is_like_the_model(ops in operations()) {
        block_on(async { compare(Rig::memory().await, ops).await });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_is_like_the_model(ops in operations()) {
        block_on(async { compare(Rig::sqlite().await, ops).await });
    }
}
