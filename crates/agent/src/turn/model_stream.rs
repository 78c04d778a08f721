//! One response of the model, streamed to the client.

use std::collections::BTreeMap;
use std::sync::Arc;

use attache::agent::Tool as Call;
use attache::wire::v1::{ContentChunk, Notice, NoticeSeverity, SessionUpdate, ToolKind};
use attache::{Error, Result};

use super::TurnContext;
use super::quoted::Outside;
use super::text_calls::{Segment, TextCalls};
use crate::model::{Event, InvalidCall, Message, Model, ModelError, Part, Request, Response, Stop, ToolCall};

/// A tool call of the model, reported to the client as soon as it has a name.
pub(super) struct RequestedCall {
    /// The call, or why its arguments cannot be used.
    pub(super) call: Result<ToolCall, InvalidCall>,
    /// The client's tool call; `None` for tools that are not reported.
    pub(super) report: Option<Arc<Call>>,
}

/// Why a response is incomplete.
pub(super) enum Interruption {
    /// The user cancelled, or the client cannot be reached.
    Local(Error),
    /// The model failed.
    Model(ModelError),
}

impl From<Error> for Interruption {
    fn from(error: Error) -> Self {
        Interruption::Local(error)
    }
}

/// Asks the model and streams its response. The text that the client saw joins the conversation,
/// however the response ends.
pub(super) async fn ask(
    cx: &TurnContext,
    model: &dyn Model,
    request: Request,
    response: &mut Response,
) -> Result<Vec<RequestedCall>, Interruption> {
    let text_calls = TextCalls::new(request.tools.clone());
    let system = request.system.clone();
    let mut stream = ResponseStream { cx, text_calls, system, open: BTreeMap::new(), calls: Vec::new() };
    let mut outcome = stream.receive(model, request, response).await;
    if outcome.is_ok() && response.stop.is_none() && response.is_empty() {
        outcome = Err(Interruption::Model(ModelError::protocol("the response is empty")));
    }
    let unfinished = stream.open.into_values().flatten();
    match outcome {
        Ok(()) => {
            fail_reports(cx, unfinished, "the call was cut off").await;
            add_message(cx, response.message())?;
            Ok(stream.calls)
        }
        Err(interruption) => {
            let why = match &interruption {
                Interruption::Local(_) => "cancelled",
                Interruption::Model(_) => "the model's response broke off",
            };
            let reports = stream.calls.into_iter().filter_map(|call| call.report);
            fail_reports(cx, unfinished.chain(reports), why).await;
            // Calls that will not run are not part of the conversation.
            let mut message = response.message();
            message.parts.retain(|part| !matches!(part, Part::Call(_)));
            add_message(cx, message)?;
            Err(interruption)
        }
    }
}

fn add_message(cx: &TurnContext, message: Message) -> Result<()> {
    if message.parts.is_empty() { Ok(()) } else { cx.session.add_message(message) }
}

/// Every reported call gets an end.
// CANCEL-07
async fn fail_reports(cx: &TurnContext, reports: impl Iterator<Item = Arc<Call>>, why: &str) {
    for report in reports {
        let change = report.change().content(vec![why.into()]);
        cx.session.reporter.end_tool(&report, change, true).await;
    }
}

struct ResponseStream<'a> {
    cx: &'a TurnContext,
    text_calls: TextCalls,
    /// The system prompt of the request.
    system: String,
    /// Calls whose arguments are incomplete, by index.
    open: BTreeMap<usize, Option<Arc<Call>>>,
    calls: Vec<RequestedCall>,
}

impl ResponseStream<'_> {
    async fn receive(
        &mut self,
        model: &dyn Model,
        request: Request,
        response: &mut Response,
    ) -> Result<(), Interruption> {
        let turn = self.cx.turn.turn();
        let mut stream = model.start(request);
        // CANCEL-04: returning drops the stream, which closes the connection.
        while let Some(event) = turn.until_cancelled(stream.next()).await? {
            let Ok(event) = event else {
                self.release(response).await?;
                return event.map(|_| ()).map_err(Interruption::Model);
            };
            match event {
                Event::Text(text) => {
                    let text = self.text_calls.push(&text);
                    self.pass_text(text, response).await?;
                }
                Event::CallBegins { .. } => {
                    self.release(response).await?;
                    self.pass(event, response).await?;
                }
                Event::End(stop) => {
                    let stop = self.end_text(stop, response).await?;
                    self.pass(Event::End(stop), response).await?;
                }
                Event::CallEnds { index, call } => {
                    let call = call.map(|mut call| {
                        self.cx.tools.resolve_aliases(&mut call);
                        call
                    });
                    self.pass(Event::CallEnds { index, call }, response).await?;
                }
                event => self.pass(event, response).await?,
            }
        }
        self.release(response).await?;
        Ok(())
    }

    async fn pass(&mut self, event: Event, response: &mut Response) -> Result<()> {
        response.add(&event);
        self.forward(event).await
    }

    async fn pass_text(&mut self, text: String, response: &mut Response) -> Result<()> {
        if text.is_empty() { Ok(()) } else { self.pass(Event::Text(text), response).await }
    }

    /// Passes on text that was held back, as text.
    async fn release(&mut self, response: &mut Response) -> Result<()> {
        let text = self.text_calls.stop();
        self.pass_text(text, response).await
    }

    /// Passes on the end of the text, in which there may be calls. Returns why the response ended.
    async fn end_text(&mut self, stop: Stop, response: &mut Response) -> Result<Stop> {
        if !matches!(stop, Stop::Done | Stop::Calls) || !self.calls.is_empty() {
            self.release(response).await?;
            return Ok(stop);
        }
        // Most responses end so, and need no copy of the conversation.
        if !self.text_calls.has_text() {
            return Ok(stop);
        }
        let messages = self.cx.session.conversation().messages.clone();
        let mut number = messages.iter().flat_map(Message::calls).count();
        for segment in self.text_calls.finish(&Outside::new(&self.system, &messages)) {
            match segment {
                Segment::Text(text) => self.pass_text(text, response).await?,
                Segment::Call { name, arguments } => {
                    tracing::debug!(tool = name, "the model wrote a tool call as text");
                    let id = format!("text_call_{number}");
                    let mut call = ToolCall { id, name, arguments, signature: None };
                    self.cx.tools.resolve_aliases(&mut call);
                    self.pass(Event::CallEnds { index: number, call: Ok(call) }, response).await?;
                    number += 1;
                }
            }
        }
        Ok(if self.calls.is_empty() { stop } else { Stop::Calls })
    }

    async fn forward(&mut self, event: Event) -> Result<()> {
        let (reporter, turn) = (&self.cx.session.reporter, self.cx.turn.turn());
        match event {
            Event::Text(text) => {
                reporter.send(turn, SessionUpdate::AgentMessageChunk(ContentChunk::new(text))).await?;
            }
            Event::Thought(text) => {
                reporter.send(turn, SessionUpdate::AgentThoughtChunk(ContentChunk::new(text))).await?;
            }
            Event::CallBegins { index, name, .. } => {
                let report = self.report(&name).await?;
                self.open.insert(index, report);
            }
            Event::CallEnds { index, call } => {
                let name = call.as_ref().map_or_else(|invalid| &invalid.name, |call| &call.name);
                let report = match self.open.remove(&index) {
                    Some(report) => report,
                    None => self.report(name).await?,
                };
                self.calls.push(RequestedCall { call, report });
            }
            Event::Retry { after, why } => {
                let title = format!("{why}; retrying in {} s", after.as_secs_f32().ceil());
                let notice = Notice::new(NoticeSeverity::Warning, title.clone());
                if !reporter.send_if_supported(turn, SessionUpdate::Notice(notice)).await? {
                    let chunk = ContentChunk::new(format!("({title})\n"));
                    reporter.send(turn, SessionUpdate::AgentThoughtChunk(chunk)).await?;
                }
            }
            Event::CallGrows { .. } | Event::Signature(_) | Event::Usage(_) | Event::End(_) => {}
        }
        Ok(())
    }

    /// A call is reported at once, and described when its arguments are
    /// complete.
    // PROMPT-17, TOOL-01
    async fn report(&self, name: &str) -> Result<Option<Arc<Call>>> {
        let (kind, reported) = match self.cx.tools.get(name) {
            Some((info, _)) => (info.kind, info.is_reported),
            None => (ToolKind::Other, true),
        };
        if !reported {
            return Ok(None);
        }
        let call = self.cx.turn.turn().tool(name).kind(kind).name(name);
        Ok(Some(Arc::new(self.cx.session.reporter.start_tool(call).await?)))
    }
}
