//! One answer of the model, told to the client while it comes in.

use std::collections::BTreeMap;
use std::sync::Arc;

use attache::agent::Tool as Call;
use attache::wire::v1::{ContentChunk, Notice, NoticeSeverity, SessionUpdate, ToolKind};
use attache::{Error, Result};

use crate::model::{Answer, BadCall, Event, Message, Model, ModelError, Part, Request, ToolCall};
use crate::tools::Cx;

/// A call of the model, which the client knows of as soon as it has a name.
pub(super) struct Called {
    /// The call, or why its arguments cannot be used.
    pub(super) call: Result<ToolCall, BadCall>,
    /// How it was reported, if tools of its kind are.
    pub(super) report: Option<Arc<Call>>,
}

/// Why there is no whole answer.
pub(super) enum Cut {
    /// By us: the user cancelled, or the client cannot be told.
    Here(Error),
    /// By the model.
    Model(ModelError),
}

/// Asks, and tells the client what comes. What has been said is in the conversation, however it ends.
pub(super) async fn ask(
    cx: &Cx,
    model: &dyn Model,
    request: Request,
    answer: &mut Answer,
) -> Result<Vec<Called>, Cut> {
    let mut open: BTreeMap<usize, Option<Arc<Call>>> = BTreeMap::new();
    let mut called = Vec::new();
    let mut outcome = listen(cx, model, request, answer, &mut open, &mut called).await;
    if outcome.is_ok() && answer.stop.is_none() && answer.is_empty() {
        outcome = Err(Cut::Model(ModelError::Protocol("the model ended without an answer".to_owned())));
    }
    match outcome {
        Ok(()) => {
            give_up(cx, open.into_values().flatten(), "the call was cut off").await;
            remember(cx, answer.message()).map_err(Cut::Here)?;
            Ok(called)
        }
        Err(cut) => {
            let why = match &cut {
                Cut::Here(_) => "cancelled",
                Cut::Model(_) => "the model's answer broke off",
            };
            let reports = called.into_iter().filter_map(|called| called.report);
            give_up(cx, open.into_values().flatten().chain(reports), why).await;
            // Calls that will not be run are not part of what was said.
            let mut message = answer.message();
            message.parts.retain(|part| !matches!(part, Part::Call(_)));
            remember(cx, message).map_err(Cut::Here)?;
            Err(cut)
        }
    }
}

fn remember(cx: &Cx, message: Message) -> Result<()> {
    if message.parts.is_empty() { Ok(()) } else { cx.live.remember(message) }
}

async fn give_up(cx: &Cx, reports: impl Iterator<Item = Arc<Call>>, why: &str) {
    for report in reports {
        let change = report.change().content(vec![why.into()]);
        // CANCEL-07; if the client has gone there is nobody to tell.
        let _ = cx.live.voice.end(&report, change, true).await;
    }
}

async fn listen(
    cx: &Cx,
    model: &dyn Model,
    request: Request,
    answer: &mut Answer,
    open: &mut BTreeMap<usize, Option<Arc<Call>>>,
    called: &mut Vec<Called>,
) -> Result<(), Cut> {
    let turn = cx.turn.turn();
    let mut stream = model.start(request);
    // CANCEL-04: leaving this function drops the stream, which closes the connection at once.
    while let Some(event) = turn.until_cancelled(stream.next()).await.map_err(Cut::Here)? {
        let event = event.map_err(Cut::Model)?;
        answer.take(&event);
        tell(cx, event, open, called).await.map_err(Cut::Here)?;
    }
    Ok(())
}

async fn tell(
    cx: &Cx,
    event: Event,
    open: &mut BTreeMap<usize, Option<Arc<Call>>>,
    called: &mut Vec<Called>,
) -> Result<()> {
    let (voice, turn) = (&cx.live.voice, cx.turn.turn());
    match event {
        Event::Text(text) => {
            voice.tell(turn, SessionUpdate::AgentMessageChunk(ContentChunk::new(text))).await?;
        }
        Event::Thought(text) => {
            voice.tell(turn, SessionUpdate::AgentThoughtChunk(ContentChunk::new(text))).await?;
        }
        Event::CallBegins { index, name, .. } => {
            open.insert(index, report(cx, &name).await?);
        }
        Event::CallEnds { index, call } => {
            let name = match &call {
                Ok(call) => &call.name,
                Err(bad) => &bad.name,
            };
            let report = match open.remove(&index) {
                Some(report) => report,
                None => report(cx, name).await?,
            };
            called.push(Called { call, report });
        }
        Event::Retry { after, why } => {
            let title = format!("{why}; asking again in {} s", after.as_secs_f32().ceil());
            let notice = Notice::new(NoticeSeverity::Warning, title.clone());
            if !voice.tell_if_known(turn, SessionUpdate::Notice(notice)).await? {
                let chunk = ContentChunk::new(format!("({title})\n"));
                voice.tell(turn, SessionUpdate::AgentThoughtChunk(chunk)).await?;
            }
        }
        Event::CallGrows { .. } | Event::Seal(_) | Event::Usage(_) | Event::End(_) => {}
    }
    Ok(())
}

/// PROMPT-17, TOOL-01: a call is reported at once, and what it is about when its arguments are there.
async fn report(cx: &Cx, name: &str) -> Result<Option<Arc<Call>>> {
    let (kind, reported) = match cx.live.state().tools.get(name) {
        Some(tool) => (tool.kind(), tool.is_reported()),
        None => (ToolKind::Other, true),
    };
    if !reported {
        return Ok(None);
    }
    let call = cx.turn.turn().tool(name).kind(kind).name(name);
    Ok(Some(Arc::new(cx.live.voice.start(call).await?)))
}
