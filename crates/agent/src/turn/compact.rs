//! Compaction: replaces the conversation with a summary so that it fits the model's window.

use attache::wire::v1::{CompactionStatus, CompactionUpdate, NoticeSeverity, SessionUpdate};
use attache::{Error, Patch, Result, StopReason, code};

use super::{TurnContext, say, steps, system_prompt};
use crate::model::{
    Message, Model, ModelInfo, Part, Request, Response, Role, Thinking, ToolSpec, Usage, estimate_tokens,
};
use crate::state::{MIN_RESULTS, SessionState};
use crate::store::Entry;
use crate::text::head_and_tail;

const TASK: &str = "You summarize a conversation between a user and a coding agent, so that the agent can continue without the \
conversation itself. Write down, in this order: what the user wants, in the user's own words where they matter; decisions and \
constraints; what has been done, with file names and the names in them; what was found out; what is left to do and what the \
next step is. Leave out what is settled and no longer needed. Write plain text and nothing else";

/// The most bytes of one part that the summarizing model sees.
const MAX_PART: usize = 4 << 10;

/// The most bytes of the user's own words.
const MAX_WORDS: usize = 16 << 10;

/// Whether the window is as full as it may be.
pub(super) fn is_due(cx: &TurnContext, info: &ModelInfo) -> bool {
    // A single message cannot be shortened.
    cx.session.conversation().messages.len() > 2 && used(cx, info) > limit(cx, info)
}

/// The tokens at which the conversation is summarized: the configured share of the window, or less
/// if a response needs the room.
pub(super) fn limit(cx: &TurnContext, info: &ModelInfo) -> u64 {
    let share = info.window * u64::from(cx.session.agent.options.limits.compact_at) / 100;
    share.min(info.window - u64::from(info.max_output).min(info.window / 2))
}

/// The tokens in the window: by the provider's last count and the messages since then, or by an
/// estimate of four bytes per token if that is more, because some servers do not count.
fn used(cx: &TurnContext, info: &ModelInfo) -> u64 {
    let session = &cx.session;
    // It cannot be shortened, so it must not be the only reason for a summary.
    let fixed = fixed_size(cx, info).min(usize::try_from(info.window * 2).unwrap_or(usize::MAX));
    let conversation = session.conversation();
    let messages = &conversation.messages;
    let total = fixed + messages.iter().map(Message::size).sum::<usize>();
    let added: usize =
        messages.iter().rev().take_while(|message| message.role == Role::User).map(Message::size).sum();
    (conversation.used + estimate_tokens(added)).max(estimate_tokens(total))
}

/// The bytes of a request besides its messages.
fn fixed_size(cx: &TurnContext, info: &ModelInfo) -> usize {
    let mode = cx.session.conversation().mode;
    let tools = cx.tools.specs(mode, Some(info));
    system_prompt::text(&cx.session, mode, Some(info)).len() + tools.iter().map(ToolSpec::size).sum::<usize>()
}

/// The most bytes of the results of a response: a quarter of the window, and no more than there is
/// room for. Otherwise they would be summarized before the model has seen them.
pub(super) fn room(cx: &TurnContext, info: &ModelInfo) -> usize {
    let tokens = usize::try_from(limit(cx, info).saturating_sub(used(cx, info))).unwrap_or(usize::MAX);
    // Results have more tokens than other texts: numbers and marks.
    tokens.saturating_mul(3).clamp(MIN_RESULTS, cx.session.results_limit())
}

/// The error of a turn that compacts again and again without a new call.
pub(super) fn no_progress(info: &ModelInfo) -> Error {
    let text = format!(
        "the task does not fit into the model's window of {} tokens: the conversation was summarized and the same calls \
         filled it again; use a model with a larger window, or ask for less at once",
        info.window
    );
    Error::refuse(code::INTERNAL_ERROR, text)
}

/// `/compact`
pub(super) async fn by_command(cx: &TurnContext, focus: &str, usage: &mut Usage) -> Result<StopReason> {
    let Some(model) = cx.session.model() else {
        return say(cx, "There is no model to summarize the conversation.").await;
    };
    if cx.session.conversation().messages.is_empty() {
        return say(cx, "There is nothing to summarize yet.").await;
    }
    run(cx, model.as_ref(), focus, usage).await?;
    Ok(StopReason::EndTurn)
}

/// Replaces the conversation with a summary. A last message of the user that waits for a response
/// stays.
pub(super) async fn run(cx: &TurnContext, model: &dyn Model, focus: &str, usage: &mut Usage) -> Result<()> {
    let session = &cx.session;
    let id = format!("compaction-{}", session.store().last(session.id())?);
    let reported = report_start(cx, &id).await?;
    let summary = match summarize(cx, model, focus, usage).await {
        Ok(summary) => summary,
        Err(error) => {
            // NOTE-08: every compaction has an end.
            let status = match error {
                Error::Cancelled => CompactionStatus::Cancelled,
                _ => CompactionStatus::Failed,
            };
            if reported {
                let update = CompactionUpdate::new(id, status).error(Patch::from(error.to_string()));
                let _ = session.reporter.send_despite_cancel(&session.handle, update).await;
            }
            return Err(error);
        }
    };
    replace(session, &summary, model.info())?;
    if reported {
        let update = CompactionUpdate::new(id, CompactionStatus::Completed).summary(vec![summary.into()]);
        let update = SessionUpdate::CompactionUpdate(Box::new(update));
        session.reporter.send(cx.turn.turn(), update).await?;
    }
    Ok(())
}

/// Reports a compaction if the client supports those, else a notice, else text.
/// Returns whether an end has to be reported.
// NOTE-06, NOTE-07
async fn report_start(cx: &TurnContext, id: &str) -> Result<bool> {
    let (reporter, turn) = (&cx.session.reporter, cx.turn.turn());
    let update = CompactionUpdate::new(id.to_owned(), CompactionStatus::InProgress);
    if reporter.send_if_supported(turn, SessionUpdate::CompactionUpdate(Box::new(update))).await? {
        return Ok(true);
    }
    reporter.notify(turn, NoticeSeverity::Info, "Summarizing the conversation").await?;
    Ok(false)
}

async fn summarize(cx: &TurnContext, model: &dyn Model, focus: &str, usage: &mut Usage) -> Result<String> {
    let mut text = transcript(&cx.session.conversation().messages, model.info());
    if !focus.is_empty() {
        text.push_str(&format!("\n\nAbove all, keep: {focus}"));
    }
    let request = Request {
        system: format!("{TASK}, at most {} words.", max_words(model.info())),
        messages: vec![Message::user(text)],
        thinking: Thinking::Off,
        ..Request::default()
    };
    let failed =
        |why: &str| Error::refuse(code::INTERNAL_ERROR, format!("cannot summarize the conversation: {why}"));
    let mut response = Response::default();
    let mut stream = model.start(request);
    let turn = cx.turn.turn();
    while let Some(event) = turn.until_cancelled(stream.next()).await? {
        response.add(&event.map_err(|error| failed(&error.to_string()))?);
    }
    steps::count(cx, model, &response, usage).await?;
    match response.message().text().trim() {
        "" => Err(failed("the model returned nothing; start a new session")),
        summary => Ok(head_and_tail(summary, max_summary(model.info()))),
    }
}

/// The most bytes of a summary: an eighth of the window.
fn max_summary(info: &ModelInfo) -> usize {
    usize::try_from(info.window / 2).unwrap_or(usize::MAX).max(MIN_RESULTS)
}

/// The most words of a summary. A word has six bytes on average.
fn max_words(info: &ModelInfo) -> usize {
    (max_summary(info) / 6).min(800)
}

/// The end of the conversation as plain text, as much as fits into half of the window.
fn transcript(messages: &[Message], info: &ModelInfo) -> String {
    let mut pieces = Vec::new();
    let mut room = usize::try_from(info.window).unwrap_or(usize::MAX).saturating_mul(2);
    for message in messages.iter().rev() {
        let piece = message_text(message);
        room = match room.checked_sub(piece.len()) {
            Some(room) => room,
            None if pieces.is_empty() => {
                pieces.push(head_and_tail(&piece, room));
                break;
            }
            None => {
                pieces.push("[The beginning is left out.]\n".to_owned());
                break;
            }
        };
        pieces.push(piece);
    }
    pieces.reverse();
    pieces.concat()
}

fn message_text(message: &Message) -> String {
    let speaker = match message.role {
        Role::User => "User",
        Role::Assistant => "Agent",
    };
    let short = |text: &str| head_and_tail(text, MAX_PART);
    let line = |part: &Part| match part {
        Part::Text(text) => format!("{speaker}: {}\n", short(text)),
        Part::Call(call) => format!("Agent calls {}: {}\n", call.name, short(&call.arguments.to_string())),
        Part::Result { parts, failed, .. } => {
            let inner = message_text(&Message::from_user(parts.clone()));
            let label = if *failed { "Failed result" } else { "Result" };
            format!("{label}: {}\n", short(inner.trim_start_matches("User: ")))
        }
        Part::Image { .. } => "[an image]\n".to_owned(),
        Part::Audio { .. } => "[audio]\n".to_owned(),
        Part::Thought { .. } => String::new(),
    };
    message.parts.iter().map(line).collect()
}

/// Replaces the conversation, in the log and in memory. The user's last message stays if it waits
/// for a response.
fn replace(session: &SessionState, summary: &str, info: &ModelInfo) -> Result<()> {
    let log = session.store().read(session.id())?;
    let upto = session.store().last(session.id())?;
    let waiting = session
        .conversation()
        .messages
        .last()
        .filter(|last| last.role == Role::User)
        .and_then(without_results);
    let words = words(log.user_words(), waiting.as_ref(), info);
    let mut entries = vec![Entry::Compacted { upto, summary: format!("{summary}{words}") }];
    entries.extend(waiting.map(Entry::Message));
    session.reporter.log(&entries)?;
    let messages = session.store().read(session.id())?.context();
    let mut conversation = session.conversation();
    conversation.messages = messages;
    conversation.used = 0;
    Ok(())
}

/// The user's own words, which a summary may distort: the newest, as many as fit into an eighth of
/// the window. A message that stays is left out.
fn words(all: Vec<String>, waiting: Option<&Message>, info: &ModelInfo) -> String {
    let mut room = usize::try_from(info.window / 2).unwrap_or(usize::MAX).min(MAX_WORDS);
    let stays = waiting.map(Message::text);
    let mut kept = Vec::new();
    for text in all.iter().rev().filter(|text| stays.as_ref() != Some(text)) {
        let Some(left) = room.checked_sub(text.len()) else {
            kept.push(head_and_tail(text, room));
            break;
        };
        kept.push(text.clone());
        room = left;
    }
    kept.retain(|text| !text.trim().is_empty());
    if kept.is_empty() {
        return String::new();
    }
    kept.reverse();
    format!("\n\nThe user's messages, word for word:\n- {}", kept.join("\n- "))
}

/// The user's message without results: the summary covers them, and their calls are gone.
fn without_results(last: &Message) -> Option<Message> {
    let is_result = |part: &&Part| matches!(part, Part::Result { .. });
    let parts: Vec<Part> = last.parts.iter().filter(|part| !is_result(part)).cloned().collect();
    (!parts.is_empty()).then_some(Message::from_user(parts))
}
