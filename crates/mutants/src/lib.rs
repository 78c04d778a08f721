//! Peers for the checker to be tried on: one that keeps every rule, and variants of it that break exactly one each.
//!
//! A check that cannot fail proves nothing. So for each rule that can be seen on the wire there is a *variant*: the
//! good peer with one behaviour changed. The checker must find nothing wrong with the good peer, and with a variant
//! exactly the rule that it breaks (and those of [`Variant::also`], which cannot be broken alone).
//!
//! The peers speak raw JSON over a [`Link`](attache_conn::Link) and know neither the SDK nor the checker: a mistake of
//! either cannot hide here.
//!
//! - [`agent`](fn@agent): the agent. What it does in a turn is chosen by the text of the prompt, see `agent/wish.rs`.
//! - [`client`](fn@client): the client. What it does is its act, see `client/acts.rs`; what it is lent it serves meanwhile.

pub mod agent;
pub mod client;

pub use agent::agent;
pub use client::client;

/// One way to break one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The rule's id, with `/how` behind it where there are several ways.
    pub name: &'static str,
    /// Other rules that cannot be kept when this one is broken so.
    pub also: &'static [&'static str],
}

impl Variant {
    /// The rule that is broken.
    pub fn rule(&self) -> &'static str {
        self.name.split('/').next().unwrap_or(self.name)
    }
}
