//! Rules that decide before people, and the providers that they guard.

use attache_conn::rpc::{ErrorObject, Id};
use attache_host::policy::{self, Answer};
use serde_json::json;

use super::task::Task;
use crate::entry::{Decision, Question};
use crate::message::{self, Outcome};
use crate::provision::{self, chosen};
use crate::questions::{Asker, cancelled};

/// Questions whose effects the policy remembers until they are answered.
const JUDGED: usize = 256;

impl Task {
    /// The decision of the rules; gives the asker back if a person has to decide.
    pub(super) fn judge(
        &mut self,
        question: &Question,
        asker: Asker,
    ) -> std::result::Result<(Asker, Decision), Asker> {
        let (Some(provision), Asker::Agent(_)) = (&self.provision, &asker) else { return Err(asker) };
        let request = match question.method.as_str() {
            "session/request_permission" => {
                provision::permission(&question.params, &self.session.opened.agent_session)
            }
            _ => None,
        };
        let Some(request) = request else { return Err(asker) };
        let outcome = match provision.policy().decide(&request) {
            policy::Decision::Ask(asked) => {
                // An agent may ask without end.
                if self.judged.len() < JUDGED {
                    self.judged.insert(question.question.clone(), (request, asked));
                }
                return Err(asker);
            }
            policy::Decision::Choose(selected) => {
                Outcome::result(&json!({"outcome": {"outcome": "selected", "optionId": selected.option}}))
            }
            _ => cancelled(question),
        };
        let (by, from, rule) = (None, None, "rules".to_owned());
        let decision = Decision { question: question.question.clone(), outcome, by, from, rule };
        Ok((asker, decision))
    }

    /// Lets the agent do what a person has allowed.
    pub(super) fn grant(&mut self, decision: &Decision) {
        let judged = self.judged.remove(&decision.question);
        if let (Some((request, question)), Some(provision)) = (judged, &self.provision)
            && let Some(option) = chosen(&decision.outcome)
        {
            // An option that was not offered is no answer, so this does not fail.
            let _ = provision.policy().answer(&request, &question, &Answer::Offered(option.into()));
        }
    }

    pub(super) fn pass_to_providers(&mut self, id: &Id, line: &[u8]) {
        if !self.providers.as_ref().is_some_and(|providers| providers.send(line)) {
            let refusal = Outcome::error(&ErrorObject::internal("too many requests wait"));
            self.send(message::response(id, &refusal));
        }
    }
}
