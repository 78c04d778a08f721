//! The tool calls of one response: permission, work, results.
//!
//! Read-only calls next to each other run in parallel; every other call runs alone, in the order of
//! the response.

use std::sync::Arc;

use attache::agent::{Tool as Call, ToolChange, ToolStatus};
use attache::wire::v1::ToolKind;
use serde_json::Value;
use tokio::task::JoinSet;
use tracing::Instrument as _;

use super::TurnContext;
use super::model_stream::RequestedCall;
use crate::model::{Part, text_of};
use crate::tools::{AnyTool, Arguments, Job, Output, Progress, Result, ToolError, ToolInfo, permission};

/// Runs the calls and returns one result for each, in order.
pub(super) async fn run(cx: &TurnContext, calls: Vec<RequestedCall>) -> Vec<Part> {
    let mut results = Vec::with_capacity(calls.len());
    let mut calls = calls.into_iter().peekable();
    while let Some(first) = calls.next() {
        let mut group = vec![first];
        if is_read_only(cx, &group[0]) {
            while let Some(next) = calls.next_if(|next| is_read_only(cx, next)) {
                group.push(next);
            }
        }
        results.extend(run_parallel(cx, group).await);
    }
    results
}

fn is_read_only(cx: &TurnContext, requested: &RequestedCall) -> bool {
    let tool = requested.call.as_ref().ok().and_then(|call| cx.tools.get(&call.name));
    tool.is_some_and(|(info, _)| info.is_read_only())
}

/// Runs each call in a task of its own, so that a panic fails one call and not the turn.
async fn run_parallel(cx: &TurnContext, group: Vec<RequestedCall>) -> Vec<Part> {
    let ids: Vec<String> = group.iter().map(id).collect();
    let mut tasks = JoinSet::new();
    for (at, requested) in group.into_iter().enumerate() {
        let cx = cx.clone();
        let name = requested.call.as_ref().map_or_else(|call| &call.name, |call| &call.name).clone();
        let span = tracing::info_span!("tool_call", tool = name);
        tasks.spawn(async move { (at, run_one(&cx, requested).await) }.instrument(span));
    }
    let mut done: Vec<Option<Part>> = ids.iter().map(|_| None).collect();
    while let Some(joined) = tasks.join_next().await {
        match joined {
            Ok((at, part)) => done[at] = Some(part),
            Err(error) => tracing::error!(%error, "a tool panicked"),
        }
    }
    let failed = |id| result(id, Err("the tool failed with an internal error; try something else".into()));
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

/// One call, from its arguments to its result. The model and the client learn about every failure.
async fn run_one(cx: &TurnContext, requested: RequestedCall) -> Part {
    let id = id(&requested);
    let report = requested.report.clone();
    let outcome = attempt(cx, requested).await;
    if let Err(error) = &outcome {
        tracing::debug!(%error, "the tool call failed");
    }
    if let Some(report) = report {
        report_end(cx, &report, &outcome).await;
    }
    result(id, outcome)
}

/// TOOL-10: completed or failed, with the output. CANCEL-07: also when the turn was cancelled.
async fn report_end(cx: &TurnContext, report: &Call, outcome: &Result<Output>) {
    let mut change = report.change();
    let failed = match outcome {
        Ok(output) => {
            if let Some(content) = &output.content {
                change = change.content(content.clone());
            }
            if let Some(locations) = &output.locations {
                change = change.locations(locations.clone());
            }
            // TOOL-19: the text for the model, unless the tool has an output for programs.
            let raw = output.raw.clone().unwrap_or_else(|| text_of(&output.parts).into());
            change = change.raw_output(raw);
            output.failed
        }
        Err(error) => {
            // A denied or cancelled call keeps showing what the user has just read.
            let failed = !matches!(error, ToolError::Denied | ToolError::Cancelled);
            if failed {
                change = change.content([error.to_string().into()]);
            }
            change = change.raw_output(Value::from(error.to_string()));
            true
        }
    };
    cx.session.reporter.end_tool(report, change, failed).await;
}

async fn attempt(cx: &TurnContext, requested: RequestedCall) -> Result<Output> {
    let turn = cx.turn.turn();
    let progress = Progress { call: requested.report.clone(), session: cx.session.clone() };
    let job = turn.until_cancelled(permitted(cx, requested)).await??;
    let handles_cancel = job.handles_cancel;
    let work = (job.work)(cx.tool.clone(), progress);
    if handles_cancel {
        return work.await;
    }
    turn.until_cancelled(work).await?
}

/// Prepares a job and asks for permission.
async fn permitted(cx: &TurnContext, requested: RequestedCall) -> Result<Job> {
    let RequestedCall { call, report } = requested;
    let call = call.map_err(|invalid| format!("{}; call it again", invalid.why))?;
    let (info, tool) = find(cx, &call.name)?;
    let arguments = Arguments::new(&call.arguments)?;
    let job = tool.prepare(cx, &arguments).await?;
    if let Some(report) = &report {
        cx.session.reporter.update_tool(report, describe(info.kind, &job, &call.arguments)).await?;
    }
    permission::request(cx, report.as_deref(), &job.effects).await?;
    if let Some(report) = &report {
        // TOOL-08
        let change = report.change().status(ToolStatus::InProgress);
        cx.session.reporter.update_tool(report, change).await?;
    }
    Ok(job)
}

fn find<'a>(cx: &'a TurnContext, name: &str) -> Result<&'a (ToolInfo, Arc<dyn AnyTool>)> {
    let mode = cx.session.conversation().mode;
    match cx.tools.get(name) {
        Some(found) if found.0.is_available_in(mode) => Ok(found),
        Some(_) => Err(format!("`{name}` cannot be used in {mode} mode").into()),
        None => {
            let names: Vec<String> = cx.tools.specs(mode).into_iter().map(|spec| spec.name).collect();
            Err(format!("no tool `{name}`; available: {}", names.join(", ")).into())
        }
    }
}

/// The prepared call as the client sees it before the permission.
fn describe(kind: ToolKind, job: &Job, arguments: &Value) -> ToolChange {
    let input = attache::Json::from(arguments.clone());
    let mut change = ToolChange::new().title(job.title.clone()).kind(kind).raw_input(input);
    if !job.locations.is_empty() {
        change = change.locations(job.locations.clone());
    }
    if !job.content.is_empty() {
        change = change.content(job.content.clone());
    }
    change
}
