//! Counters of a hub.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! metrics {
    ($($field:ident $kind:literal $name:literal $help:literal,)*) => {
        /// Counters of a hub, all without contents.
        #[derive(Debug, Default)]
        pub(crate) struct Metrics {
            $(pub(crate) $field: Counter,)*
        }

        impl Metrics {
            /// The counters in the text format of Prometheus.
            pub(crate) fn text(&self) -> String {
                let mut text = String::new();
                $(
                    let _ = writeln!(text, concat!("# HELP attache_hub_", $name, " ", $help));
                    let _ = writeln!(text, concat!("# TYPE attache_hub_", $name, " ", $kind));
                    let _ = writeln!(text, concat!("attache_hub_", $name, " {}"), self.$field.get());
                )*
                text
            }
        }
    };
}

metrics! {
    clients "gauge" "clients" "Connected clients.",
    sessions "gauge" "sessions" "Sessions in memory.",
    agents "gauge" "agents" "Running agents.",
    turns "gauge" "turns" "Running turns.",
    agents_started "counter" "agents_started_total" "Agents that were started.",
    prompts "counter" "prompts_total" "Turns that were started.",
    repeated "counter" "prompts_repeated_total" "Prompts that were sent again and not run again.",
    questions "counter" "questions_total" "Questions of agents.",
    decisions "counter" "decisions_total" "Questions that were decided.",
    interrupted "counter" "turns_interrupted_total" "Turns that ended with their agent or hub.",
    entries "counter" "journal_entries_total" "Entries that were written.",
    bytes "counter" "journal_bytes_total" "Bytes of entries that were written.",
}

/// A number that several tasks change.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, count: u64) {
        self.0.fetch_sub(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
