use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

fn streams() -> Streams {
    Streams::new(&Limits::default(), false, Usage::default())
}

fn take(streams: &mut Streams, (session, id): &(Session, ReaderId)) -> Option<String> {
    match streams.poll_take(session, *id, &Context::from_waker(Waker::noop())) {
        Poll::Ready(bytes) => Some(bytes.map_or("END".to_owned(), |bytes| {
            String::from_utf8(bytes.to_vec()).unwrap().replace("data: ", "").replace("\n\n", " ")
        })),
        Poll::Pending => None,
    }
}

#[test]
fn messages_wait_for_the_reader_of_their_stream() {
    let mut streams = streams();
    assert!(streams.add_to_session("a", b"1"));
    assert!(!streams.add_to_session("a", b"2"));
    streams.add(b"c");
    let session = streams.attach(Some("a")).unwrap();
    assert_eq!(take(&mut streams, &session).as_deref(), Some("1 2 "));
    assert_eq!(take(&mut streams, &session), None);
    let connection = streams.attach(None).unwrap();
    assert_eq!(take(&mut streams, &connection).as_deref(), Some("c "));
    assert_eq!(streams.held(), 0);
}

#[test]
fn a_session_without_reader_falls_back_and_comes_back_in_order() {
    let mut streams = streams();
    let connection = streams.attach(None).unwrap();
    for line in [b"1", b"2", b"3"] {
        streams.add_to_session("a", line);
    }
    assert!(streams.fall_back("a"));
    assert_eq!(take(&mut streams, &connection).as_deref(), Some("1 "));
    assert!(!streams.fall_back("a"));
    streams.add_to_session("a", b"4");
    let session = streams.attach(Some("a")).unwrap();
    streams.add_to_session("a", b"5");
    assert_eq!(take(&mut streams, &session).as_deref(), Some("2 3 4 5 "));
    assert_eq!(take(&mut streams, &connection), None);
    streams.detach(&session.0, session.1);
    streams.add_to_session("a", b"6");
    while streams.fall_back("a") {}
    streams.add_to_session("a", b"7");
    assert_eq!(take(&mut streams, &connection).as_deref(), Some("6 7 "));
    assert_eq!(streams.held(), 0);
}

#[test]
fn a_session_does_not_wait_for_a_connection_that_is_not_read() {
    let mut streams = streams();
    let connection = streams.attach(None).unwrap();
    streams.detach(&connection.0, connection.1);
    streams.add_to_session("a", b"1");
    while streams.fall_back("a") {}
    streams.add(b"c");
    streams.add_to_session("a", b"2");
    let session = streams.attach(Some("a")).unwrap();
    assert_eq!(take(&mut streams, &session).as_deref(), Some("1 2 "));
    streams.add_to_session("a", b"3");
    assert_eq!(take(&mut streams, &session).as_deref(), Some("3 "));
    let connection = streams.attach(None).unwrap();
    assert_eq!(take(&mut streams, &connection).as_deref(), Some("c "));
    assert_eq!(take(&mut streams, &connection), None);
}

#[test]
fn the_connection_takes_whole_events_of_a_session() {
    let mut streams = streams();
    let connection = streams.attach(None).unwrap();
    let long = vec![b'x'; PIECE];
    streams.add_to_session("a", &long);
    streams.add_to_session("a", b"2");
    while streams.fall_back("a") {}
    assert_eq!(take(&mut streams, &connection).unwrap().len(), PIECE - "data: ".len());
    // The rest of a message that was begun stays on its stream, and nothing overtakes it.
    let session = streams.attach(Some("a")).unwrap();
    streams.add_to_session("a", b"3");
    streams.add(b"c");
    assert_eq!(take(&mut streams, &session), None);
    assert_eq!(take(&mut streams, &connection).as_deref(), Some("xxxxxx c "));
    assert_eq!(take(&mut streams, &session).as_deref(), Some("2 3 "));
    assert_eq!(streams.held(), 0);
}

#[test]
fn a_session_waits_for_no_connection_that_is_gone() {
    for leaves in [true, false] {
        let mut streams = streams();
        let connection = streams.attach(None).unwrap();
        streams.add_to_session("a", &vec![b'x'; 2 * PIECE]);
        streams.add_to_session("a", b"2");
        while streams.fall_back("a") {}
        assert_eq!(take(&mut streams, &connection).unwrap().len(), PIECE - "data: ".len());
        let session = streams.attach(Some("a")).unwrap();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let polled = streams.poll_take(&session.0, session.1, &Context::from_waker(&waker));
        assert!(polled.is_pending());
        if leaves {
            streams.detach(&connection.0, connection.1);
        } else {
            assert_eq!(take(&mut streams, &connection).unwrap().len(), PIECE);
            assert!(!woken.0.load(Ordering::Relaxed));
            assert_eq!(take(&mut streams, &connection).as_deref(), Some("xxxxxx "));
        }
        assert!(woken.0.load(Ordering::Relaxed));
        assert_eq!(take(&mut streams, &session).as_deref(), Some("2 "));
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn the_response_of_a_load_stays_behind_its_history() {
    let mut streams = streams();
    let connection = streams.attach(None).unwrap();
    streams.add_to_session("a", b"1");
    assert!(!streams.add_response("a", b"loaded"));
    assert_eq!(take(&mut streams, &connection), None);
    let session = streams.attach(Some("a")).unwrap();
    assert_eq!(take(&mut streams, &session).as_deref(), Some("1 loaded "));
    streams.add_response("b", b"empty");
    assert_eq!(take(&mut streams, &connection).as_deref(), Some("empty "));
}

#[test]
fn the_newest_reader_wins() {
    let mut streams = streams();
    let old = streams.attach(Some("a")).unwrap();
    let new = streams.attach(Some("a")).unwrap();
    streams.add_to_session("a", b"1");
    assert_eq!(take(&mut streams, &old).as_deref(), Some("END"));
    streams.detach(&old.0, old.1);
    assert_eq!(take(&mut streams, &new).as_deref(), Some("1 "));
}

#[test]
fn few_unnamed_sessions_can_be_read() {
    let mut streams = streams();
    let readers: Vec<_> =
        (0..UNNAMED).map(|number| streams.attach(Some(&number.to_string())).unwrap()).collect();
    assert!(streams.attach(Some("x")).is_err());
    streams.name("0").unwrap();
    assert!(streams.attach(Some("x")).is_ok());
    assert!(streams.attach(Some("y")).is_err());
    for (session, id) in &readers {
        streams.detach(session, *id);
    }
    assert!(streams.attach(Some("y")).is_ok());
}

#[test]
fn unused_sessions_make_room_for_others() {
    let mut streams = Streams::new(&Limits { sessions: 2, ..Limits::default() }, false, Usage::default());
    let reader = streams.attach(Some("read")).unwrap();
    for number in 0..100 {
        streams.name(&number.to_string()).unwrap();
    }
    streams.add_to_session("read", b"1");
    assert_eq!(take(&mut streams, &reader).as_deref(), Some("1 "));
    streams.add_to_session("unread", b"1");
    assert_eq!(streams.name("one more"), Err(TooManySessions));
}

#[test]
fn ascii_for_those_who_need_it() {
    let mut streams = Streams::new(&Limits::default(), true, Usage::default());
    let connection = streams.attach(None).unwrap();
    streams.add("\"ä😀\"".as_bytes());
    assert_eq!(take(&mut streams, &connection).as_deref(), Some("\"\\u00e4\\ud83d\\ude00\" "));
}
