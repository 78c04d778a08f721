//! `plan`: the steps of a task and their status; `leave_plan_mode`: the end of plan mode.

use attache::wire::v1::{
    Plan as PlanUpdate, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate, ToolKind,
};
use attache_host::policy::Effect;
use serde_json::json;

use super::{Arguments, Availability, Job, Output, Result, Tool, ToolContext, ToolInfo, object, text};
use crate::modes::Mode;

pub(crate) struct Plan;

impl Tool for Plan {
    fn info(&self) -> ToolInfo {
        let entry = object(&[
            ("content", text("the step, in a few words"), true),
            ("status", json!({"type": "string", "enum": ["pending", "in_progress", "completed"]}), true),
            ("priority", json!({"type": "string", "enum": ["high", "medium", "low"]}), false),
        ]);
        let info = ToolInfo::new(
            ToolKind::Think,
            "plan",
            "Shows the user what you are going to do and how far you are. Give the whole list each time. Use it for work with \
             several steps: once before you begin, and whenever a step is done. One step at a time is in progress.",
            &[("entries", json!({"type": "array", "items": entry}), true)],
        );
        // PLAN-01: it is reported as the plan.
        ToolInfo { is_reported: false, ..info }
    }

    async fn prepare(&self, _: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let entries = arguments.objects("entries")?.iter().map(entry).collect::<Result<Vec<_>>>()?;
        let work = move |cx: ToolContext, _| async move {
            let count = entries.len();
            // PLAN-02, PLAN-03: each time the whole plan.
            let update = SessionUpdate::Plan(PlanUpdate::new(entries));
            cx.session.reporter.send(cx.turn.turn(), update).await?;
            Ok(Output::text(format!("the plan has {count} entries")))
        };
        Ok(Job::new("Plan", Vec::new(), work))
    }
}

fn entry(entry: &Arguments<'_>) -> Result<PlanEntry> {
    let status = match entry.text_if("status")?.unwrap_or("pending") {
        "pending" => PlanEntryStatus::Pending,
        "in_progress" => PlanEntryStatus::InProgress,
        "completed" => PlanEntryStatus::Completed,
        other => return Err(format!("`status` is pending, in_progress or completed, not `{other}`").into()),
    };
    let priority = match entry.text_if("priority")?.unwrap_or("medium") {
        "high" => PlanEntryPriority::High,
        "medium" => PlanEntryPriority::Medium,
        "low" => PlanEntryPriority::Low,
        other => return Err(format!("`priority` is high, medium or low, not `{other}`").into()),
    };
    Ok(PlanEntry::new(entry.text("content")?, priority, status))
}

pub(crate) struct LeavePlanMode;

impl Tool for LeavePlanMode {
    fn info(&self) -> ToolInfo {
        let info = ToolInfo::new(
            ToolKind::SwitchMode,
            "leave_plan_mode",
            "Call this in plan mode when the plan is complete: the user is shown the plan and asked whether you may carry it out.",
            &[("plan", text("the whole plan in Markdown"), true)],
        );
        ToolInfo { availability: Availability::OnlyInPlanMode, ..info }
    }

    async fn prepare(&self, _: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let plan = arguments.text("plan")?.to_owned();
        let work = |cx: ToolContext, _| async move {
            // MODE-07: the client is notified.
            cx.session.switch_mode(Mode::Ask).await?;
            Ok(Output::text("the user agrees: carry out the plan; changes and commands will be asked for"))
        };
        let job = Job::new("Carry out the plan", vec![Effect::SwitchMode(Mode::Ask.id().to_owned())], work);
        Ok(job.content(plan))
    }
}
