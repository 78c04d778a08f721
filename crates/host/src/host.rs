//! Files and terminals under one policy.

use std::future::Future;
use std::sync::Arc;

use attache::client::{Client, PermissionAsk};

use crate::files::Files;
use crate::policy::{Answer, Decision, Guard, Notice, Policy, Question};
use crate::terminals::PtyTerminals;

/// Files and terminals that a client provides, under one policy.
#[derive(Clone, Debug)]
pub struct Host {
    guard: Guard,
}

impl Host {
    /// Provides what the policy allows. Where a person would have to decide, the answer is no,
    /// unless [`on_ask`](Self::on_ask) is set.
    pub fn new(policy: impl Into<Arc<Policy>>) -> Self {
        Host { guard: Guard::new(policy.into()) }
    }

    /// Sets the function that asks a person about what the agent does without asking for
    /// permission.
    #[must_use]
    pub fn on_ask<F, Fut>(self, ask: F) -> Self
    where
        F: Fn(Question) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Answer> + Send + 'static,
    {
        Host { guard: self.guard.on_ask(ask) }
    }

    /// Installs files, terminals and permissions on a client: everything that this crate provides.
    ///
    /// ```
    /// use attache::client::Client;
    /// use attache_host::Host;
    /// use attache_host::policy::{Mode, Policy};
    ///
    /// let client = Host::new(Policy::new(Mode::APPROVE_READS)).install(Client::new());
    /// ```
    pub fn install(&self, client: Client) -> Client {
        let host = self.clone();
        client.read_files(self.files()).write_files(self.files()).terminals(self.terminals()).on_permission(
            move |ask, _| {
                let host = host.clone();
                async move { host.decide(ask).await }
            },
        )
    }

    /// Answers a permission request as the policy says, and asks [`on_ask`](Self::on_ask) where a
    /// person has to decide. For [`Client::on_permission`].
    pub async fn decide(&self, ask: PermissionAsk) {
        // A request that is dropped is answered `cancelled`.
        let Some(policy) = self.guard.policy() else { return };
        let decision = match policy.decide(ask.request()) {
            Decision::Ask(question) => {
                let answer = tokio::select! {
                    answer = self.guard.ask((*question).clone()) => answer.unwrap_or(Answer::Unanswered),
                    () = ask.withdrawn() => return,
                };
                policy.answer(ask.request(), &question, &answer)
            }
            decision => Ok(decision),
        };
        if let Ok(Decision::Choose(selected)) = decision {
            // PERM-04: the policy chooses among the offered options.
            let _ = ask.choose(&selected.option);
        }
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
