//! How wire types are shaped: the small machinery under the tables in [`crate::v1`].
//!
//! A message type is written as a table, one line per member, and every line names the *mode* in which the
//! member is read: what happens when it is absent, `null` or malformed. That is the whole of the catalogue's
//! presence column, so a table can be checked against it line by line. Reading order: [`object`](mod@object)
//! (members of one object), [`modes`], [`tagged`](mod@tagged) (unions that are told apart by one member),
//! [`text`](mod@text) (string enums and ids), [`members`] (objects that fit no table), [`raw`] (what is put aside).
//!
//! What is *not* here: `serde_derive`. Derived structs read positional arrays, which the protocol refuses
//! (RPC-25), and buffer whole objects to find a tag; both are done differently on purpose.

pub(crate) mod members;
pub(crate) mod modes;
pub(crate) mod object;
pub(crate) mod raw;
pub(crate) mod tagged;
pub(crate) mod text;
pub(crate) mod transparent;

pub(crate) use members::Members;
pub(crate) use modes::*;
pub(crate) use object::{FromMap, ToMap, markers, object};
pub(crate) use tagged::tagged;
pub(crate) use text::{closed_enum, id, open_enum};
pub(crate) use transparent::transparent;
