//! Language models: one interface, and clients for their providers.
//!
//! A [`Model`] answers a [`Request`] with a [`Stream`] of [`Event`]s; [`Response`] assembles the
//! events into a [`Message`].
//!
//! Reading order: `message` (requests), `event` and `response` (what comes back), `models` (the
//! models on offer), `http_model` (how one is asked), `api` (the providers' protocols), `error`
//! (what fails and when to retry), `script` (a model played from a file).
//!
//! Invariants: text that the reader got is never requested again; no key is in an error, a log or a
//! debug text; a dropped stream closes its connection.

mod api;
mod catalog;
mod discovery;
mod error;
mod event;
mod http_model;
mod info;
mod key;
mod key_check;
mod message;
mod models;
mod normalize;
mod provider;
mod response;
pub mod script;
mod settings;

pub use api::Api;
pub use error::{ErrorKind, ModelError};
pub use event::{Event, Events, InvalidCall, Stop, Stream, Usage};
pub use http_model::Timeouts;
pub use info::{ModelInfo, Price};
pub use key::Key;
pub use key_check::{KeyCheck, check_key};
pub use message::{Message, Part, Request, Role, Thinking, ToolCall, ToolSpec};
pub(crate) use message::{estimate_tokens, text_of};
pub use models::Models;
pub(crate) use normalize::complete_calls;
pub use provider::{KeySource, PriceSettings, Provider, Providers, Sampling};
pub use response::Response;
pub use settings::Settings;

/// A language model.
pub trait Model: Send + Sync {
    /// Its properties.
    fn info(&self) -> &ModelInfo;

    /// Answers a request. Nothing is sent until the stream is read.
    fn start(&self, request: Request) -> Stream;
}
