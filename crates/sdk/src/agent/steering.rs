//! Steering: later prompts reach the running turn.

use std::sync::{Arc, Mutex, Weak};

use attache_conn::Responder;
use attache_wire::Meta;

use super::table::SessionEntry;
use super::turn_state::TurnState;
use crate::Prompt;
use crate::task::lock;

/// A prompt that was not begun, with everything that answers it.
pub(super) struct PendingPrompt {
    pub(super) responder: Responder,
    pub(super) prompt: Prompt,
    pub(super) meta: Option<Meta>,
}

/// The prompt of a turn.
pub(super) enum PromptSource {
    Own(PendingPrompt),
    /// An earlier turn may take it.
    Offered(Arc<Offer>),
}

impl PromptSource {
    /// The prompt, unless an earlier turn has it.
    pub(super) fn take(self) -> Option<PendingPrompt> {
        match self {
            PromptSource::Own(prompt) => Some(prompt),
            PromptSource::Offered(offer) => offer.take(),
        }
    }
}

/// A prompt that the running turn may take.
pub(super) struct Offer(Mutex<Option<PendingPrompt>>);

impl Offer {
    pub(super) fn new(prompt: PendingPrompt) -> Arc<Self> {
        Arc::new(Offer(Mutex::new(Some(prompt))))
    }

    pub(super) fn take(&self) -> Option<PendingPrompt> {
        lock(&self.0).take()
    }
}

/// The later prompts of a running turn.
pub(super) struct Steering {
    entry: Weak<SessionEntry>,
    /// The number of the running turn.
    number: u64,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    /// Set when the turn ends.
    closed: bool,
    /// Prompts of version 1, which are answered when the turn ends.
    responders: Vec<Responder>,
}

impl Steering {
    pub(super) fn new(entry: &Arc<SessionEntry>, number: u64) -> Self {
        Steering { entry: Arc::downgrade(entry), number, taken: Mutex::default() }
    }

    /// Takes no more prompts.
    pub(super) fn close(&self) {
        lock(&self.taken).closed = true;
    }

    /// The prompts that are answered together with the turn.
    pub(super) fn take_responders(&self) -> Vec<Responder> {
        std::mem::take(&mut lock(&self.taken).responders)
    }
}

impl TurnState {
    /// Takes a prompt that waits, and inserts it.
    pub(super) fn take_prompt(&self) -> Option<Prompt> {
        let steering = self.steering()?;
        let entry = steering.entry.upgrade()?;
        // Locked until the prompt is inserted, so that the turn cannot end in between.
        let mut taken = lock(&steering.taken);
        if taken.closed || self.token().is_cancelled() {
            return None;
        }
        let PendingPrompt { responder, mut prompt, .. } = entry.take_offer(steering.number)?;
        let mut responder = Some(responder);
        self.insert_prompt(&mut responder, &mut prompt);
        taken.responders.extend(responder);
        drop(taken);
        self.client().flush_records();
        Some(prompt)
    }

    pub(super) async fn next_prompt(&self) -> Prompt {
        let Some(entry) = self.steering().and_then(|steering| steering.entry.upgrade()) else {
            return std::future::pending().await;
        };
        loop {
            let offered = entry.offered();
            if let Some(prompt) = self.take_prompt() {
                return prompt;
            }
            offered.await;
        }
    }
}
