//! A session goes from one hub to another one.

use std::sync::Arc;

use attache_journal::{Error, Lease};
use tokio::sync::{mpsc, oneshot, watch};

use super::history::History;
use super::task::{Context, Pending, Task};
use super::{Command, Forward, PromptCommand, Session, Signal};
use crate::questions::Questions;

/// A session without its task, and what its clients wait for.
pub(crate) struct Handover {
    pub(crate) cx: Context,
    pub(crate) session: Arc<Session>,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) signal: watch::Receiver<Signal>,
    /// Prompts that may not be in the journal.
    pub(crate) prompts: Vec<PromptCommand>,
    /// Requests that an agent may have got.
    pub(crate) forwards: Vec<Forward>,
}

impl Task {
    /// Takes a session over, and closes what its last owner left open.
    pub(crate) fn take_over(
        handover: Handover,
        lease: Lease,
        history: History,
        todo: Vec<Command>,
    ) -> Result<Task, Error> {
        let Handover { cx, session, commands, signal, .. } = handover;
        session.set_owner(lease.epoch(), false);
        *session.questions.lock() = Questions::new(cx.options.policy);
        let mut task = Task::new(cx, session, (commands, signal), lease, history.ended);
        task.close_left_open(history.questions, history.running)?;
        task.set_turn(None);
        for command in todo {
            task.on_command(command)?;
        }
        Ok(task)
    }

    /// Writes what is staged, and gives the session back.
    pub(crate) async fn settle(mut self) -> Result<Handover, Error> {
        while !self.log.is_idle() {
            self.log.start();
            let actions = self.log.appended().await?;
            self.act(actions);
        }
        let journal = self.cx.journal.clone();
        let (handover, lease) = self.split();
        if let Some(lease) = lease {
            let _ = journal.release(lease).await;
        }
        Ok(handover)
    }

    /// Ends the agent, and gives back what the next owner has to do.
    pub(super) fn hand_over(self) -> Handover {
        self.split().0
    }

    fn split(mut self) -> (Handover, Option<Lease>) {
        let pending = self.agent.as_mut().map(|agent| std::mem::take(&mut agent.pending)).unwrap_or_default();
        let pending = pending.into_values().filter_map(|pending| match pending {
            Pending::Forward(forward) => Some(forward),
            Pending::Prompt => None,
        });
        let forwards = pending.chain(std::mem::take(&mut self.stash)).collect();
        let mut prompts = Vec::new();
        if let Some(turn) = &self.turn {
            // Its begin may not be in the journal. If it is, the next owner finds it there.
            let (reply, _) = oneshot::channel();
            let (connection, by) = (turn.connection, turn.by.clone());
            let (prompt, params) = (turn.prompt.clone(), turn.params.clone());
            prompts.push(PromptCommand { connection, by, prompt, params, reply });
        }
        prompts.extend(std::mem::take(&mut self.queue));
        self.set_turn(None);
        self.end_agent();
        *self.session.questions.lock() = Questions::new(self.cx.options.policy);
        let Task { cx, session, commands, signal, log, .. } = self;
        (Handover { cx, session, commands, signal, prompts, forwards }, log.into_lease())
    }
}
