//! Language models: one interface, and the clients of those who offer them.
//!
//! A [`Model`] is asked with a [`Request`] and answers with a [`Stream`] of [`Event`]s; [`Answer`] puts the events
//! together to the [`Message`] that they are.
//!
//! Reading order: `message` (what is said), `event` (what comes back), `answer` (both joined), `script` (a model
//! that is played from a file).
//!
//! What never happens here: text that was handed out is not asked for again; a key is not in an error, a log or a debug
//! text; a dropped stream does not keep its connection.

mod answer;
mod error;
mod event;
mod info;
mod json;
mod message;
pub mod script;

pub use answer::Answer;
pub use error::ModelError;
pub use event::{BadCall, Event, Events, Stop, Stream, Usage};
pub use info::{ModelInfo, Price};
pub use message::{Message, Part, Request, Role, Thinking, ToolCall, ToolSpec};

/// A language model that can be asked.
pub trait Model: Send + Sync {
    /// What is known about it.
    fn info(&self) -> &ModelInfo;

    /// Asks. Nothing is sent until the stream is read.
    fn start(&self, request: Request) -> Stream;
}
