//! Two machines, joined by two queues of bytes, under any interleaving of what may happen.

use attache_rpc::{ErrorObject, Event, Id, Limits, Machine};
use proptest::prelude::*;
use serde_json::json;
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// One thing that happens. `who` is the peer that acts; the numbers choose among what is possible
/// at that moment.
#[derive(Clone, Debug)]
enum Step {
    Request {
        who: usize,
    },
    Notify {
        who: usize,
    },
    Answer {
        who: usize,
        which: usize,
        fails: bool,
    },
    Abandon {
        who: usize,
        which: usize,
    },
    /// So many bytes travel to `who`: the cut between two reads falls anywhere.
    Deliver {
        who: usize,
        bytes: usize,
    },
    /// The peer writes a line that is no message.
    Garbage {
        who: usize,
    },
}

fn any_step() -> impl Strategy<Value = Step> {
    let who = 0..2usize;
    prop_oneof![
        3 => who.clone().prop_map(|who| Step::Request { who }),
        2 => who.clone().prop_map(|who| Step::Notify { who }),
        3 => (who.clone(), any::<usize>(), any::<bool>()).prop_map(|(who, which, fails)| Step::Answer { who, which, fails }),
        1 => (who.clone(), any::<usize>()).prop_map(|(who, which)| Step::Abandon { who, which }),
        4 => (who.clone(), 1..400usize).prop_map(|(who, bytes)| Step::Deliver { who, bytes }),
        1 => who.prop_map(|who| Step::Garbage { who }),
    ]
}

type Token = Rc<Cell<bool>>;

struct Side {
    machine: Machine<u64, Token>,
    /// Bytes on their way to this peer, and what of them has arrived.
    inbound: VecDeque<u8>,
    partial: Vec<u8>,
    /// Requests of the other peer that this one has to answer: id, its serial number, its token.
    open: Vec<(Id, u64, Token)>,
    /// Our requests: id by serial number, and how each ended.
    asked: BTreeMap<u64, (i64, Fate)>,
    sent: u64,
    heard: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Waiting,
    Answered,
    Abandoned,
}

impl Side {
    fn new() -> Self {
        Side {
            machine: Machine::new(Limits::default()),
            inbound: VecDeque::new(),
            partial: Vec::new(),
            open: Vec::new(),
            asked: BTreeMap::new(),
            sent: 0,
            heard: 0,
        }
    }
}

struct World {
    sides: [Side; 2],
    garbage: usize,
    complaints: usize,
}

impl World {
    fn step(&mut self, step: &Step) {
        let mut out = Vec::new();
        let who = match *step {
            Step::Request { who } => {
                let side = &mut self.sides[who];
                let serial = side.sent;
                side.sent += 1;
                let id = side.machine.request("ask", &json!({ "serial": serial }), serial, &mut out).unwrap();
                side.asked.insert(serial, (id, Fate::Waiting));
                who
            }
            Step::Notify { who } => {
                let side = &mut self.sides[who];
                side.machine.notify("tell", &json!({ "serial": side.sent }), &mut out).unwrap();
                side.sent += 1;
                who
            }
            Step::Answer { who, which, fails } => {
                let side = &mut self.sides[who];
                if side.open.is_empty() {
                    return;
                }
                let (id, serial, _) = side.open.remove(which % side.open.len());
                let error = ErrorObject::new(i32::try_from(serial).unwrap(), "no");
                let outcome = if fails { Err(&error) } else { Ok(&serial) };
                assert!(side.machine.respond(&id, outcome, &mut out), "it is open until now");
                assert!(!side.machine.respond(&id, Ok(&serial), &mut Vec::new()), "and not any more");
                who
            }
            Step::Abandon { who, which } => {
                let side = &mut self.sides[who];
                let mut waiting: Vec<_> =
                    side.asked.values_mut().filter(|(_, fate)| *fate == Fate::Waiting).collect();
                if waiting.is_empty() {
                    return;
                }
                let count = waiting.len();
                let (id, fate) = &mut *waiting[which % count];
                *fate = Fate::Abandoned;
                assert!(side.machine.abandon(*id, &mut out).is_some());
                who
            }
            Step::Deliver { who, bytes } => {
                self.deliver(who, bytes, &mut out);
                who
            }
            Step::Garbage { who } => {
                self.garbage += 1;
                out.extend_from_slice(b"{garbage\n");
                who
            }
        };
        self.sides[1 - who].inbound.extend(out);
    }

    fn deliver(&mut self, who: usize, bytes: usize, out: &mut Vec<u8>) {
        let side = &mut self.sides[who];
        let count = bytes.min(side.inbound.len());
        for byte in side.inbound.drain(..count).collect::<Vec<_>>() {
            if byte != b'\n' {
                side.partial.push(byte);
                continue;
            }
            let line = std::mem::take(&mut side.partial);
            self.complaints += receive(side, &line, out);
        }
    }

    fn settle(&mut self) {
        while self.sides.iter().any(|side| !side.inbound.is_empty() || !side.open.is_empty()) {
            for who in 0..2 {
                self.step(&Step::Deliver { who, bytes: usize::MAX });
                self.step(&Step::Answer { who, which: 0, fails: false });
            }
        }
    }
}

/// Takes one line; returns how many complaints of the other peer about garbage were in it.
fn receive(side: &mut Side, line: &[u8], out: &mut Vec<u8>) -> usize {
    let serial_of = |raw: Option<&serde_json::value::RawValue>| {
        serde_json::from_str::<serde_json::Value>(raw.unwrap().get()).unwrap()["serial"].as_u64().unwrap()
    };
    match side.machine.receive(line, out, Token::default) {
        Event::Request { id, method, params, token } => {
            let serial = serial_of(params);
            assert_eq!((&*method, serial), ("ask", side.heard), "order is kept");
            side.heard += 1;
            side.open.push((id, serial, token));
        }
        Event::Notification { method, params } => {
            assert_eq!((&*method, serial_of(params)), ("tell", side.heard), "order is kept");
            side.heard += 1;
        }
        Event::Response { waiter, id, outcome } => {
            let (asked, fate) = side.asked.get_mut(&waiter).unwrap();
            assert_eq!((*asked, *fate), (id, Fate::Waiting), "answered once, and not after it was given up");
            *fate = Fate::Answered;
            match outcome {
                Ok(raw) => assert_eq!(raw.get(), waiter.to_string()),
                Err(error) => assert_eq!(u64::try_from(error.code).unwrap(), waiter),
            }
        }
        Event::CancelRequest { token } => {
            assert!(
                side.open.iter().any(|(_, _, open)| Rc::ptr_eq(open, &token)),
                "only what is open is cancelled"
            );
            token.set(true);
        }
        Event::Noise { line: b"{garbage", .. } => {}
        Event::Noise { reason, .. } => {
            assert!(reason.contains("-32700"), "{reason}");
            return 1;
        }
        // A late answer to, or a late cancel of, something that is over.
        Event::Ignored { .. } => {}
    }
    0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    // shows RPC-05, RPC-08, RPC-09, RPC-20, RPC-24, CANCEL-13, CANCEL-16, CANCEL-20
    #[test]
    fn nothing_is_lost_doubled_or_reordered(steps in proptest::collection::vec(any_step(), 0..120)) {
        let mut world = World { sides: [Side::new(), Side::new()], garbage: 0, complaints: 0 };
        for step in &steps {
            world.step(step);
        }
        world.settle();
        for (who, side) in world.sides.iter().enumerate() {
            let other = &world.sides[1 - who];
            prop_assert_eq!(other.heard, side.sent, "everything sent arrives");
            prop_assert!(side.asked.values().all(|(_, fate)| *fate != Fate::Waiting), "everything asked is answered");
            prop_assert_eq!(side.machine.waiting(), 0);
            prop_assert_eq!(side.machine.open(), 0);
            prop_assert!(side.partial.is_empty());
        }
        prop_assert_eq!(world.complaints, world.garbage, "each garbage line is answered once, and no answer is");
    }
}
