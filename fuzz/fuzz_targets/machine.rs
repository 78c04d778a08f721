//! Bytes drive two machines that talk to each other: nothing is lost, doubled or reordered,
//! whatever stands between their messages.
#![no_main]

use attache_rpc::{ErrorObject, Event, Id, Limits, Machine};
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeSet, VecDeque};

fuzz_target!(|script: &[u8]| {
    let mut sides = [Side::new(), Side::new()];
    let mut script = script.iter().copied();
    while let Some(step) = script.next() {
        let who = usize::from(step & 1);
        let [a, b] = &mut sides;
        let (me, other) = if who == 0 { (a, b) } else { (b, a) };
        let pick = usize::from(step >> 4);
        let mut out = Vec::new();
        match (step >> 1) & 7 {
            0 => me.ask(&mut out),
            1 => me.tell(&mut out),
            2 => me.answer(pick, false, &mut out),
            3 => me.answer(pick, true, &mut out),
            4 => me.give_up(pick, &mut out),
            5 | 6 => me.take(&mut out),
            _ => {
                // A line of the script itself.
                let line: Vec<u8> = script.by_ref().take_while(|byte| *byte != b'\n').collect();
                me.foreign(&line, &mut out);
            }
        }
        other.inbound.extend(out.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec));
    }
    // Everything that is under way arrives, everything open is answered.
    while sides.iter().any(|side| !side.inbound.is_empty() || !side.open.is_empty()) {
        for who in 0..2 {
            let [a, b] = &mut sides;
            let (me, other) = if who == 0 { (a, b) } else { (b, a) };
            let mut out = Vec::new();
            me.take(&mut out);
            me.answer(0, false, &mut out);
            other.inbound.extend(out.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec));
        }
    }
    for side in &mut sides {
        assert!(side.waiting.is_empty(), "every request is answered");
        assert_eq!(side.machine.waiting(), 0);
        assert_eq!(side.machine.close().count(), 0);
    }
    assert_eq!((sides[0].sent, sides[1].sent), (sides[1].heard, sides[0].heard), "everything sent arrives");
});

struct Side {
    machine: Machine<i64, u64>,
    inbound: VecDeque<Vec<u8>>,
    open: Vec<Id>,
    waiting: BTreeSet<i64>,
    sent: u64,
    heard: u64,
    tokens: u64,
}

impl Side {
    fn new() -> Self {
        let limits = Limits::default().depth(32);
        Side {
            machine: Machine::new(limits),
            inbound: VecDeque::new(),
            open: Vec::new(),
            waiting: BTreeSet::new(),
            sent: 0,
            heard: 0,
            tokens: 0,
        }
    }

    fn ask(&mut self, out: &mut Vec<u8>) {
        let Ok(id) = self.machine.send("ours", &serde_json::json!({ "serial": self.sent }), out) else {
            return assert!(out.is_empty());
        };
        self.machine.wait(id, id);
        assert!(self.waiting.insert(id), "an id is used once");
        self.sent += 1;
    }

    fn tell(&mut self, out: &mut Vec<u8>) {
        self.machine.notify("ours", &serde_json::json!({ "serial": self.sent }), out).expect("it serializes");
        self.sent += 1;
    }

    fn answer(&mut self, pick: usize, fails: bool, out: &mut Vec<u8>) {
        if self.open.is_empty() {
            return;
        }
        let id = self.open.remove(pick % self.open.len());
        let error = ErrorObject::cancelled();
        let outcome = if fails { Err(&error) } else { Ok("done") };
        assert!(self.machine.respond(&id, outcome, out), "it was open");
        assert!(!self.machine.respond(&id, Ok("again"), &mut Vec::new()), "it is answered once");
    }

    fn give_up(&mut self, pick: usize, out: &mut Vec<u8>) {
        let count = self.waiting.len().max(1);
        let Some(id) = self.waiting.iter().nth(pick % count).copied() else { return };
        self.waiting.remove(&id);
        assert_eq!(self.machine.abandon(id, out), Some(id));
    }

    fn take(&mut self, out: &mut Vec<u8>) {
        let Some(line) = self.inbound.pop_front() else { return };
        let line = line.strip_suffix(b"\n").expect("only whole lines are written");
        let token = self.next_token();
        match self.machine.receive(line, out, || token) {
            Event::Request { id, method, params, .. } => {
                self.in_order(&method, params);
                self.open.push(id);
            }
            Event::Notification { method, params } => self.in_order(&method, params),
            Event::Response { waiter, id, .. } => {
                assert_eq!(waiter, id);
                assert!(self.waiting.remove(&id), "answered once");
            }
            Event::CancelRequest { .. } | Event::Ignored { .. } => {}
            Event::Noise { .. } => assert!(out.is_empty(), "an error of the peer is not answered"),
        }
    }

    fn in_order(&mut self, method: &str, params: Option<&serde_json::value::RawValue>) {
        assert_eq!(method, "ours");
        let expected = format!("{{\"serial\":{}}}", self.heard);
        assert_eq!(params.map(|raw| raw.get()), Some(expected.as_str()), "order is kept");
        self.heard += 1;
    }

    /// A line that the other machine did not write. Whatever it asks is answered at once, so that
    /// the bookkeeping of the two machines stays whole.
    fn foreign(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let token = self.next_token();
        let before = out.len();
        match self.machine.receive(line, out, || token) {
            Event::Request { id, .. } => {
                assert!(self.machine.respond(&id, Ok(&()), out));
                out.truncate(before);
            }
            Event::Response { waiter, .. } => assert!(self.waiting.remove(&waiter)),
            Event::Notification { .. } | Event::CancelRequest { .. } | Event::Ignored { .. } => {}
            Event::Noise { .. } => {
                let lines = out.iter().filter(|byte| **byte == b'\n').count();
                assert!(lines <= 1, "at most one answer");
                // An answer by id could meet a request of the other machine; the one without an id
                // matches none.
                if !out.starts_with(br#"{"jsonrpc":"2.0","id":null,"#) {
                    out.clear();
                }
            }
        }
    }

    fn next_token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }
}
