//! Several hubs on one journal.
//!
//! The hub that holds the lease of a session is its owner and runs its agent. Each other hub with a
//! client on the session is a *guest* ([`guest`]): it shows the session from the journal, and
//! passes commands on to the owner, which answers in `node_requests.rs`. When there is no owner any
//! more, a guest with work to do claims the session. The journal decides when two hubs believe to
//! be the owner.

mod commands;
mod guest;

pub(crate) use commands::command;
pub(crate) use guest::Guest;

use crate::session::Task;

/// What a hub is for a session.
pub(crate) enum Seat {
    Owner(Box<Task>),
    Guest(Box<Guest>),
}

impl Seat {
    /// Runs until the session has no users. Returns the next seat if it changes.
    pub(crate) async fn run(self) -> Option<Seat> {
        match self {
            Seat::Owner(task) => Guest::after(task.run().await?).await.map(Seat::Guest),
            Seat::Guest(guest) => guest.run().await.map(|task| Seat::Owner(Box::new(task))),
        }
    }
}
