//! The loop: ask the model, run its calls, tell it the results, until it makes no more calls.

use std::sync::Arc;

use attache::wire::v1::{Cost, SessionUpdate, UsageUpdate};
use attache::{Error, ErrorObject, Result, StopReason, code};

use super::answer::{self, Called, Cut};
use super::{calls, compact, say, system};
use crate::model::{Answer, Message, Model, ModelError, Request, Role, Stop, Thinking, Usage};
use crate::tools::Cx;

/// Runs the turn. What was used is added to `usage`.
pub(super) async fn run(cx: &Cx, model: Arc<dyn Model>, usage: &mut Usage) -> Result<StopReason> {
    let limits = cx.live.house.options.limits;
    let mut compacted = false;
    for _ in 0..limits.steps {
        // The user may choose another model in the middle of a turn.
        let model = cx.live.model().unwrap_or_else(|| model.clone());
        if compact::is_due(&cx.live, model.info()) {
            compact::run(cx, model.as_ref(), "", usage).await?;
        }
        let mut answer = Answer::default();
        let asked = answer::ask(cx, model.as_ref(), request(cx), &mut answer).await;
        count(cx, model.as_ref(), &answer, usage).await?;
        let called = match asked {
            Ok(called) => called,
            Err(Cut::Here(error)) => return Err(error),
            // The provider knows its window better than we do. Once is enough: else it would never end.
            Err(Cut::Model(ModelError::TooLong(_))) if !compacted => {
                compacted = true;
                compact::run(cx, model.as_ref(), "", usage).await?;
                continue;
            }
            Err(Cut::Model(error)) => return failed(cx, error).await,
        };
        if let Some(stop) = ended(cx, &answer, &called).await? {
            close(cx, called, stop).await?;
            return Ok(stop);
        }
        let parts = calls::run(cx, called).await;
        cx.live.remember(Message { role: Role::User, parts })?;
        if cx.turn.turn().is_cancelled() {
            return Err(Error::Cancelled);
        }
        if limits.output_tokens.is_some_and(|most| usage.output >= most) {
            return Ok(StopReason::MaxTokens);
        }
    }
    Ok(StopReason::MaxTurnRequests)
}

fn request(cx: &Cx) -> Request {
    let live = &cx.live;
    let state = live.state();
    let info = state.model.as_ref().map(|model| model.info().clone());
    let has_tools = info.as_ref().is_none_or(|info| info.tools);
    let can_think = info.as_ref().is_none_or(|info| info.thinking);
    Request {
        system: system::prompt(live, state.mode),
        messages: state.context.clone(),
        tools: if has_tools { state.tools.specs(state.mode) } else { Vec::new() },
        thinking: if can_think { state.thinking } else { Thinking::Off },
        max_output: None,
        cache_key: Some(live.id().to_owned()),
    }
}

/// Whether the turn ends with this answer.
async fn ended(cx: &Cx, answer: &Answer, called: &[Called]) -> Result<Option<StopReason>> {
    Ok(match &answer.stop {
        Some(Stop::MaxTokens) => Some(StopReason::MaxTokens),
        Some(Stop::Refused) => Some(StopReason::Refusal),
        // Some providers say that they are done when they wait for results.
        _ if !called.is_empty() => None,
        Some(Stop::Other(why)) => {
            say(cx, &format!("\n(the model stopped: {why})")).await?;
            Some(StopReason::EndTurn)
        }
        _ => Some(StopReason::EndTurn),
    })
}

/// Calls of an answer that ended the turn are not run; they get their results all the same.
async fn close(cx: &Cx, called: Vec<Called>, stop: StopReason) -> Result<()> {
    if called.is_empty() {
        return Ok(());
    }
    let parts = calls::give_up(cx, called, &format!("not run: the answer ended with {stop}")).await;
    cx.live.remember(Message { role: Role::User, parts })
}

/// PROMPT-20: a failure of the model is an error of the prompt, in words that say what to do. The session goes on.
async fn failed(cx: &Cx, error: ModelError) -> Result<StopReason> {
    let code = match &error {
        ModelError::Refused(why) => {
            say(cx, &format!("The provider refused: {why}")).await?;
            return Ok(StopReason::Refusal);
        }
        ModelError::Auth(_) => code::AUTH_REQUIRED,
        _ => code::INTERNAL_ERROR,
    };
    Err(Error::Refused(ErrorObject::new(code, error.to_string())))
}

/// Counts what an answer used, and tells how full the window is and what the session cost (MSG-05).
pub(super) async fn count(cx: &Cx, model: &dyn Model, answer: &Answer, usage: &mut Usage) -> Result<()> {
    let spent = answer.usage;
    *usage += spent;
    if spent == Usage::default() {
        return Ok(());
    }
    let (used, cost) = {
        let mut state = cx.live.state();
        state.used = spent.context() + spent.output;
        state.cost = match (state.cost, model.info().price) {
            (Some(cost), Some(price)) => Some(cost + price.of(&spent)),
            _ => None,
        };
        (state.used, state.cost)
    };
    let cost = cost.map(|cost| Cost::new(cost, "USD"));
    let update = UsageUpdate::new(used, model.info().window).cost(cost);
    match cx.live.voice.tell(cx.turn.turn(), SessionUpdate::UsageUpdate(update)).await {
        // What was used was used, also if the user does not want to know any more.
        Err(Error::Cancelled) => Ok(()),
        told => told,
    }
}
