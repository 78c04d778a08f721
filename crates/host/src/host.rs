//! Files and terminals under one policy.

use std::future::Future;
use std::sync::Arc;

use crate::files::Files;
use crate::policy::{Answer, Guard, Notice, Policy, Question};
use crate::terminals::PtyTerminals;

/// Files and terminals that a client provides, under one policy.
#[derive(Clone, Debug)]
pub struct Host {
    guard: Guard,
}

impl Host {
    /// Provides what the policy allows. Where a person would have to decide, the answer is no, unless [`on_ask`](Self::on_ask) is set.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Self {
        Host { guard: Guard::new(policy.into()) }
    }

    /// Sets the function that asks a person about what the agent does without asking for permission.
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

    /// Sets a function that is called with the guard's decisions; see [`Guard::on_notice`].
    #[must_use]
    pub fn on_notice(self, notice: impl Fn(Notice) + Send + Sync + 'static) -> Self {
        Host { guard: self.guard.on_notice(notice) }
    }

    /// The guard of files and terminals.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }
}
