//! Macros that declare message types as tables.
//!
//! A table has one line per member, with its wire name and its *mode*: the handling of an absent,
//! `null` or malformed value. Reading order: [`object`](mod@object) (structs), [`modes`],
//! [`tagged`](mod@tagged) (unions with a tag), [`flattened`](mod@flattened) (objects with unions
//! inside), [`text`](mod@text) (string enums and ids), [`transparent`](mod@transparent) (newtypes),
//! [`members`] (objects that fit no table), [`raw`] (values that are read later), [`compact`] (a
//! reader for the usual form of JSON).
//!
//! `serde_derive` is not used: derived structs accept positional arrays, which the protocol
//! refuses, and buffer whole objects to find a tag.

// RPC-25

pub(crate) mod compact;
pub(crate) mod flattened;
pub(crate) mod members;
pub(crate) mod modes;
pub(crate) mod object;
pub(crate) mod raw;
pub(crate) mod tagged;
pub(crate) mod text;
pub(crate) mod transparent;

pub(crate) use flattened::{Flat, flattened};
pub(crate) use members::Members;
pub(crate) use modes::*;
pub(crate) use object::{FromMap, ToMap, empty_objects, object};
pub(crate) use tagged::{from_payloads, tagged};
pub(crate) use text::{closed_enum, ids, open_enum};
pub(crate) use transparent::transparent;
