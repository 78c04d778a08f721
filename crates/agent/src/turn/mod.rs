//! One turn: from a prompt to its answer.
//!
//! `steps.rs` is the loop: ask the model (`answer.rs`), run the calls it makes (`calls.rs`), until it makes none. `prompt.rs` reads what the user
//! says, `system.rs` is what the model is told about its task, `compact.rs` keeps the conversation within the model's window.
//!
//! What never happens here: a turn ends without its end being written down; a call of the model stays without a result; the
//! session is in a state from which it cannot go on, whatever failed.

mod answer;
mod calls;
mod compact;
mod missing;
pub(crate) mod permit;
mod prompt;
mod servers;
mod steps;
mod system;

use std::sync::Arc;

use attache::agent::Turn;
use attache::wire::v1::{ContentChunk, NoticeSeverity, SessionUpdate, Usage as WireUsage};
use attache::{Error, Prompt, Result, StopReason};
use serde_json::json;

use crate::commands::{self, Asked};
use crate::history;
use crate::model::{Message, Part, Role, Usage};
use crate::modes::Mode;
use crate::session::Live;
use crate::store::{Entry, Mark, UndoError};
use crate::tools::Cx;

/// Answers a prompt.
pub(crate) async fn run(live: &Arc<Live>, turn: Turn<'_>, prompt: Prompt) -> Result<StopReason> {
    // PROMPT-04: what the model does not take starts no turn.
    prompt::check(live, &prompt)?;
    begin(live, &prompt)?;
    history::title(live, &prompt).await?;
    let cx = Cx { live: live.clone(), turn: turn.detach() };
    let mut usage = Usage::default();
    let outcome = act(&cx, prompt, &mut usage).await;
    let cancelled = turn.is_cancelled();
    let stop = match &outcome {
        _ if cancelled => "cancelled",
        Ok(reason) => reason.as_str(),
        Err(_) => "error",
    };
    turn.set_usage(wire_usage(&usage));
    let usage = json!({
        "input": usage.input, "output": usage.output, "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write, "thought": usage.thought,
    });
    live.voice.keep(&[Entry::Mark(Mark::Ended { stop: stop.to_owned(), usage })])?;
    outcome
}

/// The turn and what the user said are in the log before anything is done.
fn begin(live: &Live, prompt: &Prompt) -> Result<()> {
    let mut entries = vec![Entry::Mark(Mark::Began)];
    for block in prompt.blocks() {
        let chunk = SessionUpdate::UserMessageChunk(ContentChunk::new(block.clone()));
        entries.push(Entry::Update(serde_json::to_value(&chunk)?));
    }
    live.voice.keep(&entries)
}

async fn act(cx: &Cx, prompt: Prompt, usage: &mut Usage) -> Result<StopReason> {
    let live = &cx.live;
    report_restriction(cx).await?;
    let command = prompt.command().and_then(|(name, input)| commands::asked(live, name, input));
    servers::join(cx).await?;
    let mut parts = prompt::parts(cx, &prompt).await?;
    match command {
        None => {}
        Some(Asked::Undo) => return undo(cx).await,
        Some(Asked::Compact(wish)) => return compact::by_command(cx, &wish, usage).await,
        Some(Asked::Prompt(text)) => prompt::replace_text(&mut parts, text),
        Some(Asked::Plan(wish)) => {
            live.switch_mode(Mode::Plan).await?;
            if wish.is_empty() {
                say(cx, "This is plan mode: I only read and make a plan. What shall I plan?").await?;
                return Ok(StopReason::EndTurn);
            }
            prompt::replace_text(&mut parts, wish);
        }
    }
    let Some(model) = live.model() else {
        return Err(missing::no_model(live));
    };
    let before = live.state().context.len();
    live.remember(Message { role: Role::User, parts })?;
    let stop = steps::run(cx, model, usage).await;
    if matches!(stop, Ok(StopReason::Refusal)) {
        // PROMPT-14: what was refused, and what followed, is not part of the conversation any more.
        live.state().context.truncate(before);
    }
    stop
}

/// Reports once that the project's own files do not take effect. Attaché's own client reports it itself.
async fn report_restriction(cx: &Cx) -> Result<()> {
    let live = &cx.live;
    let Some(project) = &live.restricted else { return Ok(()) };
    if std::mem::replace(&mut live.state().restriction_told, true) || permit::is_own_client(cx) {
        return Ok(());
    }
    let names: Vec<String> =
        project.files().iter().take(5).map(|file| project.short(&file.path).display().to_string()).collect();
    let more = project.files().len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let text = format!(
        "This folder is not trusted: {}{more} do not take effect, and sessions start in plan mode. To trust it: \
         attache trust add {}",
        names.join(", "),
        attache_host::policy::quote(&project.root().to_string_lossy())
    );
    live.voice.notify(cx.turn.turn(), NoticeSeverity::Warning, &text).await
}

/// Says something that the model did not.
async fn say(cx: &Cx, text: &str) -> Result<()> {
    let chunk = SessionUpdate::AgentMessageChunk(ContentChunk::new(text));
    cx.live.voice.tell(cx.turn.turn(), chunk).await
}

/// Takes the changes of the last turn back.
async fn undo(cx: &Cx) -> Result<StopReason> {
    let live = cx.live.clone();
    let undone = tokio::task::spawn_blocking(move || live.store().undo(live.id())).await;
    let told = match undone.map_err(Error::internal)? {
        Ok(undone) => {
            let files: Vec<String> = undone.files.iter().map(|path| cx.live.ground.short(path)).collect();
            format!("The changes of the last turn were taken back: {}", files.join(", "))
        }
        Err(UndoError::Nothing) => {
            say(cx, "There is nothing to take back.").await?;
            return Ok(StopReason::EndTurn);
        }
        Err(why) => {
            say(cx, &format!("This did not work: {why}")).await?;
            return Ok(StopReason::EndTurn);
        }
    };
    say(cx, &told).await?;
    // The model should not believe that its files are still as it left them.
    let note = format!("[The user took back the file changes of your last turn with /undo. {told}]");
    cx.live.remember(Message { role: Role::User, parts: vec![Part::Text(note)] })?;
    Ok(StopReason::EndTurn)
}

/// PROMPT-19
fn wire_usage(usage: &Usage) -> WireUsage {
    let total = usage.context() + usage.output;
    WireUsage::new(total, usage.context(), usage.output)
        .thought_tokens((usage.thought > 0).then_some(usage.thought))
        .cached_read_tokens((usage.cache_read > 0).then_some(usage.cache_read))
        .cached_write_tokens((usage.cache_write > 0).then_some(usage.cache_write))
}
