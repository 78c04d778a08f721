//! The tool calls of one response: permission, work, results.
//!
//! Read-only calls next to each other run in parallel; every other call runs alone, in the order of
//! the response.

use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::call::report_end;
use super::model_stream::RequestedCall;
use super::repeats::{CallKey, Repeats};
use super::{TurnContext, call, hooks};
use crate::model::{Part, text_of};
use crate::state::MAX_RESULT;
use crate::text::head_and_tail;
use crate::tools::{Output, Result, ToolError};

/// The least bytes of a result of one of many calls.
const MIN_RESULT: usize = 256;

/// Runs the calls and returns one result for each, in order. `limit` is for the bytes of all
/// results together.
pub(super) async fn run(
    cx: &TurnContext,
    calls: Vec<RequestedCall>,
    repeats: &mut Repeats,
    limit: usize,
) -> Vec<Part> {
    let mut cx = cx.clone();
    cx.tool.result_limit = (limit / calls.len().max(1)).clamp(MIN_RESULT, MAX_RESULT);
    let cx = &cx;
    let mut results = Vec::with_capacity(calls.len());
    let with_key = |call: RequestedCall| (CallKey::new(cx, &call), call);
    let mut calls = calls.into_iter().map(with_key).peekable();
    while let Some((key, first)) = calls.next() {
        if let Some(result) = repeats.known(&key, &id(&first)) {
            report_known(cx, &first, &result).await;
            results.push(result);
            continue;
        }
        let (mut keys, mut group) = (vec![key], vec![first]);
        if is_read_only(cx, &group[0]) {
            let next_read =
                |(key, next): &(CallKey, RequestedCall)| is_read_only(cx, next) && !repeats.is_known(key);
            while let Some((key, next)) = calls.next_if(next_read) {
                keys.push(key);
                group.push(next);
            }
        }
        for (key, (mut result, may_repeat)) in keys.into_iter().zip(run_parallel(cx, group).await) {
            if !may_repeat {
                repeats.record(&key, &mut result);
            }
            results.push(result);
        }
    }
    results
}

/// Reports a call that was not run again, with the result of the earlier one.
async fn report_known(cx: &TurnContext, requested: &RequestedCall, result: &Part) {
    if let (Some(report), Part::Result { parts, failed, .. }) = (&requested.report, result) {
        let outcome = Output { failed: *failed, ..Output::visible(text_of(parts)) };
        report_end(cx, report, &Ok(outcome)).await;
    }
}

fn is_read_only(cx: &TurnContext, requested: &RequestedCall) -> bool {
    let tool = requested.call.as_ref().ok().and_then(|call| cx.tools.get(&call.name));
    tool.is_some_and(|(info, _)| info.is_read_only())
}

/// Runs each call in a task of its own, so that a panic fails one call and not the turn. Returns
/// the results, and whether the same call may have another result now.
async fn run_parallel(cx: &TurnContext, group: Vec<RequestedCall>) -> Vec<(Part, bool)> {
    let ids: Vec<String> = group.iter().map(id).collect();
    let mut tasks = JoinSet::new();
    for (at, requested) in group.into_iter().enumerate() {
        let cx = cx.clone();
        let name = requested.call.as_ref().map_or_else(|call| &call.name, |call| &call.name).clone();
        let span = tracing::info_span!("tool_call", tool = name);
        tasks.spawn(async move { (at, run_for_model(&cx, requested).await) }.instrument(span));
    }
    let mut done: Vec<Option<(Part, bool)>> = ids.iter().map(|_| None).collect();
    while let Some(joined) = tasks.join_next().await {
        match joined {
            Ok((at, part)) => done[at] = Some(part),
            Err(error) => tracing::error!(%error, "a tool panicked"),
        }
    }
    let failed =
        |id| (result(id, Err("the tool failed with an internal error; try something else".into())), false);
    ids.into_iter().zip(done).map(|(id, part)| part.unwrap_or_else(|| failed(id))).collect()
}

/// Results for calls that are not run.
pub(super) async fn skip(cx: &TurnContext, calls: Vec<RequestedCall>, why: &str) -> Vec<Part> {
    let mut results = Vec::with_capacity(calls.len());
    for requested in calls {
        let outcome = Err(why.into());
        if let Some(report) = &requested.report {
            report_end(cx, report, &outcome).await;
        }
        results.push(result(id(&requested), outcome));
    }
    results
}

fn id(requested: &RequestedCall) -> String {
    requested.call.as_ref().map_or_else(|invalid| &invalid.id, |call| &call.id).clone()
}

fn result(call: String, outcome: Result<Output>) -> Part {
    match outcome {
        Ok(output) => Part::Result { call, parts: output.parts, failed: output.failed },
        Err(error) => Part::Result { call, parts: vec![Part::Text(error.to_string())], failed: true },
    }
}

/// One call, from its arguments to its result, and whether the same call may have another result
/// now.
async fn run_for_model(cx: &TurnContext, requested: RequestedCall) -> (Part, bool) {
    let id = id(&requested);
    let outcome = hooked(cx, requested).await;
    let may_repeat = matches!(outcome, Err(ToolError::Again(_)));
    (result(id, outcome.map(|output| shortened(cx, output))), may_repeat)
}

/// One call with the hooks before and after it.
async fn hooked(cx: &TurnContext, requested: RequestedCall) -> Result<Output> {
    let Some(hooked) = hooks::HookedCall::new(cx, &requested) else { return call::run(cx, requested).await };
    if let Err(error) = hooked.before(cx).await {
        let outcome = Err(error);
        if let Some(report) = &requested.report {
            report_end(cx, report, &outcome).await;
        }
        return outcome;
    }
    let mut output = call::run(cx, requested).await?;
    if !output.failed {
        output.parts.extend(hooked.after(cx).await?.map(Part::Text));
    }
    Ok(output)
}

/// The output with texts that leave room in the model's window.
fn shortened(cx: &TurnContext, mut output: Output) -> Output {
    let limit = cx.result_limit;
    for part in &mut output.parts {
        if let Part::Text(text) = part {
            *text = head_and_tail(text, limit + limit / 8);
        }
    }
    output
}
