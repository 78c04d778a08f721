//! The loop: ask the model, run its tool calls, add their results, until it makes no more calls.

use std::sync::Arc;

use attache::wire::v1::{Cost, SessionUpdate, UsageUpdate};
use attache::{Error, ErrorObject, Result, StopReason, code};

use super::diagnostics::Diagnostics;
use super::hooks::TurnEnd;
use super::model_stream::{self, Interruption, RequestedCall};
use super::repeats::Repeats;
use super::{TurnContext, compact, say, system_prompt, tool_calls};
use crate::model::{ErrorKind, Message, Model, ModelError, Request, Response, Stop, Thinking, Usage};
use crate::state::SessionState;

/// The message to the model after an empty answer.
const NUDGE: &str = "[Your answer was empty. Say what you did and found, or call a tool.]";

/// How many compactions may follow each other without a new call between them.
const MAX_IDLE_COMPACTIONS: u32 = 2;

/// Runs the turn and adds up its usage.
pub(super) async fn run(cx: &TurnContext, model: Arc<dyn Model>, usage: &mut Usage) -> Result<StopReason> {
    let limits = cx.session.agent.options.limits;
    let mut compacted = false;
    let mut nudged = false;
    let mut repeats = Repeats::default();
    let mut diagnostics = Diagnostics::new(cx);
    let mut turn_end = TurnEnd::new(cx);
    // Compactions without a new call before them.
    let mut idle_compactions = 0;
    for step in 0..limits.steps {
        // The user may choose another model during the turn.
        let model = cx.session.model().unwrap_or_else(|| model.clone());
        if model.info().has_small_window() {
            cx.session.prepare_listing().await;
        }
        if compact::is_due(cx, model.info()) {
            if repeats.compacted() || step == 0 {
                idle_compactions = 0;
            } else {
                idle_compactions += 1;
            }
            if idle_compactions >= MAX_IDLE_COMPACTIONS {
                return Err(compact::no_progress(model.info()));
            }
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
                repeats.compacted();
                compact::run(cx, model.as_ref(), "", usage).await?;
                continue;
            }
            Err(Interruption::Model(error)) => return fail(cx, error).await,
        };
        if calls.is_empty()
            && response.stop == Some(Stop::Done)
            && response.message().text().trim().is_empty()
        {
            if std::mem::replace(&mut nudged, true) {
                return fail(cx, ModelError::protocol("the model returned an empty answer twice")).await;
            }
            cx.session.add_message(Message::user(NUDGE))?;
            continue;
        }
        if let Some(stop) = stop_reason(cx, &response, &calls).await? {
            skip(cx, calls, stop).await?;
            if stop == StopReason::EndTurn
                && let Some(report) = turn_end.run(cx).await?
            {
                cx.session.add_message(Message::user(report))?;
                continue;
            }
            return if cx.turn.turn().is_cancelled() { Err(Error::Cancelled) } else { Ok(stop) };
        }
        let edits = diagnostics.edits(cx, &calls);
        let mut results = tool_calls::run(cx, calls, &mut repeats, compact::room(cx, model.info())).await;
        results.extend(diagnostics.run(cx, &edits, &results).await?);
        *usage += std::mem::take(&mut cx.session.conversation().task_usage);
        cx.session.add_message(Message::from_user(results))?;
        if cx.turn.turn().is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some(why) = repeats.stuck() {
            say(cx, &format!("\n(The turn ends: {why}.)")).await?;
            return Ok(StopReason::MaxTurnRequests);
        }
        if limits.output_tokens.is_some_and(|most| usage.output >= most) {
            return Ok(StopReason::MaxTokens);
        }
    }
    Ok(StopReason::MaxTurnRequests)
}

/// The next request of the session.
pub(super) fn request(cx: &TurnContext) -> Request {
    let session = &cx.session;
    let conversation = session.conversation();
    let info = conversation.model.as_ref().map(|model| model.info());
    let has_tools = info.is_none_or(|info| info.tools);
    let can_think = info.is_none_or(|info| info.thinking);
    Request {
        system: system_prompt::text(session, conversation.mode, info),
        messages: conversation.messages.clone(),
        tools: if has_tools { cx.tools.specs(conversation.mode, info) } else { Vec::new() },
        thinking: if can_think { conversation.thinking } else { Thinking::Off },
        max_output: None,
        temperature: None,
        web_search: has_tools,
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

/// A failure of the model is an error of the prompt, with advice for the user. The
/// session continues.
// PROMPT-20
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

/// Adds tokens and their cost to those of the session.
pub(super) fn add_usage(session: &SessionState, model: &dyn Model, spent: Usage) {
    if spent == Usage::default() {
        return;
    }
    let mut conversation = session.conversation();
    conversation.total_usage += spent;
    let price = model.info().price;
    conversation.cost = conversation.cost.zip(price).map(|(cost, price)| cost + price.of(&spent));
}

/// Adds up the usage of a response, and reports the window's fill level and the session's cost.
// MSG-05
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
        add_usage(&cx.session, model, spent);
        let mut conversation = cx.session.conversation();
        conversation.used = spent.context() + spent.output;
        conversation.last_usage = spent;
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
