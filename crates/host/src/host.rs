//! Everything that a client lends, under one policy.

use std::future::Future;
use std::sync::Arc;

use crate::files::Files;
use crate::policy::{Answer, Guard, Policy, Question};
use crate::terminals::PtyTerminals;

/// Everything that a client lends, under one policy.
#[derive(Clone, Debug)]
pub struct Host {
    guard: Guard,
}

impl Host {
    /// Lends what the policy allows. Where a person would have to decide, the answer is no, until [`on_ask`](Self::on_ask).
    pub fn new(policy: impl Into<Arc<Policy>>) -> Self {
        Host { guard: Guard::new(policy.into()) }
    }

    /// Lets a person decide what the agent does without asking, where the policy leaves that to one.
    #[must_use]
    pub fn on_ask<F, Fut>(self, ask: F) -> Self
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        Host { guard: self.guard.on_ask(ask) }
    }

    /// For `Client::read_files` and `Client::write_files`.
    pub fn files(&self) -> Files {
        Files::new(self.guard.clone())
    }

    /// For `Client::terminals`.
    pub fn terminals(&self) -> PtyTerminals {
        PtyTerminals::new(self.guard.clone())
    }

    /// What everything goes through.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }
}
