//! Scenarios of version 2: prompts that are answered at once, states, resuming with replay.

mod cancel;
mod requests;
mod sessions;
mod turns;

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::is_question;
use crate::judge::Message;
use crate::prompts::PromptKind;
use crate::stage::Id;
use crate::{Scenario, Stage, Step, Stop};

/// The scenarios, in the order in which they run.
pub(super) fn scenarios() -> Vec<Scenario> {
    [requests::SCENARIOS, turns::SCENARIOS, cancel::SCENARIOS, sessions::SCENARIOS].concat()
}

/// The updates of a session since `mark`, each with its kind.
fn updates<'a>(
    stage: &'a Stage,
    session: &'a str,
    mark: usize,
) -> impl Iterator<Item = (&'a Rc<Message>, &'a str, &'a Value)> {
    stage.received(mark).iter().filter_map(move |message| {
        let (of, kind, update) = message.update()?;
        (of == session).then_some((message, kind, update))
    })
}

/// The states of a session since `mark`.
fn states<'a>(stage: &'a Stage, session: &'a str, mark: usize) -> impl Iterator<Item = &'a str> {
    updates(stage, session, mark)
        .filter(|(_, kind, _)| *kind == "state_update")
        .map(|(_, _, update)| update["state"].as_str().unwrap_or_default())
}

/// A turn that waits for a permission which the scenario holds back.
struct Asking {
    session: String,
    prompt: Id,
    question: Rc<Message>,
    /// The first message of the turn.
    mark: usize,
}

/// Opens a session and brings the agent to ask for a permission.
async fn asking(stage: &mut Stage) -> Result<Asking, Stop> {
    let session = super::begin(stage).await?;
    stage.services.hold("session/request_permission");
    let mark = stage.mark();
    let prompt = stage.prompt(&session, PromptKind::Ask).await?;
    match stage.during(&prompt, is_question).await? {
        Some(question) => Ok(Asking { session, prompt, question, mark }),
        None => super::unseen("the agent asked for no permission"),
    }
}

impl Asking {
    /// Answers the question with this outcome.
    async fn answer(&self, stage: &mut Stage, outcome: Value) -> Step {
        let id = self.question.id().cloned().unwrap_or_default();
        stage.answer(&id, json!({ "outcome": outcome })).await
    }

    /// Answers with the first option that allows.
    async fn allow(&self, stage: &mut Stage) -> Step {
        let options = self.question.params()["options"].as_array().cloned().unwrap_or_default();
        let allows = |option: &&Value| option["kind"].as_str().is_some_and(|kind| kind.starts_with("allow"));
        match options.iter().find(allows) {
            Some(option) => {
                let outcome = json!({ "outcome": "selected", "optionId": option["optionId"] });
                self.answer(stage, outcome).await
            }
            None => super::unseen("the question has no option that allows"),
        }
    }
}

/// Waits for the idle state that ends the work of a session; `None` if it does not come.
async fn idle(stage: &mut Stage, prompt: &Id) -> Result<Option<Value>, Stop> {
    let until = stage.deadline();
    let ended = tokio::time::timeout(until * 2, stage.end_of(prompt)).await;
    match ended {
        Ok(Ok(Ok(result))) => Ok(Some(result["stopReason"].clone())),
        Ok(Ok(Err(error))) => {
            Err(Stop::NotExercised(format!("the prompt was refused: {} {}", error.code, error.message)))
        }
        Ok(Err(Stop::Deadline(_))) | Err(_) => {
            stage.deadline_passed();
            Ok(None)
        }
        Ok(Err(stop)) => Err(stop),
    }
}

/// A moment in which late messages come.
const MOMENT: Duration = Duration::from_millis(500);
