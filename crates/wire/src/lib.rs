//! Every message of the Agent Client Protocol as a Rust type.
//!
//! This crate knows the shape of messages and nothing else: no sessions, no order, no I/O. It is tolerant where
//! the protocol says so and strict where a wrong guess would start a process or lose data; what it writes is
//! minimal and always valid.
//!
//! - [`v1`]: protocol version 1, in files by topic, with what was stable, unstable, and only in older drafts.
//! - [`Json`], [`Meta`], [`Patch`]: values whose form is free, and members with three states.
//! - [`Request`], [`Notification`]: which type travels under which method.
//!
//! Read [`v1`] first; `shape` only if you want to know how the tables work.

mod fields;
mod into_field;
mod json;
mod shape;
mod type_list;
pub mod v1;

pub use fields::Fields;
pub use into_field::IntoField;
pub use json::{Json, Meta, Patch};
#[doc(hidden)]
pub use shape::tagged::AnyStr;
pub use shape::tagged::Unknown;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// The params of a request, with the method they travel under and the result they are answered with.
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

/// Reads params or a result; an absent value counts as `null` (RPC-21, RPC-22).
pub fn decode<T: DeserializeOwned>(raw: Option<&RawValue>) -> serde_json::Result<T> {
    serde_json::from_str(raw.map_or("null", RawValue::get))
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
