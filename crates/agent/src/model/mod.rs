//! Language models: one interface, and the clients of those who offer them.
//!
//! A [`Model`] is asked with a [`Request`] and answers with a [`Stream`] of [`Event`]s; [`Answer`] puts the events
//! together to the [`Message`] that they are.
//!
//! Reading order: `message` (what is said), `event` (what comes back), `answer` (both joined), `models`
//! (which there are), `remote` (how one is asked), `api` (in which language), `script` (one that is played from a file).
//!
//! What never happens here: text that was handed out is not asked for again; a key is not in an error, a log or a debug
//! text; a dropped stream does not keep its connection.

mod answer;
mod api;
mod discover;
mod error;
mod event;
mod fault;
mod info;
mod json;
mod key;
mod known;
mod lines;
mod message;
mod models;
mod provider;
mod remote;
pub mod script;
mod settings;

pub use answer::Answer;
pub use api::Api;
pub use error::ModelError;
pub use event::{BadCall, Event, Events, Stop, Stream, Usage};
pub use info::{ModelInfo, Price};
pub use key::Key;
pub use message::{Message, Part, Request, Role, Thinking, ToolCall, ToolSpec};
pub use models::Models;
pub use provider::{KeyFrom, Provider, Providers};
pub use remote::Patience;
pub use settings::Settings;

/// A language model that can be asked.
pub trait Model: Send + Sync {
    /// What is known about it.
    fn info(&self) -> &ModelInfo;

    /// Asks. Nothing is sent until the stream is read.
    fn start(&self, request: Request) -> Stream;
}
