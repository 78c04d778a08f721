//! One tool call: arguments, permission, work, and its report to the client.

use std::sync::Arc;

use attache::agent::{Tool as Call, ToolChange, ToolContent, ToolStatus};
use attache::wire::v1::{ProtocolVersion, ToolKind};
use serde_json::Value;

use super::TurnContext;
use super::model_stream::RequestedCall;
use crate::model::text_of;
use crate::tools::{AnyTool, Arguments, Job, Output, Progress, Result, ToolError, ToolInfo, permission};

/// One call, from its arguments to its outcome. The client learns about every failure.
pub(super) async fn run(cx: &TurnContext, requested: RequestedCall) -> Result<Output> {
    let report = requested.report.clone();
    let outcome = attempt(cx, requested).await;
    if let Err(error) = &outcome {
        tracing::debug!(%error, "the tool call failed");
    }
    if let Some(report) = report {
        report_end(cx, &report, &outcome).await;
    }
    outcome
}

/// Completed or failed, with the output. Also when the turn was cancelled.
// TOOL-10, CANCEL-07
pub(super) async fn report_end(cx: &TurnContext, report: &Call, outcome: &Result<Output>) {
    let mut change = report.change();
    let (content, content_v2, failed) = match outcome {
        Ok(output) => {
            if let Some(locations) = &output.locations {
                change = change.locations(locations.clone());
            }
            // TOOL-19: the text for the model, unless the tool has an output for programs.
            let raw = output.raw.clone().unwrap_or_else(|| text_of(&output.parts).into());
            change = change.raw_output(raw);
            (output.content.clone(), output.content_v2.clone(), output.failed)
        }
        Err(error) => {
            // A denied or cancelled call keeps showing what the user has just read.
            let failed = !matches!(error, ToolError::Denied | ToolError::Cancelled);
            change = change.raw_output(Value::from(error.to_string()));
            (failed.then(|| vec![error.to_string().into()]), None, true)
        }
    };
    let with = |content: Option<Vec<ToolContent>>| match content {
        Some(content) => change.clone().content(content),
        None => change.clone(),
    };
    let is_v2 = cx.turn.turn().client().version() == ProtocolVersion::V2;
    let shown = match content_v2.filter(|_| is_v2) {
        Some(shown) => with(Some(shown).filter(|shown| !shown.is_empty())),
        None => with(content.clone()),
    };
    cx.session.reporter.end_tool_as(report, with(content), shown, failed).await;
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
            let model = cx.session.model();
            let specs = cx.tools.specs(mode, model.as_ref().map(|model| model.info()));
            let names: Vec<String> = specs.into_iter().map(|spec| spec.name).collect();
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
