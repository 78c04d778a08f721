//! Peers that test the checker: a conformant agent and client, and variants that break exactly one
//! rule each.
//!
//! A check that cannot fail proves nothing. So each rule that is visible on the wire has a
//! *variant*: the conformant peer with one behaviour changed. The checker must find nothing wrong
//! with the conformant peer, and in a variant exactly the broken rule (and those of
//! [`Variant::also`], which cannot be broken alone).
//!
//! The peers speak raw JSON over a [`Link`](attache_conn::Link) and use neither the SDK nor the
//! checker, so a bug in either cannot hide here.
//!
//! - [`agent`](fn@agent): the prompt's text selects what it does in a turn, see `agent/intent.rs`.
//! - [`server::proxy`]: stands before a conformant server and breaks its transport.
//! - [`client`](fn@client): its action selects what it does, see `client/actions.rs`; it serves the
//!   agent meanwhile.

pub mod agent;
pub mod client;
pub mod programs;
pub mod server;

pub use agent::agent;
pub use client::client;

/// Defines `variants` and `variants_v2` from the tables beside the file.
macro_rules! variants {
    () => {
        /// Every variant in version 1, in the order of the rules.
        pub fn variants() -> &'static [$crate::Variant] {
            static VARIANTS: std::sync::LazyLock<Vec<$crate::Variant>> =
                std::sync::LazyLock::new(|| $crate::Variant::table(include_str!("variants.txt")));
            &VARIANTS
        }

        /// Every variant in version 2, in the order of the rules.
        pub fn variants_v2() -> &'static [$crate::Variant] {
            static VARIANTS: std::sync::LazyLock<Vec<$crate::Variant>> =
                std::sync::LazyLock::new(|| $crate::Variant::table(include_str!("variants_v2.txt")));
            &VARIANTS
        }
    };
}

use variants;

/// A way to break a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The id of the rule, followed by `/how` if there are several ways.
    pub name: &'static str,
    /// Other rules that this variant necessarily breaks too.
    pub also: Vec<&'static str>,
}

impl Variant {
    /// The rule that is broken.
    pub fn rule(&self) -> &'static str {
        self.name.split('/').next().unwrap_or(self.name)
    }

    /// Reads a table of variants: per line the name, then the rules of `also`.
    fn table(text: &'static str) -> Vec<Variant> {
        let variant = |line: &'static str| {
            let mut words = line.split_whitespace();
            Some(Variant { name: words.next()?, also: words.collect() })
        };
        text.lines().filter_map(variant).collect()
    }
}
