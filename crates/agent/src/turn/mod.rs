//! One turn: from a prompt to its response.
//!
//! `steps.rs` is the loop: ask the model (`model_stream.rs`), run the tool calls of its response
//! (`tool_calls.rs`, each by `call.rs`), until there are none. `prompt.rs` converts the prompt,
//! `system_prompt.rs` writes the system prompt, `compact.rs` keeps the conversation within the
//! model's window, and `context_report.rs` says what is in it.
//!
//! Invariants: the end of every turn is logged; every call of the model gets a result; whatever
//! fails, the session can continue.

mod call;
mod compact;
mod configured_command;
mod context_report;
mod diagnostics;
mod hooks;
mod model_stream;
mod no_model;
mod prompt;
mod quoted;
mod repeats;
mod steps;
mod system_prompt;
mod task;
mod text_calls;
mod title;
mod tool_calls;

use std::sync::Arc;

use attache::agent::Turn;
use attache::wire::v1::{ContentChunk, NoticeSeverity, SessionUpdate, Usage as WireUsage};
use attache::{Error, Prompt, Result, StopReason};
use serde_json::json;
use tracing::Instrument as _;

use crate::commands::{self, SlashCommand};
use crate::model::{Message, Usage};
use crate::modes::Mode;
use crate::state::SessionState;
use crate::store::{Entry, Mark, UndoError};
use crate::tools::{ToolContext, Toolbox, permission};

pub(crate) use task::Task;

/// A turn in progress.
#[derive(Clone)]
struct TurnContext {
    tool: ToolContext,
    tools: Arc<Toolbox>,
}

impl std::ops::Deref for TurnContext {
    type Target = ToolContext;

    fn deref(&self) -> &ToolContext {
        &self.tool
    }
}

/// Answers a prompt. `tools` resolves when the session's tools are complete.
pub(crate) async fn run(
    session: &Arc<SessionState>,
    turn: Turn<'_>,
    prompt: Prompt,
    tools: impl Future<Output = Result<Arc<Toolbox>>>,
) -> Result<StopReason> {
    // PROMPT-04: content that the model does not accept starts no turn.
    prompt::check(session, &prompt)?;
    log_prompt(session, &prompt)?;
    title::generate(session, &prompt).await?;
    let cx = ToolContext {
        session: session.clone(),
        turn: turn.detach(),
        command_env: [].into(),
        result_limit: session.result_limit(),
    };
    let mut usage = Usage::default();
    let span = tracing::info_span!("turn", session = session.id());
    let outcome = answer(cx, prompt, tools, &mut usage).instrument(span).await;
    let stop = match &outcome {
        _ if turn.is_cancelled() => "cancelled",
        Ok(reason) => reason.as_str(),
        Err(error) => {
            tracing::warn!(session = session.id(), %error, "the turn failed");
            "error"
        }
    };
    turn.set_usage(wire_usage(&usage));
    let usage = json!({
        "input": usage.input, "output": usage.output, "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write, "thought": usage.thought,
    });
    session.reporter.log(&[Entry::Mark(Mark::Ended { stop: stop.to_owned(), usage })])?;
    outcome
}

/// Logs the start of the turn and the prompt before anything else happens.
fn log_prompt(session: &SessionState, prompt: &Prompt) -> Result<()> {
    let mut entries = vec![Entry::Mark(Mark::Began)];
    for block in prompt.blocks() {
        let chunk = ContentChunk::new(block.clone()).message_id(prompt.message_id().cloned());
        let chunk = SessionUpdate::UserMessageChunk(chunk);
        entries.push(Entry::Update(serde_json::to_value(&chunk)?));
    }
    session.reporter.log(&entries)
}

async fn answer(
    tool: ToolContext,
    prompt: Prompt,
    tools: impl Future<Output = Result<Arc<Toolbox>>>,
    usage: &mut Usage,
) -> Result<StopReason> {
    report_restriction(&tool).await?;
    let command = prompt.command().and_then(|(name, input)| commands::find(&tool.session, name, input));
    let cx = TurnContext { tools: tools.await?, tool };
    let session = &cx.session;
    let mut parts = prompt::parts(&cx, &prompt)?;
    match command {
        None => {}
        Some(SlashCommand::Undo) => return undo(&cx).await,
        Some(SlashCommand::Context) => return context_report::by_command(&cx).await,
        Some(SlashCommand::Compact(focus)) => return compact::by_command(&cx, &focus, usage).await,
        Some(SlashCommand::Prompt(text)) => prompt::replace_text(&mut parts, text),
        Some(SlashCommand::Plan(task)) => {
            session.switch_mode(Mode::Plan).await?;
            if task.is_empty() {
                return say(&cx, "This is plan mode: I only read and make a plan. What shall I plan?").await;
            }
            prompt::replace_text(&mut parts, task);
        }
    }
    cx.turn.turn().until_cancelled(session.complete_model()).await?;
    let Some(model) = session.model() else {
        return Err(no_model::error(session));
    };
    let before = session.conversation().messages.len();
    session.add_message(Message::from_user(parts))?;
    let stop = steps::run(&cx, model, usage).await;
    if matches!(stop, Ok(StopReason::Refusal)) {
        // PROMPT-14: a refused prompt, and what followed it, leaves the conversation.
        session.conversation().messages.truncate(before);
    }
    stop
}

/// Reports once that the project's own files do not take effect. Attaché's own client reports it
/// itself.
async fn report_restriction(cx: &ToolContext) -> Result<()> {
    let session = &cx.session;
    let Some(project) = &session.restricted else { return Ok(()) };
    let reported = std::mem::replace(&mut session.conversation().restriction_reported, true);
    if reported || permission::is_own_client(cx) {
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
    session.reporter.notify(cx.turn.turn(), NoticeSeverity::Warning, &text).await
}

/// Sends text that is not the model's, and ends the turn.
async fn say(cx: &ToolContext, text: &str) -> Result<StopReason> {
    let chunk = SessionUpdate::AgentMessageChunk(ContentChunk::new(text));
    cx.session.reporter.send(cx.turn.turn(), chunk).await?;
    Ok(StopReason::EndTurn)
}

/// Reverts the file changes of the last turn.
async fn undo(cx: &ToolContext) -> Result<StopReason> {
    let session = cx.session.clone();
    let undone = tokio::task::spawn_blocking(move || session.store().undo(session.id())).await;
    let text = match undone.map_err(Error::internal)? {
        Ok(paths) => {
            let files: Vec<String> = paths.iter().map(|path| cx.session.workspace.short(path)).collect();
            format!("The changes of the last turn were reverted: {}", files.join(", "))
        }
        Err(UndoError::Nothing) => return say(cx, "There is nothing to revert.").await,
        Err(error) => return say(cx, &format!("/undo failed: {error}")).await,
    };
    say(cx, &text).await?;
    // The model must not assume that its files are as it left them.
    let note = format!("[The user reverted the file changes of your last turn with /undo. {text}]");
    cx.session.add_message(Message::user(note))?;
    Ok(StopReason::EndTurn)
}

// PROMPT-19
fn wire_usage(usage: &Usage) -> WireUsage {
    let positive = |tokens: u64| (tokens > 0).then_some(tokens);
    WireUsage::new(usage.context() + usage.output, usage.context(), usage.output)
        .thought_tokens(positive(usage.thought))
        .cached_read_tokens(positive(usage.cache_read))
        .cached_write_tokens(positive(usage.cache_write))
}
