//! Messages of the stream: claims, and pages in one or several parts.
//!
//! A record is one header line; the bytes of a page are the payload. Every record repeats the state
//! before it, so the last message of a session is enough to go on, and the first one to know what
//! was removed.

use std::fmt::Write as _;

use bytes::Bytes;

use super::client::Message;
use crate::error::{Error, Result};
use crate::key::SessionKey;
use crate::position::{Epoch, Seq};

pub(super) const HEADER: &str = "Attache-Record";

/// A record of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    /// A claim. Its epoch is the position of its message in the stream.
    Claim { last: Seq, total: u64, updated: u64, until: u64, owner: String },
    /// A part of a page. The page counts when its last part is stored.
    Part(Part),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) epoch: Epoch,
    pub(super) first: Seq,
    pub(super) last: Seq,
    pub(super) at: u64,
    /// The bytes of all entries of the session before this page.
    pub(super) total: u64,
    /// The time of the append before.
    pub(super) updated: u64,
    /// The bytes of the page's body; its index follows them.
    pub(super) body: usize,
    /// From 1.
    pub(super) part: usize,
    pub(super) parts: usize,
}

/// A message of the stream.
#[derive(Debug, Clone)]
pub(super) struct StoredRecord {
    pub(super) position: u64,
    pub(super) record: Record,
    pub(super) payload: Bytes,
}

/// The state of a session after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) position: u64,
    pub(super) epoch: Epoch,
    pub(super) last: Seq,
    /// The bytes of all entries that were ever appended.
    pub(super) total: u64,
    pub(super) updated: u64,
}

impl Record {
    pub(super) fn header(&self) -> String {
        match self {
            Record::Claim { last, total, updated, until, owner } => {
                format!("{HEADER}: claim {last} {total} {updated} {until} {}\r\n", encode(owner))
            }
            Record::Part(part) => format!(
                "{HEADER}: page {} {} {} {} {} {} {} {} {}\r\n",
                part.epoch,
                part.first,
                part.last,
                part.at,
                part.total,
                part.updated,
                part.body,
                part.part,
                part.parts
            ),
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let kind = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        match kind {
            "claim" => {
                let (last, total, updated, until) = (Seq::new(number()?), number()?, number()?, number()?);
                Some(Record::Claim { last, total, updated, until, owner: decode(words.next()?)? })
            }
            "page" => Some(Record::Part(Part {
                epoch: Epoch::new(number()?),
                first: Seq::new(number()?),
                last: Seq::new(number()?),
                at: number()?,
                total: number()?,
                updated: number()?,
                body: usize::try_from(number()?).ok()?,
                part: usize::try_from(number()?).ok()?,
                parts: usize::try_from(number()?).ok()?,
            })),
            _ => None,
        }
    }
}

impl StoredRecord {
    /// Reads the answer to a request for a message; `None` if there is no such message.
    pub(super) fn from_message(message: Message) -> Result<Option<Self>> {
        match message.status() {
            Some(404) => return Ok(None),
            Some(503) => return Err(super::unavailable("JetStream is not enabled on the NATS server")),
            Some(status) => return Err(super::unavailable(&format!("the NATS server answered {status}"))),
            None => {}
        }
        let damaged = || Error::Damaged("a message in the stream is not a record of a journal".into());
        let position =
            message.header("Nats-Sequence").and_then(|text| text.parse().ok()).ok_or_else(damaged)?;
        let record = message.header(HEADER).and_then(Record::parse).ok_or_else(damaged)?;
        Ok(Some(StoredRecord { position, record, payload: message.payload }))
    }

    pub(super) fn head(&self) -> Head {
        let position = self.position;
        match &self.record {
            Record::Claim { last, total, updated, .. } => {
                Head { position, epoch: Epoch::new(position), last: *last, total: *total, updated: *updated }
            }
            Record::Part(part) if part.part == part.parts => Head {
                position,
                epoch: part.epoch,
                last: part.last,
                total: part.total + part.body as u64,
                updated: part.at,
            },
            Record::Part(part) => Head {
                position,
                epoch: part.epoch,
                last: Seq::new(part.first.get().saturating_sub(1)),
                total: part.total,
                updated: part.updated,
            },
        }
    }

    /// The entry that this message is about or behind, whether its page is complete or not.
    pub(super) fn first(&self) -> Seq {
        match &self.record {
            Record::Claim { last, .. } => *last,
            Record::Part(part) => part.first,
        }
    }

    /// First entry and bytes before it, if this is the first message that is left.
    pub(super) fn start(&self) -> (Seq, u64) {
        match &self.record {
            Record::Claim { last, total, .. } => (last.plus(1), *total),
            Record::Part(part) => (part.first, part.total),
        }
    }
}

/// The part of a subject for a session.
pub(super) fn subject(key: &SessionKey) -> String {
    format!("{}.{}", encode(key.tenant()), encode(key.session()))
}

/// Text as a token of a subject: letters, digits, `_` and `-` as they are, other bytes as `%XX`.
pub(super) fn encode(text: &str) -> String {
    let mut token = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => token.push(char::from(byte)),
            _ => {
                let _ = write!(token, "%{byte:02X}");
            }
        }
    }
    token
}

/// The text of a token.
pub(super) fn decode(token: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(token.len());
    let mut rest = token.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let value = digit(rest.next()?)? * 16 + digit(rest.next()?)?;
                u8::try_from(value).ok()?
            }
            _ => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_names_survive_their_text() {
        let claim = Record::Claim {
            last: Seq::new(3),
            total: 9,
            updated: 1,
            until: 2,
            owner: "a b\u{fc}.*>%".into(),
        };
        let part = Record::Part(Part {
            epoch: Epoch::new(1),
            first: Seq::new(2),
            last: Seq::new(3),
            at: 4,
            total: 5,
            updated: 6,
            body: 7,
            part: 8,
            parts: 9,
        });
        for record in [claim, part] {
            let header = record.header();
            let text = header.trim_end().strip_prefix("Attache-Record: ");
            assert_eq!(text.and_then(Record::parse), Some(record));
        }
        for bad in ["", "claim", "page 1 2", "claim 1 2 3 4 %F", "other 1"] {
            assert_eq!(Record::parse(bad), None, "{bad}");
        }
    }
}
