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
//! - [`Agent`]: the connection. What an agent may not be able to do is an `Option`.
//! - [`Session`], [`Turn`], [`Event`]: one turn at a time, an ordered stream that ends with the stop reason.
//! - [`PermissionAsk`], [`ElicitationAsk`]: questions as values; dropping one answers it.
//! - [`Control`]: what can be done during a turn, from anywhere.
//!
//! For readers of the code: `dispatch.rs` is where messages come in, `lane.rs` is where they wait, in the order of the wire, for
//! the session's owner; `connection.rs` knows which lane is whose; `ask.rs` sees to it that each question has one answer.
//! What never happens: dispatch waits; a lane's lock is held while something is sent; a question stays without an answer; a message
//! of one turn reaches another turn's stream; an unread stream grows without a bound.

mod abilities;
mod agent;
mod ask;
mod builder;
mod connection;
mod dispatch;
mod elicitation;
mod event;
mod form;

mod lane;
mod loading;
mod nes;
mod news;
mod quirks;
mod serve;
mod session;
mod setup;
mod size;
mod state;
mod turn;

pub use abilities::{
    Archiving, AuthStatus, Deleting, Forking, Listing, Loader, Logout, Pages, Providers, Resuming, Status,
    Titling,
};
pub use agent::Agent;
pub use ask::PermissionAsk;
pub use builder::Client;
pub use elicitation::{ElicitationAsk, Problem, Unfit, Wanted};
pub use event::{ContentPiece, Event, Speaker, TextChunk, ToolCallChange};
pub use loading::Loading;
pub use nes::{Nes, NesSession, Spot};
pub use news::{AgentEvent, Events};
pub use serve::{Cx, ReadFiles, Terminal, Terminals, WriteFiles};
pub use session::{Control, Session};
pub use setup::{ForkSession, LoadSession, NewSession, ResumeSession};
pub use turn::Turn;
