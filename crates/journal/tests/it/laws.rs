//! The laws, as tests that run against every backend.

use attache_journal::{Error, Page, Seq, SessionKey};

use crate::rig::{Rig, TTL, append, claim, key, numbered, numbers, page, texts};

/// Declares a test for each law with the given backend.
macro_rules! laws {
    (@each $attributes:tt $rig:expr; $($law:ident),* $(,)?) => {
        $($crate::laws::laws! { @one $attributes $rig; $law })*
    };
    (@one [$($attribute:meta)?] $rig:expr; $law:ident) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        $(#[$attribute])?
        async fn $law() {
            $crate::laws::$law($rig).await;
        }
    };
    ($attributes:tt $rig:expr) => {
        $crate::laws::laws! { @each $attributes $rig;
            entries_are_numbered_without_holes,
            a_page_keeps_bytes_and_kinds,
            append_follows_the_last_entry,
            a_repeated_append_appears_once,
            a_claim_fences_the_owner_before,
            concurrent_appends_of_two_owners_never_interleave,
            a_lease_with_time_left_excludes_others,
            an_owner_without_time_goes_on_until_another_claims,
            release_lets_others_in_at_once,
            forget_ends_leases_and_followers,
            epochs_are_not_reused_after_forget,
            follow_replays_to_a_fixed_watermark_then_lives,
            follow_during_appends_has_no_gap_and_no_double,
            a_slow_follower_reads_from_storage,
            a_dropped_append_reaches_followers,
            follow_sees_another_node,
            trim_keeps_the_last_page_and_leaves_no_silent_gap,
            an_append_behind_trimmed_pages_conflicts,
            positions_outside_of_the_log_are_refused,
            tenants_are_apart,
            list_pages_by_id,
            a_read_ends_at_its_limit,
        }
    };
}
pub(crate) use laws;

pub(crate) async fn entries_are_numbered_without_holes(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    assert_eq!(lease.last(), Seq::ZERO);
    let mut last = lease.last();
    for count in [1, 64, 3] {
        last = append(journal, &lease, last, count).await;
    }
    assert_eq!(last, Seq::new(68));
    assert_eq!(texts(journal, &key, Seq::ZERO).await, numbers(1, 68));
    assert_eq!(texts(journal, &key, Seq::new(30)).await, numbers(31, 68));
    let info = journal.info(&key).await.unwrap();
    assert_eq!((info.first, info.last, info.epoch), (Seq::new(1), last, lease.epoch()));
    assert_eq!(info.bytes, 9 + 59 * 2);
}

pub(crate) async fn a_page_keeps_bytes_and_kinds(rig: Rig) {
    let (journal, key) = (&rig.journal, key("ünïcode / * > ."));
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    let large = vec![b'x'; 3 << 20];
    let mut page = Page::builder();
    for (kind, bytes) in [(0, &b"{\"a\":\"\xc3\xbc\"}\n"[..]), (255, b""), (7, &large), (9, b"\0\xff")] {
        page.push(kind, bytes).unwrap();
    }
    let page = page.build();
    journal.append(&lease, Seq::ZERO, page.clone()).await.unwrap();
    let mut pages = journal.read(&key, Seq::ZERO, None).await.unwrap();
    let stored = pages.next().await.unwrap().unwrap();
    assert_eq!((stored.page(), stored.epoch(), stored.at()), (&page, lease.epoch(), 0));
    let mut pages = journal.read(&key, Seq::new(1), Some(Seq::new(2))).await.unwrap();
    let stored = pages.next().await.unwrap().unwrap();
    assert_eq!((stored.first(), stored.last()), (Seq::new(2), Seq::new(2)));
    assert_eq!(
        stored.entries().map(|entry| (entry.kind(), entry.bytes().len())).collect::<Vec<_>>(),
        [(255, 0)]
    );
    assert!(pages.next().await.unwrap().is_none());
}

pub(crate) async fn append_follows_the_last_entry(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    append(journal, &lease, Seq::ZERO, 2).await;
    for after in [0, 1, 3] {
        let refused = journal.append(&lease, Seq::new(after), page(&["other"])).await;
        assert!(matches!(refused, Err(Error::Conflict { last }) if last == Seq::new(2)), "{refused:?}");
    }
    let refused = journal.append(&lease, Seq::new(2), page(&[])).await;
    assert!(matches!(refused, Err(Error::EmptyPage)), "{refused:?}");
    assert_eq!(texts(journal, &key, Seq::ZERO).await, numbers(1, 2));
}

pub(crate) async fn a_repeated_append_appears_once(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    let first = numbered(Seq::ZERO, 3);
    for _ in 0..3 {
        assert_eq!(journal.append(&lease, Seq::ZERO, first.clone()).await.unwrap(), Seq::new(3));
    }
    append(journal, &lease, Seq::new(3), 2).await;
    assert_eq!(journal.append(&lease, Seq::ZERO, first.clone()).await.unwrap(), Seq::new(3));
    assert_eq!(texts(journal, &key, Seq::ZERO).await, numbers(1, 5));
    // The same bytes under another claim are not a repeat.
    let second = journal.claim(&key, &claim("one")).await.unwrap();
    let refused = journal.append(&second, Seq::new(3), numbered(Seq::new(3), 2)).await;
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
}

pub(crate) async fn a_claim_fences_the_owner_before(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let other = rig.second().await;
    let old = journal.claim(&key, &claim("one")).await.unwrap();
    append(journal, &old, Seq::ZERO, 2).await;
    let new = other.claim(&key, &claim("two").force()).await.unwrap();
    assert!(new.epoch() > old.epoch());
    assert_eq!(new.last(), Seq::new(2));
    let refused = journal.append(&old, Seq::new(2), page(&["late"])).await;
    assert!(matches!(refused, Err(Error::Fenced)), "{refused:?}");
    // Also a repeat of what had succeeded.
    let refused = journal.append(&old, Seq::ZERO, numbered(Seq::ZERO, 2)).await;
    assert!(matches!(refused, Err(Error::Fenced)), "{refused:?}");
    assert!(matches!(journal.renew(&old, TTL).await, Err(Error::Fenced)));
    assert!(matches!(journal.release(old).await, Err(Error::Fenced)));
    append(&other, &new, Seq::new(2), 1).await;
    assert_eq!(texts(journal, &key, Seq::ZERO).await, numbers(1, 3));
}

pub(crate) async fn concurrent_appends_of_two_owners_never_interleave(rig: Rig) {
    let key = key("a");
    let (journal, other) = (rig.journal.clone(), rig.second().await);
    let old = journal.claim(&key, &claim("one")).await.unwrap();
    append(&journal, &old, Seq::ZERO, 1).await;
    let started = std::sync::Arc::new(tokio::sync::Notify::new());
    let writing = tokio::spawn({
        let (journal, started) = (journal.clone(), started.clone());
        async move {
            let mut last = Seq::new(1);
            loop {
                match journal.append(&old, last, page(&["old"])).await {
                    Ok(now) => last = now,
                    Err(Error::Fenced) => return last,
                    Err(error) => panic!("{error}"),
                }
                started.notify_one();
            }
        }
    });
    started.notified().await;
    let new = other.claim(&key, &claim("two").force()).await.unwrap();
    other.append(&new, new.last(), page(&["new"])).await.unwrap();
    let last_of_old = writing.await.unwrap();
    assert_eq!(last_of_old, new.last());
    let mut pages = journal.read(&key, Seq::ZERO, None).await.unwrap();
    let mut epochs = Vec::new();
    while let Some(page) = pages.next().await.unwrap() {
        epochs.push(page.epoch());
    }
    assert!(epochs.is_sorted(), "{epochs:?}");
    assert_eq!(epochs.last(), Some(&new.epoch()));
}

pub(crate) async fn a_lease_with_time_left_excludes_others(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let other = rig.second().await;
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    let refused = other.claim(&key, &claim("two")).await;
    assert!(matches!(&refused, Err(Error::Held { owner, until: 10_000 }) if owner == "one"), "{refused:?}");
    rig.clock.advance(TTL / 2);
    journal.renew(&lease, TTL).await.unwrap();
    rig.clock.advance(TTL - std::time::Duration::from_millis(1));
    assert!(matches!(other.claim(&key, &claim("two")).await, Err(Error::Held { .. })));
    // The owner dies without a release.
    drop(lease);
    rig.clock.advance(std::time::Duration::from_millis(1));
    let taken = other.claim(&key, &claim("two")).await.unwrap();
    assert_eq!(journal.info(&key).await.unwrap().owner.unwrap().name, "two");
    // The same owner may come back at once, as after a restart.
    assert!(other.claim(&key, &claim("two")).await.unwrap().epoch() > taken.epoch());
}

pub(crate) async fn an_owner_without_time_goes_on_until_another_claims(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    rig.clock.advance(TTL * 2);
    append(journal, &lease, Seq::ZERO, 1).await;
    journal.renew(&lease, TTL).await.unwrap();
    assert!(matches!(journal.claim(&key, &claim("two")).await, Err(Error::Held { .. })));
    rig.clock.advance(TTL);
    journal.claim(&key, &claim("two")).await.unwrap();
    let refused = journal.append(&lease, Seq::new(1), page(&["late"])).await;
    assert!(matches!(refused, Err(Error::Fenced)), "{refused:?}");
}

pub(crate) async fn release_lets_others_in_at_once(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    journal.release(lease).await.unwrap();
    assert_eq!(journal.info(&key).await.unwrap().owner, None);
    journal.claim(&key, &claim("two")).await.unwrap();
}

pub(crate) async fn forget_ends_leases_and_followers(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    append(journal, &lease, Seq::ZERO, 2).await;
    let mut follower = journal.follow(&key, Seq::new(2)).await.unwrap();
    journal.forget(&key).await.unwrap();
    assert!(matches!(follower.next().await, Err(Error::Unknown)));
    let refused = journal.append(&lease, Seq::new(2), page(&["late"])).await;
    assert!(matches!(refused, Err(Error::Fenced)), "{refused:?}");
    assert!(matches!(journal.info(&key).await, Err(Error::Unknown)));
    assert!(matches!(journal.read(&key, Seq::ZERO, None).await, Err(Error::Unknown)));
    assert!(matches!(journal.trim(&key, Seq::MAX).await, Err(Error::Unknown)));
    assert!(matches!(journal.forget(&key).await, Err(Error::Unknown)));
    assert!(matches!(journal.claim(&key, &claim("one").existing()).await, Err(Error::Unknown)));
}

pub(crate) async fn epochs_are_not_reused_after_forget(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let old = journal.claim(&key, &claim("one")).await.unwrap();
    journal.forget(&key).await.unwrap();
    let new = journal.claim(&key, &claim("one")).await.unwrap();
    assert!(new.epoch() > old.epoch());
    let refused = journal.append(&old, Seq::ZERO, page(&["late"])).await;
    assert!(matches!(refused, Err(Error::Fenced)), "{refused:?}");
    append(journal, &new, Seq::ZERO, 1).await;
    assert_eq!(texts(journal, &key, Seq::ZERO).await, ["1"]);
}

pub(crate) async fn follow_replays_to_a_fixed_watermark_then_lives(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    let last = append(journal, &lease, Seq::ZERO, 10).await;
    let mut follower = journal.follow(&key, Seq::new(4)).await.unwrap();
    assert_eq!(follower.watermark(), last);
    assert!(!follower.is_live());
    let last = append(journal, &lease, last, 5).await;
    assert_eq!(follower.watermark(), Seq::new(10));
    let replayed = follower.next().await.unwrap();
    assert_eq!((replayed.first(), replayed.last()), (Seq::new(5), Seq::new(10)));
    assert!(follower.is_live());
    let live = follower.next().await.unwrap();
    assert_eq!((live.first(), live.last()), (Seq::new(11), last));
    assert_eq!(follower.position(), last);
    // A follower that starts at the end waits.
    let mut end = journal.follow(&key, last).await.unwrap();
    assert!(end.is_live());
    let mut waiting = Box::pin(end.next());
    tokio::select! {
        biased;
        page = &mut waiting => panic!("{page:?}"),
        () = std::future::ready(()) => {}
    }
    append(journal, &lease, last, 1).await;
    assert_eq!(waiting.await.unwrap().first(), last.plus(1));
}

pub(crate) async fn follow_during_appends_has_no_gap_and_no_double(rig: Rig) {
    const PAGES: u64 = 200;
    let key = key("a");
    let journal = rig.journal.clone();
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    append(&journal, &lease, Seq::ZERO, 1).await;
    let total: u64 = 1 + (0..PAGES).map(|number| number % 7 + 1).sum::<u64>();
    let writing = tokio::spawn({
        let journal = journal.clone();
        async move {
            let mut last = Seq::new(1);
            for number in 0..PAGES {
                last = append(&journal, &lease, last, number % 7 + 1).await;
            }
        }
    });
    let mut followers = Vec::new();
    for number in 0..8 {
        let at = journal.info(&key).await.unwrap().last.get();
        let after = Seq::new(at * number / 8);
        let mut follower = journal.follow(&key, after).await.unwrap();
        followers.push(tokio::spawn(async move {
            let mut texts = Vec::new();
            while texts.len() as u64 + after.get() < total {
                let page = follower.next().await.unwrap();
                let (first, last) = (page.first(), page.last());
                assert!(
                    last <= follower.watermark() || first > follower.watermark(),
                    "straddles the watermark"
                );
                assert_eq!(first, after.plus(texts.len() as u64 + 1));
                texts.extend(page.entries().map(|entry| String::from_utf8(entry.bytes().to_vec()).unwrap()));
            }
            assert_eq!(texts, numbers(after.get() + 1, total));
        }));
    }
    writing.await.unwrap();
    for follower in followers {
        follower.await.unwrap();
    }
}

/// More than a tail holds in memory is appended before the follower reads at all.
pub(crate) async fn a_slow_follower_reads_from_storage(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    let mut follower = journal.follow(&key, Seq::ZERO).await.unwrap();
    let text = "x".repeat(100 << 10);
    let mut last = Seq::ZERO;
    for _ in 0..40 {
        last = journal.append(&lease, last, page(&[&text])).await.unwrap();
    }
    for number in 1..=40 {
        let page = follower.next().await.unwrap();
        assert_eq!((page.first(), page.page().body().len()), (Seq::new(number), text.len()));
    }
    append(journal, &lease, last, 1).await;
    assert_eq!(follower.next().await.unwrap().first(), Seq::new(41));
}

pub(crate) async fn a_dropped_append_reaches_followers(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    let mut follower = journal.follow(&key, Seq::ZERO).await.unwrap();
    {
        let mut appending = Box::pin(journal.append(&lease, Seq::ZERO, numbered(Seq::ZERO, 2)));
        tokio::select! {
            biased;
            _ = &mut appending => {}
            () = std::future::ready(()) => {}
        }
    }
    assert_eq!(follower.next().await.unwrap().last(), Seq::new(2));
    assert_eq!(append(journal, &lease, Seq::ZERO, 2).await, Seq::new(2));
}

pub(crate) async fn follow_sees_another_node(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let other = rig.second().await;
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    let mut follower = other.follow(&key, Seq::ZERO).await.unwrap();
    let last = append(journal, &lease, Seq::ZERO, 1).await;
    assert_eq!(follower.next().await.unwrap().last(), last);
    // The session moves to the follower's node and back.
    let moved = other.claim(&key, &claim("two").force()).await.unwrap();
    let last = append(&other, &moved, last, 1).await;
    let back = journal.claim(&key, &claim("one").force()).await.unwrap();
    let last = append(journal, &back, last, 1).await;
    assert_eq!(follower.next().await.unwrap().first(), Seq::new(2));
    while follower.position() < last {
        follower.next().await.unwrap();
    }
    assert_eq!(follower.position(), Seq::new(3));
}

pub(crate) async fn an_append_behind_trimmed_pages_conflicts(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    for number in 0..3 {
        let text = number.to_string();
        journal.append(&lease, Seq::new(number), page(&[&text])).await.unwrap();
    }
    journal.trim(&key, Seq::new(2)).await.unwrap();
    // Whether these are repeats is not known any more, and the last one is still known.
    for after in [0, 1] {
        let text = after.to_string();
        let got = journal.append(&lease, Seq::new(after), page(&[&text])).await;
        assert!(matches!(got, Err(Error::Conflict { last }) if last == Seq::new(3)), "{got:?}");
    }
    let got = journal.append(&lease, Seq::new(2), page(&["2"])).await.unwrap();
    assert_eq!(got, Seq::new(3));
}

pub(crate) async fn trim_keeps_the_last_page_and_leaves_no_silent_gap(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    journal.trim(&key, Seq::MAX).await.unwrap();
    let mut last = Seq::ZERO;
    for _ in 0..3 {
        last = append(journal, &lease, last, 2).await;
    }
    let mut behind = journal.follow(&key, Seq::new(1)).await.unwrap();
    journal.trim(&key, Seq::new(3)).await.unwrap();
    let info = journal.info(&key).await.unwrap();
    assert_eq!((info.first, info.last, info.bytes), (Seq::new(3), last, 4));
    for after in [0, 1] {
        let refused = journal.read(&key, Seq::new(after), None).await;
        assert!(matches!(refused, Err(Error::Trimmed { first }) if first == Seq::new(3)), "{refused:?}");
        let refused = journal.follow(&key, Seq::new(after)).await;
        assert!(matches!(refused, Err(Error::Trimmed { .. })), "{refused:?}");
    }
    assert!(matches!(behind.next().await, Err(Error::Trimmed { .. })));
    assert_eq!(texts(journal, &key, Seq::new(2)).await, numbers(3, 6));
    journal.trim(&key, Seq::MAX).await.unwrap();
    assert_eq!(journal.info(&key).await.unwrap().first, Seq::new(5));
    assert_eq!(append(journal, &lease, last, 1).await, Seq::new(7));
    assert_eq!(texts(journal, &key, Seq::new(4)).await, numbers(5, 7));
}

pub(crate) async fn positions_outside_of_the_log_are_refused(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    assert!(matches!(journal.follow(&key, Seq::ZERO).await, Err(Error::Unknown)));
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    append(journal, &lease, Seq::ZERO, 1).await;
    for after in [Seq::new(2), Seq::MAX] {
        let refused = journal.read(&key, after, None).await;
        assert!(matches!(refused, Err(Error::PastEnd { last }) if last == Seq::new(1)), "{refused:?}");
        assert!(matches!(journal.follow(&key, after).await, Err(Error::PastEnd { .. })));
        let refused = journal.append(&lease, after, page(&["far"])).await;
        assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");
    }
}

pub(crate) async fn tenants_are_apart(rig: Rig) {
    let journal = &rig.journal;
    // A separator in a name must not make two keys one.
    let keys = [("a", "b/c"), ("a/b", "c"), ("a.b", "c"), ("a", "b.c"), ("A", "b/c")]
        .map(|(tenant, session)| SessionKey::new(tenant, session).unwrap());
    let unknown = SessionKey::new("b", "b/c").unwrap();
    for key in &keys {
        let lease = journal.claim(key, &claim("one").force()).await.unwrap();
        assert_eq!(lease.last(), Seq::ZERO);
        journal.append(&lease, Seq::ZERO, page(&[key.tenant()])).await.unwrap();
    }
    for key in &keys {
        assert_eq!(texts(journal, key, Seq::ZERO).await, [key.tenant()]);
    }
    assert!(matches!(journal.read(&unknown, Seq::ZERO, None).await, Err(Error::Unknown)));
    assert_eq!(journal.list("a", None, 10).await.unwrap().len(), 2);
    assert_eq!(journal.list("b", None, 10).await.unwrap(), []);
}

pub(crate) async fn list_pages_by_id(rig: Rig) {
    let journal = &rig.journal;
    let ids = ["1", "10", "2", "Z", "a", "é"];
    for id in ids.iter().rev() {
        journal.claim(&key(id), &claim("one")).await.unwrap();
    }
    let (mut after, mut listed) = (None, Vec::new());
    loop {
        let page = journal.list("tenant", after.as_deref(), 4).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.key.session().to_owned());
        listed.extend(page.into_iter().map(|info| info.key.session().to_owned()));
    }
    assert_eq!(listed, ids);
}

pub(crate) async fn a_read_ends_at_its_limit(rig: Rig) {
    let (journal, key) = (&rig.journal, key("a"));
    let lease = journal.claim(&key, &claim("one")).await.unwrap();
    let last = append(journal, &lease, Seq::ZERO, 10).await;
    let mut pages = journal.read(&key, Seq::new(2), None).await.unwrap();
    // What is appended later is beyond the end of this read.
    append(journal, &lease, last, 10).await;
    assert_eq!(pages.upto(), last);
    assert_eq!(pages.next().await.unwrap().unwrap().last(), last);
    assert!(pages.next().await.unwrap().is_none());
}
