//! Keeping the conversation within the model's window: what was said is put into a summary, and the client is told.

use attache::wire::v1::{CompactionStatus, CompactionUpdate, NoticeSeverity, SessionUpdate};
use attache::{Error, Patch, Result, StopReason};

use super::{say, steps};
use crate::model::{Answer, Message, Model, ModelInfo, Part, Request, Role, Thinking, Usage};
use crate::session::Live;
use crate::store::Entry;
use crate::tools::{Cx, head_and_tail};

const TASK: &str = "You shorten a conversation between a user and a coding agent, so that the agent can go on without the \
conversation itself. Write down, in this order: what the user wants, in the user's own words where they matter; decisions and \
constraints; what has been done, with file names and the names in them; what was found out; what is left to do and what the \
next step is. Leave out what is settled and no longer needed. Write plain text, at most 800 words, and nothing else.";

/// How much of one part is shown to the model that shortens.
const PART: usize = 4 << 10;

/// Whether the window is as full as it may be: by the provider's last count and what was added since then, or by a guess
/// where it does not count. Four bytes are about a token.
pub(super) fn is_due(live: &Live, info: &ModelInfo) -> bool {
    let state = live.state();
    let said: usize = state.context.iter().map(size).sum();
    let added: usize =
        state.context.iter().rev().take_while(|message| message.role == Role::User).map(size).sum();
    let used = (state.used + added as u64 / 4).max(said as u64 / 4);
    // A single message cannot be shortened.
    state.context.len() > 2 && used > info.window / 100 * u64::from(live.house.options.limits.compact_at)
}

fn size(message: &Message) -> usize {
    fn part(part: &Part) -> usize {
        match part {
            Part::Text(text) | Part::Thought { text, .. } => text.len(),
            Part::Call(call) => call.arguments.to_string().len(),
            Part::Result { parts, .. } => parts.iter().map(self::size_of).sum(),
            // Providers count pictures and sound by other measures; this is about right for most.
            Part::Image { .. } | Part::Audio { .. } => 6000,
        }
    }
    message.parts.iter().map(part).sum()
}

fn size_of(part: &Part) -> usize {
    size(&Message { role: Role::User, parts: vec![part.clone()] })
}

/// `/compact`
pub(super) async fn by_command(cx: &Cx, wish: &str, usage: &mut Usage) -> Result<StopReason> {
    let Some(model) = cx.live.model() else {
        say(cx, "There is no model that could shorten the conversation.").await?;
        return Ok(StopReason::EndTurn);
    };
    if cx.live.state().context.is_empty() {
        say(cx, "There is nothing to shorten yet.").await?;
        return Ok(StopReason::EndTurn);
    }
    run(cx, model.as_ref(), wish, usage).await?;
    Ok(StopReason::EndTurn)
}

/// Puts a summary in the place of the conversation. The last message stays if it waits for an answer.
pub(super) async fn run(cx: &Cx, model: &dyn Model, wish: &str, usage: &mut Usage) -> Result<()> {
    let id = format!("compaction-{}", last(&cx.live)?);
    let told = begins(cx, &id).await?;
    let made = summarize(cx, model, wish, usage).await;
    match made {
        Ok(summary) => {
            replace(cx, &summary)?;
            ends(
                cx,
                told,
                CompactionUpdate::new(id, CompactionStatus::Completed).summary(vec![summary.into()]),
            )
            .await
        }
        Err(error) => {
            // NOTE-08: every compaction has an end.
            let status = match error {
                Error::Cancelled => CompactionStatus::Cancelled,
                _ => CompactionStatus::Failed,
            };
            let update = CompactionUpdate::new(id, status).error(Patch::from(error.to_string()));
            if told {
                let _ = cx.live.voice.tell_after_all(&cx.live.handle, update).await;
            }
            Err(error)
        }
    }
}

/// NOTE-06, NOTE-07: as a compaction if the client knows those, else as a notice, else as words.
async fn begins(cx: &Cx, id: &str) -> Result<bool> {
    let (voice, turn) = (&cx.live.voice, cx.turn.turn());
    let update = CompactionUpdate::new(id.to_owned(), CompactionStatus::InProgress);
    if voice.tell_if_known(turn, SessionUpdate::CompactionUpdate(Box::new(update))).await? {
        return Ok(true);
    }
    voice.notify(turn, NoticeSeverity::Info, "The conversation is being shortened to a summary").await?;
    Ok(false)
}

async fn ends(cx: &Cx, told: bool, update: CompactionUpdate) -> Result<()> {
    if told {
        cx.live.voice.tell(cx.turn.turn(), SessionUpdate::CompactionUpdate(Box::new(update))).await?;
    }
    Ok(())
}

async fn summarize(cx: &Cx, model: &dyn Model, wish: &str, usage: &mut Usage) -> Result<String> {
    let mut text = transcript(&cx.live.state().context, model.info());
    if !wish.is_empty() {
        text.push_str(&format!("\n\nKeep in mind above all: {wish}"));
    }
    let request = Request {
        system: TASK.to_owned(),
        messages: vec![Message::user(text)],
        thinking: Thinking::Off,
        ..Request::default()
    };
    let mut answer = Answer::default();
    let mut stream = model.start(request);
    let turn = cx.turn.turn();
    while let Some(event) = turn.until_cancelled(stream.next()).await? {
        match event {
            Ok(event) => answer.take(&event),
            Err(error) => {
                return Err(crate::house::internal(format!(
                    "the conversation could not be shortened: {error}"
                )));
            }
        }
    }
    steps::count(cx, model, &answer, usage).await?;
    match answer.message().text().trim() {
        "" => Err(crate::house::internal(
            "the conversation could not be shortened: the model said nothing; start a new session",
        )),
        summary => Ok(summary.to_owned()),
    }
}

/// The conversation as plain text: as much of its end as fits into half of the window.
fn transcript(context: &[Message], info: &ModelInfo) -> String {
    let mut pieces = Vec::new();
    let mut room = usize::try_from(info.window).unwrap_or(usize::MAX).saturating_mul(2);
    for message in context.iter().rev() {
        let piece = told(message);
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

fn told(message: &Message) -> String {
    let who = match message.role {
        Role::User => "User",
        Role::Assistant => "Agent",
    };
    let mut text = String::new();
    for part in &message.parts {
        match part {
            Part::Text(said) => text.push_str(&format!("{who}: {}\n", head_and_tail(said, PART))),
            Part::Call(call) => {
                let arguments = head_and_tail(&call.arguments.to_string(), PART);
                text.push_str(&format!("Agent calls {}: {arguments}\n", call.name));
            }
            Part::Result { parts, failed, .. } => {
                let inner = told(&Message { role: Role::User, parts: parts.clone() });
                let how = if *failed { "Failed result" } else { "Result" };
                text.push_str(&format!(
                    "{how}: {}\n",
                    head_and_tail(inner.trim_start_matches("User: "), PART)
                ));
            }
            Part::Image { .. } => text.push_str("[a picture]\n"),
            Part::Audio { .. } => text.push_str("[sound]\n"),
            Part::Thought { .. } => {}
        }
    }
    text
}

/// From now on the model is told the summary. The user's last words stay as they are if they are still to be answered.
fn replace(cx: &Cx, summary: &str) -> Result<()> {
    let live = &cx.live;
    let upto = last(live)?;
    let mut entries = vec![Entry::Compacted { upto, summary: summary.to_owned() }];
    let waiting = live.state().context.last().filter(|last| last.role == Role::User).map(open_words);
    entries.extend(waiting.clone().flatten().map(Entry::Message));
    live.voice.keep(&entries)?;
    let context = live.store().read(live.id()).map_err(crate::house::internal)?.context();
    let mut state = live.state();
    state.context = context;
    state.used = 0;
    Ok(())
}

/// The place of the last entry in the log.
fn last(live: &Live) -> Result<i64> {
    live.store().last(live.id()).map_err(crate::house::internal)
}

/// What the user said last, without results of calls: those are in the summary, and their calls are gone.
fn open_words(last: &Message) -> Option<Message> {
    let parts: Vec<Part> =
        last.parts.iter().filter(|part| !matches!(part, Part::Result { .. })).cloned().collect();
    (!parts.is_empty()).then_some(Message { role: Role::User, parts })
}
