//! The client side: connect to an agent, open sessions, read the events of turns, answer questions.
//!
//! ```no_run
//! use attache::Link;
//! use attache::client::{Client, Event};
//! use attache::wire::v1::PermissionOptionKind::AllowOnce;
//!
//! # async fn run() -> attache::Result<()> {
//! let agent = Client::new().connect(Link::spawn("my-agent")?).await?;
//! let mut session = agent.new_session(std::env::current_dir()?).await?;
//! let mut turn = session.prompt("What is 2 + 2?").await?;
//! while let Some(event) = turn.next().await? {
//!     match event {
//!         Event::Text(text) => print!("{text}"),
//!         Event::Permission(ask) => ask.choose_kind(AllowOnce),
//!         _ => {}
//!     }
//! }
//! println!("{:?}", turn.stop_reason());
//! # Ok(())
//! # }
//! ```
//!
//! - [`Client`]: what the program is and offers; installing a provider is what advertises it.
//! - [`AgentHandle`]: the connection. What an agent may not be able to do is an `Option`.
//! - [`Session`], [`TurnEvents`], [`Event`]: one turn at a time, an ordered stream that ends with the stop reason.
//! - [`PermissionAsk`], [`ElicitationAsk`]: questions as values; dropping one answers it.
//! - [`SessionControl`]: what can be done during a turn, from anywhere.
//!
//! For readers of the code: `dispatch.rs` is where messages come in, `lane.rs` is where they wait, in the order of the wire, for
//! the session's owner; `connection.rs` knows which lane is whose; `ask.rs` sees to it that each question has one answer.
//! What never happens: dispatch waits; a lane's lock is held while something is sent; a question stays without an answer; a message
//! of one turn reaches another turn's stream; an unread stream grows without a bound.

mod agent;
mod ask;
mod builder;
mod capabilities;
mod connection;
mod dispatch;
mod elicitation;
mod event;
mod form;

mod events;
mod lane;
mod nes;
mod parts;
mod quirks;
mod replay;
mod requests;
mod serve;
mod session;
mod session_builder;
mod size;
mod state;
mod turn;

pub use agent::AgentHandle;
pub use ask::PermissionAsk;
pub use builder::Client;
pub use capabilities::{
    AuthStatusReader, Logout, ProviderSettings, SessionArchiver, SessionDeleter, SessionForker,
    SessionLister, SessionLoader, SessionPages, SessionResumer, SessionStatusReader, SessionTitler,
};
pub use elicitation::{ElicitationAsk, FormProblem, InvalidForm, RequestedInput};
pub use event::{ContentPiece, Event, Speaker, TextChunk, ToolCallChange};
pub use events::{ConnectionEvent, ConnectionEvents};
pub use nes::{Nes, NesSession, SuggestionPoint};
pub use parts::{Prompter, SessionEvent, SessionEvents};
pub use replay::SessionReplay;
pub use serve::{ReadFiles, RequestContext, Terminal, Terminals, WriteFiles};
pub use session::{Session, SessionControl};
pub use session_builder::{Fork, Load, New, Resume, SessionBuilder};
pub use turn::TurnEvents;
