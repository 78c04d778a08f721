//! Lines of the agent.

use attache_conn::rpc::{ErrorObject, Frame, Id};
use attache_journal::Error;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tracing::debug;

use super::history::{Setting, setting_of};
use super::task::{Pending, Task, cancelled_id};
use crate::entry::{self, Question, kind};
use crate::message::{self, DEPTH, Outcome, SessionParams};
#[cfg(unix)]
use crate::providers::is_provided;
use crate::questions::{Asker, is_question};

impl Task {
    /// Handles a line of the agent.
    pub(super) fn on_line(&mut self, line: &[u8]) -> Result<(), Error> {
        match Frame::parse(line, DEPTH) {
            Frame::Notification { method, params } if method == "$/cancel_request" => {
                let withdrawn =
                    cancelled_id(params).and_then(|id| self.session.questions.lock().withdraw(&id));
                self.decide(withdrawn.into_iter().collect())?;
                #[cfg(unix)]
                if let Some(providers) = &self.providers {
                    providers.send(line);
                }
            }
            Frame::Notification { method, params } => match self.session_of(params) {
                Of::This => self.stage_line(line)?,
                Of::Renamed(params) => {
                    let line = message::notification(&method, &params);
                    self.stage_line(line.trim_ascii_end())?;
                }
                Of::None => self.stage_notice(entry::NO_SESSION, &[line, b"\n"].concat())?,
                Of::Other => debug!("a message of another session was skipped"),
            },
            Frame::Request { id, method, params } if is_question(&method) => {
                let params = match (self.session_of(params), params) {
                    (Of::Renamed(renamed), _) => renamed,
                    (_, Some(params)) => params.to_owned(),
                    (_, None) => RawValue::NULL.to_owned(),
                };
                self.ask(method.into_owned(), params, Asker::Agent(id))?;
            }
            #[cfg(unix)]
            Frame::Request { id, method, .. } if is_provided(&method) && self.providers.is_some() => {
                self.pass_to_providers(&id, line);
            }
            Frame::Request { id, method, .. } => {
                let refusal = Outcome::error(&ErrorObject::method_not_found(&method));
                self.send(message::response(&id, &refusal));
            }
            Frame::Response { id: Id::Int(id), outcome } => {
                let pending = self.agent.as_mut().and_then(|agent| agent.pending.remove(&id));
                let outcome = Outcome::of(outcome);
                self.used = Instant::now();
                match pending {
                    Some(Pending::Prompt) => self.end_turn(outcome, false)?,
                    Some(Pending::Forward(forward)) => self.stage_response(&forward, outcome)?,
                    None => debug!("a response without a request was skipped"),
                }
            }
            Frame::Malformed(malformed) => {
                if let Some((id, error)) = malformed.answer {
                    self.send(message::response(&id, &Outcome::error(&error)));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Stages a question, and its decision if the rules decide it.
    pub(super) fn ask(&mut self, method: String, params: Box<RawValue>, asker: Asker) -> Result<(), Error> {
        self.questions_asked += 1;
        let question = format!("{}-{}", self.session.epoch(), self.questions_asked);
        let question = Question { question, method, params };
        let seq = self.log.stage(kind::QUESTION, &entry::encode(&question))?;
        self.cx.metrics.questions.add(1);
        #[cfg(unix)]
        let asker = match self.judge(&question, asker) {
            Ok(decided) => return self.decide(vec![decided]),
            Err(asker) => asker,
        };
        let prompter = self.turn.as_ref().map(|turn| turn.by.clone());
        self.session.questions.lock().add(question, seq, asker, prompter);
        Ok(())
    }

    /// The session that a message of the agent is about.
    fn session_of(&self, params: Option<&RawValue>) -> Of {
        let Some(params) = params else { return Of::None };
        let (own, agents) = (self.session.id(), self.session.opened.agent_session.as_str());
        // The usual form, and the usual id.
        let usual = params.get().strip_prefix(r#"{"sessionId":""#).and_then(|rest| rest.strip_prefix(agents));
        if own == agents && usual.is_some_and(|rest| rest.starts_with('"')) {
            return Of::This;
        }
        match SessionParams::read(Some(params)).session() {
            None => Of::None,
            Some(id) if id != agents => Of::Other,
            Some(_) if own == agents => Of::This,
            Some(_) => Of::Renamed(message::with_session(params, own)),
        }
    }

    fn stage_line(&mut self, line: &[u8]) -> Result<(), Error> {
        match setting_of(line) {
            Some(Setting::Mode(mode)) => self.session.summary.lock().mode = Some(mode),
            Some(Setting::Options(options)) => self.session.summary.lock().options = Some(options),
            None => {}
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(line);
        self.scratch.push(b'\n');
        self.log.stage(kind::LINE, &self.scratch)?;
        Ok(())
    }
}

/// The session that a message is about.
enum Of {
    This,
    /// This one, whose id clients know in another form.
    Renamed(Box<RawValue>),
    /// None: it is about the connection, and this session has it alone.
    None,
    Other,
}
