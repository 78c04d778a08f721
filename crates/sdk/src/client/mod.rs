//! The client side: connect to an agent, open sessions, read the events of turns, answer questions.
//!
//! ```no_run
//! use attache::Link;
//! use attache::client::{Client, Event};
//! use attache::model::PermissionOptionKind::AllowOnce;
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
//! - [`Client`]: the builder; installing a service advertises it. The crate `attache-host` has
//!   confined files and terminals and a permission policy.
//! - [`AgentHandle`]: the connection. Abilities that an agent may lack are `Option`s.
//! - [`Session`], [`TurnEvents`], [`Event`]: one turn at a time, a stream that ends with the stop
//!   reason.
//! - [`Prompter`], [`SessionEvents`]: the same for programs that cannot borrow, such as user
//!   interfaces.
//! - [`PermissionAsk`], [`ElicitationAsk`]: questions as values; dropping one answers it.
//! - [`SessionControl`]: cancels and changes settings from any task.
//!
//! [`examples/client.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/client.rs)
//! is a complete program.

// `dispatch.rs` receives messages; `lane.rs` queues them in wire order for the owner of a session;
// `connection.rs` maps sessions to lanes; `ask.rs` makes sure that each question has one answer.
// Never: dispatch waits; a lane's lock is held while a message is sent; a question stays
// unanswered; an event of one turn reaches another; an unread stream grows without bound.

mod agent;
mod ask;
mod builder;
mod calls;
mod capabilities;
mod connection;
mod dispatch;
#[cfg(feature = "drafts")]
mod drafts;
mod elicitation;
mod event;
mod events;
mod form;
mod into_link;
mod lane;
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
#[cfg(feature = "unstable")]
mod unstable;
mod v2;

pub use crate::plan_status::plan_status;
pub use agent::AgentHandle;
pub use ask::{PermissionAsk, PermissionCommand};
pub use attache_wire::v2::{
    BackgroundTerminal, BackgroundToolCall, BackgroundWork, PlanEntryStatus as PlanStatus,
    StopReason as IdleReason, TerminalExitStatus, ToolCallStatus as ToolStatus,
};
pub use builder::{Client, Protocol};
pub use calls::ToolCall;
pub use capabilities::{Logout, SessionDeleter, SessionLister, SessionLoader, SessionPages, SessionResumer};
#[cfg(feature = "drafts")]
pub use drafts::{Nes, NesSession, SuggestionPoint};
pub use elicitation::{ElicitationAsk, FormProblem, InvalidForm, RequestedInput};
pub use event::{
    AgentTerminal, ContentPiece, Event, MessageChange, SessionState, Speaker, TerminalChange, TextChunk,
    ToolCallChange,
};
pub use events::{ConnectionEvent, ConnectionEvents};
pub use into_link::IntoLink;
pub use parts::{Prompter, SessionEvent, SessionEvents};
pub use replay::SessionReplay;
pub use serve::{ReadFiles, RequestContext, Terminal, Terminals, WriteFiles};
pub use session::{Session, SessionControl};
pub use session_builder::{Load, New, Reopen, Replay, Resume, SessionBuilder};
pub use turn::TurnEvents;
#[cfg(feature = "unstable")]
pub use unstable::{
    AuthStatusReader, Fork, ProviderSettings, SessionArchiver, SessionForker, SessionStatusReader,
    SessionTitler,
};
pub use v2::LinesAsV1;
