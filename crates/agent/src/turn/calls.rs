//! The calls of one answer: permission, work, results.
//!
//! Calls that only look and stand next to each other run at the same time; every other call runs alone, in the order in which
//! the model made them.

use std::sync::Arc;

use attache::Result;
use attache::agent::Tool as Call;
use attache::wire::v1::{ToolCallStatus, ToolCallUpdate};
use serde_json::Value;
use tokio::task::JoinSet;

use super::answer::Called;
use super::permit::{DENIED, permit};
use crate::model::Part;
use crate::tools::{Arguments, CANCELLED, Cx, Job, Output, Progress, Tool};

/// Runs the calls and returns their results, one for each, in order.
pub(super) async fn run(cx: &Cx, called: Vec<Called>) -> Vec<Part> {
    let mut results = Vec::with_capacity(called.len());
    let mut calls = called.into_iter().peekable();
    while let Some(first) = calls.next() {
        let mut group = vec![first];
        if only_looks(cx, &group[0]) {
            while let Some(next) = calls.next_if(|next| only_looks(cx, next)) {
                group.push(next);
            }
        }
        results.extend(together(cx, group).await);
    }
    results
}

fn only_looks(cx: &Cx, called: &Called) -> bool {
    let state = cx.live.state();
    called.call.as_ref().is_ok_and(|call| state.tools.get(&call.name).is_some_and(|tool| tool.only_looks()))
}

/// Each in a task of its own, so that a panic costs one call and not the turn.
async fn together(cx: &Cx, group: Vec<Called>) -> Vec<Part> {
    let ids: Vec<String> = group.iter().map(id).collect();
    let mut tasks = JoinSet::new();
    for (at, called) in group.into_iter().enumerate() {
        let cx = cx.clone();
        tasks.spawn(async move { (at, one(&cx, called).await) });
    }
    let mut done: Vec<Option<Part>> = ids.iter().map(|_| None).collect();
    while let Some(joined) = tasks.join_next().await {
        if let Ok((at, part)) = joined {
            done[at] = Some(part);
        }
    }
    let failed = |(id, part): (String, Option<Part>)| {
        part.unwrap_or_else(|| result(id, Err("the tool failed inside; try something else".to_owned())))
    };
    ids.into_iter().zip(done).map(failed).collect()
}

/// Results for calls that are not run.
pub(super) async fn give_up(cx: &Cx, called: Vec<Called>, why: &str) -> Vec<Part> {
    let mut results = Vec::with_capacity(called.len());
    for called in called {
        let outcome = Err(why.to_owned());
        if let Some(report) = &called.report {
            end(cx, report, &outcome).await;
        }
        results.push(result(id(&called), outcome));
    }
    results
}

fn id(called: &Called) -> String {
    match &called.call {
        Ok(call) => call.id.clone(),
        Err(bad) => bad.id.clone(),
    }
}

fn result(call: String, outcome: Result<Output, String>) -> Part {
    match outcome {
        Ok(output) => Part::Result { call, parts: output.parts, failed: output.failed },
        Err(why) => Part::Result { call, parts: vec![Part::Text(why)], failed: true },
    }
}

/// One call, from its arguments to its result. Whatever goes wrong is told to the model and to the client.
async fn one(cx: &Cx, called: Called) -> Part {
    let id = id(&called);
    let report = called.report.clone();
    let outcome = attempt(cx, called).await;
    if let Some(report) = report {
        end(cx, &report, &outcome).await;
    }
    result(id, outcome)
}

/// TOOL-10: completed or failed, with what came out. CANCEL-07: also when the turn was cancelled.
async fn end(cx: &Cx, report: &Call, outcome: &Result<Output, String>) {
    let mut change = report.change();
    let failed = match outcome {
        Ok(output) => {
            change.content.clone_from(&output.content);
            change.locations.clone_from(&output.locations);
            // TOOL-19: what the model is told, unless the tool has something better for programs.
            let raw = output.raw.clone().unwrap_or_else(|| output.told().into());
            change.raw_output = Some(raw.into());
            output.failed
        }
        Err(why) => {
            // What was not allowed stays to be seen: the user has just read it.
            change.content = (why != DENIED).then(|| vec![why.as_str().into()]);
            change.raw_output = Some(Value::from(why.as_str()).into());
            true
        }
    };
    // If the client has gone there is nobody to tell.
    let _ = cx.live.voice.end(report, change, failed).await;
}

async fn attempt(cx: &Cx, called: Called) -> Result<Output, String> {
    let turn = cx.turn.turn();
    let cancelled = |_| CANCELLED.to_owned();
    let progress = Progress { call: called.report.clone(), live: cx.live.clone() };
    let job = turn.until_cancelled(permitted(cx, called)).await.map_err(cancelled)??;
    let finishes = job.finishes;
    let work = (job.work)(cx.clone(), progress);
    if finishes {
        return work.await;
    }
    turn.until_cancelled(work).await.map_err(cancelled)?
}

/// Prepares a job and asks for permission.
async fn permitted(cx: &Cx, called: Called) -> Result<Job, String> {
    let Called { call, report } = called;
    let call = call.map_err(|bad| format!("the arguments are no JSON object: {}; call it again", bad.why))?;
    let tool = find(cx, &call.name)?;
    let arguments = Arguments::new(&call.arguments)?;
    let job = tool.prepare(cx, &arguments).await?;
    if let Some(report) = &report {
        let change = described(report, &job, &call.arguments);
        cx.live.voice.change(report, change).await.map_err(|error| error.to_string())?;
    }
    permit(cx, report.as_deref(), &job.effects).await?;
    if let Some(report) = &report {
        // TOOL-08
        let change = report.change().status(ToolCallStatus::InProgress);
        cx.live.voice.change(report, change).await.map_err(|error| error.to_string())?;
    }
    Ok(job)
}

fn find(cx: &Cx, name: &str) -> Result<Arc<dyn Tool>, String> {
    let state = cx.live.state();
    match state.tools.get(name) {
        Some(tool) if tool.offered_in(state.mode) => Ok(tool.clone()),
        Some(_) => Err(format!("`{name}` cannot be used in {} mode", state.mode)),
        None => {
            let names: Vec<String> =
                state.tools.specs(state.mode).into_iter().map(|spec| spec.name).collect();
            Err(format!("there is no tool `{name}`; there are {}", names.join(", ")))
        }
    }
}

/// What will be done, before it is asked for.
fn described(report: &Call, job: &Job, arguments: &Value) -> ToolCallUpdate {
    let input = attache::Json::from(arguments.clone());
    let mut change = report.change().title(job.title.clone()).kind(job.kind).raw_input(input);
    if !job.locations.is_empty() {
        change.locations = Some(job.locations.clone());
    }
    if !job.content.is_empty() {
        change.content = Some(job.content.clone());
    }
    change
}
