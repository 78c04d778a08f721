#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::model::{Message, Part, Role, ToolCall};

pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new(name: &str) -> Self {
        let at = std::env::temp_dir().join(format!("attache-store-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&at);
        std::fs::create_dir_all(at.join("project")).unwrap();
        Self(at.canonicalize().unwrap())
    }
    fn file(&self) -> PathBuf {
        self.0.join("data/sessions.db")
    }
    pub(super) fn project(&self) -> PathBuf {
        self.0.join("project")
    }
    pub(super) fn open(&self) -> Store {
        let store = Store::open(&self.file(), Mask::new()).unwrap();
        let _ = store.create(&NewRow { id: "s", cwd: &self.project(), roots: &[] });
        store
    }
    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Store {
    /// Appends to the log of the session `s`.
    pub(super) fn log(&self, entries: &[Entry]) {
        self.append("s", entries).unwrap();
    }
}

fn replay(store: &Store) -> Vec<Value> {
    store.read("s").unwrap().replay().iter().map(|update| serde_json::to_value(update).unwrap()).collect()
}

fn chunk(text: &str) -> Entry {
    Entry::Update(
        json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } }),
    )
}

fn call(id: &str) -> Message {
    let call = ToolCall { id: id.into(), name: "read".into(), arguments: json!({}), signature: None };
    Message { role: Role::Assistant, parts: vec![Part::Call(call)] }
}

fn session() -> Store {
    let store = Store::memory().unwrap();
    store.create(&NewRow { id: "s", cwd: std::path::Path::new("/p"), roots: &[] }).unwrap();
    store
}

#[test]
fn every_kind_of_entry_comes_back_as_it_went() {
    let store = session();
    let state = FileState { hash: "h".into(), mode: Some(0o755) };
    let entries = [
        chunk("a"),
        Entry::Message(call("c1")),
        Entry::Mark(Mark::Began),
        Entry::Mark(Mark::Ended { stop: "end_turn".into(), usage: json!({"input": 1}) }),
        Entry::Setting { key: "mode".into(), value: json!("plan") },
        Entry::Change(Change {
            path: "/x".into(),
            before: Some(state.clone()),
            after: None,
            new_directories: 2,
        }),
        Entry::Snapshot { list: "h".into() },
        Entry::Settled {},
        Entry::Undone { turn: 3 },
        Entry::Compacted { upto: 2, summary: "short".into() },
    ];
    store.append("s", &entries).unwrap();
    let read: Vec<Entry> = store.read("s").unwrap().into_iter().map(|logged| logged.entry).collect();
    assert_eq!(read, entries);
}

#[test]
fn processes_share_remembered_answers() {
    let scratch = Scratch::new("two");
    let (one, two) = (scratch.open(), scratch.open());
    one.append("s", &[chunk("a")]).unwrap();
    two.append("s", &[chunk("b")]).unwrap();
    one.append("s", &[chunk("c")]).unwrap();
    let order: Vec<i64> = two.read("s").unwrap().iter().map(|logged| logged.seq).collect();
    assert_eq!(order, [1, 2, 3]);
    assert_eq!(replay(&two)[0]["content"]["text"], "abc");
}

#[test]
fn writers_at_once_lose_nothing() {
    let scratch = Scratch::new("many");
    scratch.open();
    std::thread::scope(|scope| {
        for name in ["x", "y", "z"] {
            let store = Store::open(&scratch.file(), Mask::new()).unwrap();
            scope
                .spawn(move || (0..50).for_each(|_| store.append("s", &[chunk(name), chunk(name)]).unwrap()));
        }
    });
    let log = scratch.open().read("s").unwrap();
    assert_eq!(log.len(), 300);
    assert!(log.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq));
    // What was appended together stands together.
    assert!(log.chunks(2).all(|pair| pair[0].entry == pair[1].entry));
}

#[test]
fn only_the_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new("private");
    let store = scratch.open();
    store.log(&[chunk("a")]);
    for entry in std::fs::read_dir(scratch.0.join("data")).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o077, 0, "{:?}", entry.path());
    }
}

#[test]
fn secrets_are_not_written() {
    let scratch = Scratch::new("secret");
    let store = Store::open(&scratch.file(), Mask::new().with(["sk-very-secret-value"])).unwrap();
    store.create(&NewRow { id: "s", cwd: &scratch.project(), roots: &[] }).unwrap();
    store.log(&[
        chunk("the key is sk-very-secret-value"),
        Entry::Message(Message::user("sk-very-secret-value")),
    ]);
    let all = format!("{:?}", store.read("s").unwrap());
    assert!(!all.contains("sk-very-secret-value"), "{all}");
}

#[test]
fn a_pasted_key_is_not_written_and_source_code_stays() {
    let scratch = Scratch::new("pasted");
    let store = Store::open(&scratch.file(), Mask::new()).unwrap();
    store.create(&NewRow { id: "s", cwd: &scratch.project(), roots: &[] }).unwrap();
    let (key, code) =
        ("ghp_0123456789abcdefghijklmnopqrstuvwxyz", "let password = token.next(); // \"api_key\"");
    let said = Message::user(format!("use {key} in {code}"));
    store.log(&[Entry::Message(said)]);
    store.set_title("s", Some(&format!("Use {key}")), false).unwrap();
    let log = store.read("s").unwrap();
    assert_eq!(log[0].entry, Entry::Message(Message::user(format!("use *** in {code}"))));
    assert_eq!(store.row("s").unwrap().title.as_deref(), Some("Use ***"));
}

#[test]
fn damaged_and_newer_files_are_reported() {
    let scratch = Scratch::new("damage");
    std::fs::create_dir_all(scratch.0.join("data")).unwrap();
    std::fs::write(scratch.file(), "this is no database, and long enough to be looked at as one.".repeat(20))
        .unwrap();
    let error = Store::open(&scratch.file(), Mask::new()).unwrap_err().to_string();
    assert!(error.contains("damaged"), "{error}");
    std::fs::remove_file(scratch.file()).unwrap();
    scratch.open().connection().pragma_update(None, "user_version", 99).unwrap();
    let error = Store::open(&scratch.file(), Mask::new()).unwrap_err().to_string();
    assert!(error.contains("newer"), "{error}");
}

#[test]
fn an_unknown_session_is_an_error_everywhere() {
    let store = session();
    assert!(matches!(store.append("ghost", &[chunk("a")]), Err(StoreError::Unknown(_))));
    assert!(matches!(store.read("ghost"), Err(StoreError::Unknown(_))));
    assert!(matches!(store.row("ghost"), Err(StoreError::Unknown(_))));
    assert!(matches!(
        store.fork("ghost", &NewRow { id: "t", cwd: std::path::Path::new("/"), roots: &[] }),
        Err(StoreError::Unknown(_))
    ));
    assert!(!store.delete("ghost").unwrap());
    assert!(matches!(
        store.create(&NewRow { id: "s", cwd: std::path::Path::new("/"), roots: &[] }),
        Err(StoreError::Exists(_))
    ));
}

#[test]
fn an_interrupted_turn_is_completed_for_the_model() {
    let store = session();
    store.log(&[
        Entry::Mark(Mark::Began),
        Entry::Message(Message::user("go")),
        chunk("I will"),
        chunk(" lo"),
    ]);
    let context = store.read("s").unwrap().context();
    assert_eq!(context.len(), 2);
    assert!(context[1].text().starts_with("I will lo") && context[1].text().contains("broke off"));
    // With the next prompt it stays where it was said.
    store.log(&[Entry::Mark(Mark::Began), Entry::Message(Message::user("again"))]);
    assert_eq!(
        store.read("s").unwrap().context().iter().map(|m| m.role).collect::<Vec<_>>(),
        [Role::User, Role::Assistant, Role::User]
    );
}

#[test]
fn whole_messages_stand_for_their_pieces() {
    let store = session();
    store.log(&[
        Entry::Mark(Mark::Began),
        Entry::Message(Message::user("go")),
        chunk("hel"),
        chunk("lo"),
        Entry::Message(Message::assistant("hello")),
    ]);
    store.log(&[
        Entry::Mark(Mark::Ended { stop: "end_turn".into(), usage: Value::Null }),
        Entry::Mark(Mark::Began),
        Entry::Message(Message::user("more")),
    ]);
    let texts: Vec<String> = store.read("s").unwrap().context().iter().map(Message::text).collect();
    assert_eq!(texts, ["go", "hello", "more"]);
}

#[test]
fn open_calls_get_a_result_right_after_them() {
    let store = session();
    let done = Message {
        role: Role::User,
        parts: vec![Part::Result { call: "c1".into(), parts: vec![], failed: false }],
    };
    let mut two = call("c1");
    two.parts.extend(call("c2").parts);
    store.log(&[
        Entry::Message(Message::user("go")),
        Entry::Message(two),
        Entry::Message(done),
        Entry::Message(call("c3")),
    ]);
    let context = store.read("s").unwrap().context();
    let results: Vec<Vec<&str>> = context
        .iter()
        .map(|message| {
            message
                .parts
                .iter()
                .filter_map(
                    |part| if let Part::Result { call, .. } = part { Some(call.as_str()) } else { None },
                )
                .collect()
        })
        .collect();
    assert_eq!(results, [vec![], vec![], vec!["c1", "c2"], vec![], vec!["c3"]]);
}

#[test]
fn a_summary_stands_for_what_it_sums_up() {
    let store = session();
    store.log(&[Entry::Message(Message::user("old")), Entry::Message(Message::assistant("older"))]);
    store.log(&[
        Entry::Compacted { upto: 2, summary: "they greeted".into() },
        Entry::Message(Message::user("new")),
    ]);
    let texts: Vec<String> = store.read("s").unwrap().context().iter().map(Message::text).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts[0].contains("they greeted") && texts[1] == "new");
}

#[test]
fn a_replay_joins_text_and_closes_unfinished_calls() {
    let store = session();
    let tool = |kind: &str, status: &str| {
        Entry::Update(json!({ "sessionUpdate": kind, "toolCallId": "t", "title": "x", "status": status }))
    };
    store.log(&[
        chunk("a"),
        chunk("b"),
        tool("tool_call", "pending"),
        tool("tool_call_update", "in_progress"),
        chunk("c"),
        Entry::Mark(Mark::Began),
        chunk("d"),
    ]);
    let replay = replay(&store);
    let brief: Vec<String> = replay
        .iter()
        .map(|u| {
            format!(
                "{} {}",
                u["sessionUpdate"].as_str().unwrap(),
                u["status"].as_str().or(u["content"]["text"].as_str()).unwrap_or("")
            )
        })
        .collect();
    assert_eq!(
        brief,
        [
            "agent_message_chunk ab",
            "tool_call pending",
            "tool_call_update in_progress",
            "agent_message_chunk c",
            "tool_call_update failed",
            "agent_message_chunk d"
        ]
    );
}

#[test]
fn pages_hold_every_session_once_though_they_move() {
    let store = Store::memory().unwrap();
    for n in 0..25 {
        let cwd = if n % 5 == 0 { "/a" } else { "/b" };
        store
            .create(&NewRow { id: &format!("s{n:02}"), cwd: std::path::Path::new(cwd), roots: &[] })
            .unwrap();
        store
            .connection()
            .execute(
                "UPDATE session SET updated = ?1 WHERE id = ?2",
                rusqlite::params![1000 + n / 3, format!("s{n:02}")],
            )
            .unwrap();
    }
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let page = store.list(&Filter::default(), cursor.as_deref(), 4).unwrap();
        seen.extend(page.rows.iter().map(|row| row.id.clone()));
        if seen.len() == 4 {
            // One of a later page moves to the front.
            store.append("s00", &[chunk("a")]).unwrap();
        }
        let Some(next) = page.next else { break };
        cursor = Some(next);
    }
    let mut unique = seen.clone();
    unique.sort();
    unique.dedup();
    assert_eq!((seen.len(), unique.len()), (24, 24), "{seen:?}");
    assert_eq!(
        store
            .list(&Filter { cwd: Some("/a".into()), archived: Archived::Exclude }, None, 100)
            .unwrap()
            .rows
            .len(),
        5
    );
    assert!(store.list(&Filter::default(), Some("nonsense"), 4).is_err());
}

#[test]
fn a_title_from_the_client_is_not_replaced() {
    // shows SSTAT-09
    let store = session();
    assert!(store.set_title("s", Some("made up"), false).unwrap());
    assert!(store.set_title("s", Some("mine"), true).unwrap());
    assert!(!store.set_title("s", Some("made up again"), false).unwrap());
    assert_eq!(store.row("s").unwrap().title.as_deref(), Some("mine"));
    // Taken away by the client, it may be made up again.
    assert!(store.set_title("s", None, true).unwrap());
    assert!(store.set_title("s", Some("new"), false).unwrap());
}

#[test]
fn a_fork_goes_its_own_way() {
    let store = session();
    store.log(&[Entry::Message(Message::user("one"))]);
    store.fork("s", &NewRow { id: "t", cwd: std::path::Path::new("/q"), roots: &["/r".into()] }).unwrap();
    store.append("t", &[Entry::Message(Message::user("two"))]).unwrap();
    assert_eq!(store.read("s").unwrap().context().len(), 1);
    assert_eq!(store.read("t").unwrap().context().len(), 2);
    let row = store.row("t").unwrap();
    assert_eq!(
        (row.parent.as_deref(), row.cwd, row.roots),
        (Some("s"), "/q".into(), vec![PathBuf::from("/r")])
    );
    assert!(store.delete("s").unwrap());
    assert_eq!(store.read("t").unwrap().context().len(), 2);
    assert!(store.read("s").is_err());
}

#[test]
fn archived_sessions_are_found_on_request() {
    let store = session();
    store.create(&NewRow { id: "t", cwd: std::path::Path::new("/p"), roots: &[] }).unwrap();
    store.set_archived("t", true).unwrap();
    let ids = |archived| -> Vec<String> {
        let filter = Filter { archived, ..Filter::default() };
        store.list(&filter, None, 9).unwrap().rows.into_iter().map(|row| row.id).collect()
    };
    assert_eq!(ids(Archived::Exclude), ["s"]);
    assert_eq!(ids(Archived::Only), ["t"]);
    assert_eq!(ids(Archived::Include).len(), 2);
    let at = store.row("t").unwrap().updated_at;
    assert!(at.len() == 24 && at.ends_with('Z') && at.as_bytes()[10] == b'T', "{at}");
}

#[test]
fn a_compaction_that_broke_off_has_an_end() {
    // shows NOTE-08
    let store = session();
    let begun = json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress" });
    store.log(&[Entry::Update(begun)]);
    let replay = replay(&store);
    assert_eq!(
        replay.last().unwrap(),
        &json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": "failed" })
    );
}
