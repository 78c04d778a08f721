//! The loop: ask the model, run its tool calls, add their results, until it makes no more calls.

use std::sync::Arc;

use attache::wire::v1::{Cost, SessionUpdate, UsageUpdate};
use attache::{Error, ErrorObject, Result, StopReason, code};

use super::model_stream::{self, Interruption, RequestedCall};
use super::{TurnContext, compact, say, system_prompt, tool_calls};
use crate::model::{ErrorKind, Message, Model, ModelError, Request, Response, Stop, Thinking, Usage};

/// Runs the turn and adds up its usage.
pub(super) async fn run(cx: &TurnContext, model: Arc<dyn Model>, usage: &mut Usage) -> Result<StopReason> {
    let limits = cx.session.agent.options.limits;
    let mut compacted = false;
    for _ in 0..limits.steps {
        // The user may choose another model during the turn.
        let model = cx.session.model().unwrap_or_else(|| model.clone());
        if compact::is_due(&cx.session, model.info()) {
            compact::run(cx, model.as_ref(), "", usage).await?;
        }
        let mut response = Response::default();
        let asked = model_stream::ask(cx, model.as_ref(), request(cx), &mut response).await;
        count(cx, model.as_ref(), &response, usage).await?;
        let calls = match asked {
            Ok(calls) => calls,
            Err(Interruption::Local(error)) => return Err(error),
            // The provider knows its window best. Compacting twice would not help.
            Err(Interruption::Model(error)) if error.kind == ErrorKind::TooLong && !compacted => {
                compacted = true;
                compact::run(cx, model.as_ref(), "", usage).await?;
                continue;
            }
            Err(Interruption::Model(error)) => return fail(cx, error).await,
        };
        if let Some(stop) = stop_reason(cx, &response, &calls).await? {
            skip(cx, calls, stop).await?;
            return Ok(stop);
        }
        let results = tool_calls::run(cx, calls).await;
        cx.session.add_message(Message::from_user(results))?;
        if cx.turn.turn().is_cancelled() {
            return Err(Error::Cancelled);
        }
        if limits.output_tokens.is_some_and(|most| usage.output >= most) {
            return Ok(StopReason::MaxTokens);
        }
    }
    Ok(StopReason::MaxTurnRequests)
}

fn request(cx: &TurnContext) -> Request {
    let session = &cx.session;
    let conversation = session.conversation();
    let info = conversation.model.as_ref().map(|model| model.info());
    let has_tools = info.is_none_or(|info| info.tools);
    let can_think = info.is_none_or(|info| info.thinking);
    Request {
        system: system_prompt::text(session, conversation.mode),
        messages: conversation.messages.clone(),
        tools: if has_tools { cx.tools.specs(conversation.mode) } else { Vec::new() },
        thinking: if can_think { conversation.thinking } else { Thinking::Off },
        max_output: None,
        cache_key: Some(session.id().to_owned()),
    }
}

/// Why the turn ends with this response; `None` if it continues.
async fn stop_reason(
    cx: &TurnContext,
    response: &Response,
    calls: &[RequestedCall],
) -> Result<Option<StopReason>> {
    Ok(match &response.stop {
        Some(Stop::MaxTokens) => Some(StopReason::MaxTokens),
        Some(Stop::Refused) => Some(StopReason::Refusal),
        // Some providers report the end of the turn although they wait for results.
        _ if !calls.is_empty() => None,
        Some(Stop::Other(why)) => Some(say(cx, &format!("\n(the model stopped: {why})")).await?),
        _ => Some(StopReason::EndTurn),
    })
}

/// Adds results for the calls of a response that ended the turn; they are not run.
async fn skip(cx: &TurnContext, calls: Vec<RequestedCall>, stop: StopReason) -> Result<()> {
    if calls.is_empty() {
        return Ok(());
    }
    let results = tool_calls::skip(cx, calls, &format!("not run: the response ended with {stop}")).await;
    cx.session.add_message(Message::from_user(results))
}

/// PROMPT-20: a failure of the model is an error of the prompt, with advice for the user. The
/// session continues.
async fn fail(cx: &TurnContext, error: ModelError) -> Result<StopReason> {
    let code = match error.kind {
        ErrorKind::Refused => {
            say(cx, &format!("The provider refused: {}", error.message)).await?;
            return Ok(StopReason::Refusal);
        }
        ErrorKind::Auth => code::AUTH_REQUIRED,
        _ => code::INTERNAL_ERROR,
    };
    Err(Error::Refused(ErrorObject::new(code, error.to_string())))
}

/// Adds up the usage of a response, and reports the window's fill level and the session's cost
/// (MSG-05).
pub(super) async fn count(
    cx: &TurnContext,
    model: &dyn Model,
    response: &Response,
    usage: &mut Usage,
) -> Result<()> {
    let spent = response.usage;
    *usage += spent;
    if spent == Usage::default() {
        return Ok(());
    }
    let (used, cost) = {
        let mut conversation = cx.session.conversation();
        conversation.used = spent.context() + spent.output;
        let price = model.info().price;
        conversation.cost = conversation.cost.zip(price).map(|(cost, price)| cost + price.of(&spent));
        (conversation.used, conversation.cost)
    };
    let cost = cost.map(|cost| Cost::new(cost, "USD"));
    let update = UsageUpdate::new(used, model.info().window).cost(cost);
    match cx.session.reporter.send(cx.turn.turn(), SessionUpdate::UsageUpdate(update)).await {
        // The tokens were used even if the turn is cancelled.
        Err(Error::Cancelled) => Ok(()),
        sent => sent,
    }
}
