//! Commands of clients: prompts, cancels, requests for the agent.

use attache_conn::rpc::ErrorObject;
use attache_journal::Error;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::task::{Action, Pending, Task, Turn, stop_reason};
use super::{Command, Forward, PromptCommand, PromptReply};
use crate::entry::{self, kind};
use crate::message::{self, Outcome};

impl Task {
    pub(super) fn on_command(&mut self, command: Command) -> Result<(), Error> {
        match command {
            Command::Prompt(prompt) => self.on_prompt(prompt),
            Command::Cancel { connection } => {
                self.drop_queued(|queued| queued.connection == connection);
                self.cancel_turn()
            }
            Command::CancelPrompt { prompt } => {
                self.drop_queued(|queued| queued.prompt == prompt);
                match self.turn.as_ref().is_some_and(|turn| turn.prompt == prompt) {
                    true => self.cancel_turn(),
                    false => Ok(()),
                }
            }
            Command::Forward(forward) => self.forward(forward),
            Command::CancelForward { connection, id } => {
                let Some(agent) = &self.agent else { return Ok(()) };
                let is_it = |pending: &Pending| matches!(pending, Pending::Forward(forward) if forward.connection == connection && forward.id == id);
                let number =
                    agent.pending.iter().find(|(_, pending)| is_it(pending)).map(|(number, _)| *number);
                if let Some(number) = number {
                    self.send(message::notification("$/cancel_request", &json!({"requestId": number})));
                }
                Ok(())
            }
            Command::Notify { method, params } => {
                let params = self.for_agent(&params);
                self.send(message::notification(&method, &params));
                Ok(())
            }
            Command::Decide(asker, decision) => self.decide(vec![(asker, decision)]),
            #[cfg(unix)]
            Command::Ask(params, asker) => {
                self.ask("session/request_permission".to_owned(), params, asker).map(drop)
            }
            Command::Answer { question, by, outcome } => {
                let decided = self.session.questions.lock().answer(&question, &by, outcome);
                self.decide(decided.into_iter().collect())
            }
            Command::Interrupt(forward) => {
                let error = message::interrupted("the hub that passed the request on is gone");
                self.stage_response(&forward, Outcome::error(&error))
            }
            // It belongs to the time before this hub became the owner.
            Command::PromptStatus(..) => Ok(()),
            Command::Close(reply) => {
                self.drop_queued(|_| true);
                if self.turn.is_some() {
                    self.end_turn(stop_reason("cancelled"), false)?;
                }
                self.end_agent();
                self.log.then(Action::Confirm(reply));
                Ok(())
            }
        }
    }

    /// Takes a prompt: starts a turn, queues it, or finds that it was sent before.
    pub(super) fn on_prompt(&mut self, command: PromptCommand) -> Result<(), Error> {
        let id = &command.prompt;
        let is_running = self.turn.as_ref().is_some_and(|turn| turn.prompt == *id);
        if let Some(ended) = self.ended.get(id) {
            self.cx.metrics.repeated.add(1);
            let _ = command.reply.send(PromptReply::Ended(ended.clone()));
        } else if is_running || self.queue.iter().any(|queued| queued.prompt == *id) {
            self.cx.metrics.repeated.add(1);
            let begun = self.turn.as_ref().filter(|_| is_running).map(|turn| turn.begun);
            let _ = command.reply.send(PromptReply::Running(begun));
        } else if self.turn.is_none() {
            self.start_turn(command)?;
        } else if self.queue.len() < self.cx.options.queue {
            self.queue.push_back(command);
            self.session.summary.lock().queued = self.queue.len();
        } else {
            let error = ErrorObject::internal("too many prompts wait for this session");
            let _ = command.reply.send(PromptReply::Outcome(Outcome::error(&error)));
        }
        Ok(())
    }

    /// Begins a turn. The agent gets the prompt when the journal has it, so that it is never run a
    /// second time.
    fn start_turn(&mut self, command: PromptCommand) -> Result<(), Error> {
        let PromptCommand { connection, by, prompt, params, reply } = command;
        drop(reply);
        self.cx.metrics.prompts.add(1);
        let begin = entry::Prompt { prompt: prompt.clone(), by: by.clone() };
        let begun = self.log.stage(kind::PROMPT, &entry::encode(&begin))?;
        for block in blocks(&params) {
            let update = json!({"sessionUpdate": "user_message_chunk", "content": block});
            self.stage_update(connection, &update)?;
        }
        self.log.then(Action::SendPrompt);
        self.set_turn(Some(Turn {
            connection,
            prompt,
            by,
            params,
            begun,
            is_sent: false,
            is_cancelled: false,
        }));
        Ok(())
    }

    /// Sends the prompt of the turn to the agent, which is started first if there is none.
    pub(super) fn send_prompt(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        let Some(agent) = &mut self.agent else { return self.start_agent() };
        turn.is_sent = true;
        let params = match self.session.id() == self.session.opened.agent_session {
            true => turn.params.clone(),
            false => message::with_session(&turn.params, &self.session.opened.agent_session),
        };
        let is_cancelled = turn.is_cancelled;
        if agent.request("session/prompt", &params, Pending::Prompt).is_err() {
            return self.end_stuck_agent();
        }
        if is_cancelled {
            self.send_cancel();
        }
    }

    /// Ends the turn and starts the next one.
    pub(super) fn end_turn(&mut self, outcome: Outcome, interrupted: bool) -> Result<(), Error> {
        let Some(turn) = self.turn.take() else { return Ok(()) };
        self.turn = None;
        self.cx.metrics.turns.subtract(1);
        let open = self.session.questions.lock().cancel_all("the turn ended");
        self.decide(open)?;
        #[cfg(unix)]
        if let Some(provision) = &self.provision {
            provision.policy().turn_over(&self.session.opened.agent_session.as_str().into());
        }
        self.stage_end(turn.prompt, turn.begun, outcome, interrupted)?;
        self.used = Instant::now();
        self.set_turn(None);
        match self.queue.pop_front() {
            Some(next) => self.start_turn(next),
            None => Ok(()),
        }
    }

    /// Cancels the running turn.
    fn cancel_turn(&mut self) -> Result<(), Error> {
        let Some(turn) = &mut self.turn else { return Ok(()) };
        turn.is_cancelled = true;
        if turn.is_sent {
            self.send_cancel();
        }
        // CANCEL-05: open questions of a cancelled turn are answered.
        let open = self.session.questions.lock().cancel_all("cancelled");
        self.decide(open)
    }

    fn send_cancel(&mut self) {
        let params = json!({"sessionId": self.session.opened.agent_session});
        self.send(message::notification("session/cancel", &params));
    }

    /// Removes prompts from the queue and answers them as cancelled.
    fn drop_queued(&mut self, is_dropped: impl Fn(&PromptCommand) -> bool) {
        let (dropped, kept) = std::mem::take(&mut self.queue).into_iter().partition::<Vec<_>, _>(is_dropped);
        self.queue = kept.into();
        for queued in dropped {
            let _ = queued.reply.send(PromptReply::Outcome(stop_reason("cancelled")));
        }
        self.session.summary.lock().queued = self.queue.len();
    }

    /// Passes a request on to the agent, which is started first if there is none.
    pub(super) fn forward(&mut self, forward: Forward) -> Result<(), Error> {
        if self.agent.is_none() {
            if self.stash.len() >= self.cx.options.queue {
                let error = ErrorObject::internal("too many requests wait for the agent");
                return self.stage_response(&forward, Outcome::error(&error));
            }
            self.stash.push_back(forward);
            self.start_agent();
            return Ok(());
        }
        let params = self.for_agent(&forward.params);
        let method = forward.method.clone();
        if let Some(agent) = &mut self.agent
            && agent.request(&method, &params, Pending::Forward(forward)).is_err()
        {
            self.end_stuck_agent();
        }
        Ok(())
    }

    /// Params with the agent's id of the session.
    fn for_agent(&self, params: &RawValue) -> Box<RawValue> {
        let agents = &self.session.opened.agent_session;
        match self.session.id() == agents {
            true => params.to_owned(),
            false => message::with_session(params, agents),
        }
    }

    /// Stages the response to a client's request. The other clients learn of a new mode, and of
    /// changed options.
    pub(super) fn stage_response(&mut self, forward: &Forward, outcome: Outcome) -> Result<(), Error> {
        match (forward.method.as_str(), &outcome) {
            ("session/set_mode", Outcome::Result(_)) => self.stage_mode(forward)?,
            ("session/set_config_option", Outcome::Result(result)) => self.stage_options(forward, result)?,
            _ => {}
        }
        let id = message::raw(&forward.id);
        let response = entry::Response { connection: forward.connection, id, outcome };
        self.log.stage(kind::RESPONSE, &entry::encode(&response))?;
        self.used = Instant::now();
        Ok(())
    }

    fn stage_mode(&mut self, forward: &Forward) -> Result<(), Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct SetMode {
            mode_id: String,
        }
        let Ok(SetMode { mode_id }) = serde_json::from_str(forward.params.get()) else { return Ok(()) };
        let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": mode_id});
        self.session.summary.lock().mode = Some(mode_id);
        self.stage_update(forward.connection, &update)
    }

    // CONF-13: the response has all options, and an agent need not report them once more.
    fn stage_options(&mut self, forward: &Forward, result: &RawValue) -> Result<(), Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Changed {
            config_options: Box<RawValue>,
        }
        let Ok(Changed { config_options }) = serde_json::from_str(result.get()) else { return Ok(()) };
        let update = json!({"sessionUpdate": "config_option_update", "configOptions": config_options});
        self.session.summary.lock().options = Some(config_options);
        self.stage_update(forward.connection, &update)
    }

    /// Stages an update of the hub for all connections but one.
    fn stage_update(&mut self, but: u64, update: &serde_json::Value) -> Result<(), Error> {
        let params = json!({"sessionId": self.session.id(), "update": update});
        self.stage_notice(but, &message::notification("session/update", &params))
    }
}

/// The content blocks of a prompt, undecoded.
fn blocks(params: &RawValue) -> Vec<Box<RawValue>> {
    #[derive(Deserialize)]
    struct Prompt {
        prompt: Vec<Box<RawValue>>,
    }
    serde_json::from_str::<Prompt>(params.get()).map(|prompt| prompt.prompt).unwrap_or_default()
}
