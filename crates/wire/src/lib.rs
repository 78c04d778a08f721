//! The messages of the Agent Client Protocol as Rust types.
//!
//! The crate contains types only: no sessions, no order, no I/O. Reading is tolerant where the
//! protocol asks for it and strict where a wrong guess would start a process or lose data. Written
//! messages are minimal and always valid.
//!
//! - [`v1`]: protocol version 1, in files by topic.
//! - [`v2`]: protocol version 2, in files of the same topics. A draft: any release may change it.
//! - `both/`: tables that the versions share although the types of some members differ. Each
//!   version compiles them as modules of its own.
//! - [`Json`], [`Meta`], [`Patch`]: free JSON, metadata, and members with three states.
//! - [`Unknown`]: a variant of a union that is not in the list, kept unchanged for relays.
//! - [`Request`], [`Notification`]: the methods of the types.
//! - [`IntoField`]: the conversions that setters accept.
//!
//! # Features
//!
//! - `unstable`: types and fields that the specification marks as unstable. They may change with
//!   any release.
//! - `drafts`: types and fields that only earlier drafts had; implies `unstable`.
//!
//! Without a feature, its fields are ignored like unknown ones, and variants of its kinds are read
//! as unknown ones.
//!
//! Reading order: a topic such as `v1/content.rs`, then `shape/`.

#![cfg_attr(docsrs, feature(doc_cfg))]
// The protocol grows: a new public type is non-exhaustive, or says why it cannot grow.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]
#![expect(
    clippy::duplicate_mod,
    reason = "both versions compile the tables of `both/`, each with its own types"
)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod fields;
mod into_field;
mod json;
mod shape;
mod type_list;
pub mod v1;
pub mod v2;

pub use fields::Fields;
pub use into_field::IntoField;
pub use json::{Json, Meta, Patch};
pub use shape::tagged::Unknown;
#[doc(hidden)]
pub use shape::{compact::UpdateParams, compact::from_text, tagged::AnyStr};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// The params of a request, with the method they travel under and the result they are answered
/// with.
pub trait Request: Serialize + DeserializeOwned + Send + 'static {
    /// The method's name.
    const METHOD: &'static str;
    /// The type of the result.
    type Response: Serialize + DeserializeOwned + Send + 'static;
}

/// The params of a notification, with the method they travel under.
pub trait Notification: Serialize + DeserializeOwned + Send + 'static {
    /// The method's name.
    const METHOD: &'static str;
}

// RPC-21, RPC-22
/// Reads params or a result; an absent value counts as `null`.
pub fn decode<T: DeserializeOwned>(raw: Option<&RawValue>) -> serde_json::Result<T> {
    from_text(raw.map_or("null", RawValue::get))
}

/// Ties types to methods.
macro_rules! methods {
    ($($method:literal: $request:ty => $response:ty),* $(,)?) => {
        $(impl $crate::Request for $request {
            const METHOD: &'static str = $method;
            type Response = $response;
        })*
    };
}

/// Ties notifications to methods.
macro_rules! notifications {
    ($($method:literal: $params:ty),* $(,)?) => {
        $(impl $crate::Notification for $params {
            const METHOD: &'static str = $method;
        })*
    };
}

pub(crate) use {methods, notifications};
