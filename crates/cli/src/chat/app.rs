//! The state of the chat: events and keys in, lines and effects out. It knows no terminal, clock or
//! connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use attache::client::{ElicitationAsk, Event, PermissionAsk, RequestedInput};
use attache::wire::v1::{ElicitationId, SessionId, SessionInfo, StopReason, Usage};
use attache_host::budget::Budget;
use attache_host::policy::{Decision, Notice, Policy};

use super::ask::Question;
use super::ask::choice::Choice;
use super::ask::form::Form;
use super::ask::url::Page;
use super::attention::Attention;
use super::files::Files;
use super::foreground::Foreground;
use super::state::{SessionState, Target};
use super::tasks::TaskId;
use super::transcript::{Severity, Transcript};
use super::undo::Carried;
use super::view::{Canvas, View};
use crate::checkpoints::Parts;
use crate::tool_call::complete_request;
use attache_term::editor::Editor;
use attache_term::picker::Picker;
use attache_term::render::style::Line;

/// The time in which a second Ctrl-C quits.
const QUIT_WITHIN: Duration = Duration::from_secs(3);

/// Bytes of an answer that `/copy` copies.
const MAX_ANSWER: usize = 1 << 20;

/// A request of the chat to the main loop.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Cancels the turn.
    Cancel,
    Quit(u8),
    Prompt(String),
    Open(OpenTarget),
    Set(Target, String),
    ListSessions,
    /// Lists the conversations with all agents.
    ListConversations,
    /// Leaves, and runs this program with other arguments.
    Become(Vec<String>),
    ListPermissions,
    /// Revokes a remembered answer.
    Revoke(u64),
    ListServers,
    /// Lists the files for `@`.
    ListFiles,
    Login,
    /// Writes the conversation to a file.
    Export(Option<String>),
    OpenUrl(String),
    /// Attaches the picture in the clipboard.
    PastePicture,
    /// Shows all changes of files.
    Diff,
    /// Takes back the last turn's changes of files, or lists those of one file.
    Undo(Option<String>),
    /// Takes back one part of a file's change, or all of it.
    UndoPart(Box<Parts>, Option<usize>),
    /// Lists the prompts to go back to.
    ListPrompts,
    /// Goes back to before a turn; the text is its prompt.
    Rewind(i64, String),
    Redo,
    /// Cancels background work.
    CancelTask(TaskId),
}

/// The value of a row in a list of the chat.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Pick {
    Set(Target, String),
    Load(SessionId),
    /// A conversation of another agent or directory: arguments of this program.
    Become(Vec<String>),
    Revoke(u64),
    Login(Vec<String>),
    Rewind(i64, String),
    UndoPart(Box<Parts>, Option<usize>),
    CancelTask(TaskId),
}

/// The session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpenTarget {
    New,
    Load(SessionId),
    Fork,
    /// The same session, after a restart of the agent.
    Restart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    /// A session opens.
    Opening(Instant),
    Running {
        since: Instant,
        cancelling: bool,
    },
    /// The agent has exited and is restarted on demand.
    Gone,
}

pub(crate) struct App {
    pub(crate) canvas: Canvas,
    pub(crate) transcript: Transcript,
    pub(crate) view: View,
    pub(crate) editor: Editor,
    pub(crate) phase: Phase,
    pub(crate) state: SessionState,
    pub(crate) agent: String,
    pub(crate) queue: VecDeque<String>,
    pub(crate) questions: VecDeque<Question>,
    /// Whether the first question is on the screen.
    pub(crate) introduced: bool,
    /// The time at which it appeared.
    pub(crate) asked: Option<Instant>,
    /// Whether the user was typing when it appeared: keys still go to the editor, so that no letter
    /// answers.
    pub(crate) writing: bool,
    /// A short text in place of the status.
    pub(crate) hint: Option<String>,
    pub(crate) usage: Option<Usage>,
    /// Lines that go to the scrollback with the next frame.
    pub(crate) lines: Vec<Line>,
    /// Whether the next frame clears the screen.
    pub(crate) clear: bool,
    /// Whether the user pressed Ctrl-Z.
    pub(crate) suspend_requested: bool,
    pub(crate) effects: VecDeque<Effect>,
    pub(super) policy: Arc<Policy>,
    /// Limits of a turn and of all turns, and the tokens used so far.
    pub(crate) time: Option<Duration>,
    pub(crate) budget: Budget,
    pub(crate) used: u64,
    /// Whether additional notices are shown.
    pub(crate) verbose: bool,
    /// The newest lines of the connection.
    pub(crate) wire: VecDeque<String>,
    /// When the user pressed Ctrl-C, which quits the second time.
    pub(super) quitting: Option<Instant>,
    /// Whether Esc was pressed once, which clears the line the second time.
    pub(super) escaped: bool,
    /// Whether Ctrl-X was pressed; Ctrl-E follows.
    pub(super) prefixed: bool,
    /// The list that takes keys.
    pub(crate) picker: Option<Picker<Pick>>,
    /// The command of the agent that gets the keys.
    pub(crate) typing: Option<u64>,
    /// The program that gets the terminal next.
    pub(crate) foreground: Option<Foreground>,
    /// Arguments of the program that replaces this one after the chat.
    pub(crate) successor: Option<Vec<String>>,
    /// The prompt that is sent as soon as the cancelled turn has ended.
    pub(super) next: Option<String>,
    pub(crate) files: Files,
    /// The answer of the last turn.
    pub(crate) answer: String,
    /// The text for the clipboard.
    pub(crate) copied: Option<String>,
    pub(crate) attention: Attention,
    /// The prompt of the running turn.
    sent: String,
    pub(super) sessions: Vec<SessionInfo>,
    /// The title in the list of sessions, or the name of the saved session, for an agent that
    /// reports no title.
    pub(crate) known_title: Option<String>,
    /// Whether it was said that the agent prints lines that are no messages.
    pub(super) noise_shown: bool,
    /// Whether the agent is our own.
    pub(crate) is_own_agent: bool,
    /// Whether it was said that turns cannot be undone.
    pub(crate) undo_failed: bool,
    /// What the next prompt brings along.
    pub(crate) carried: Vec<Carried>,
}

impl App {
    pub(crate) fn new(
        canvas: Canvas,
        agent: String,
        state: SessionState,
        policy: Arc<Policy>,
        editor: Editor,
    ) -> App {
        App {
            canvas,
            transcript: Transcript::default(),
            view: View::default(),
            editor,
            phase: Phase::Idle,
            state,
            agent,
            queue: VecDeque::new(),
            questions: VecDeque::new(),
            introduced: false,
            asked: None,
            writing: false,
            hint: None,
            usage: None,
            lines: Vec::new(),
            clear: false,
            suspend_requested: false,
            effects: VecDeque::new(),
            policy,
            time: None,
            budget: Budget::new(),
            used: 0,
            verbose: false,
            wire: VecDeque::new(),
            quitting: None,
            escaped: false,
            prefixed: false,
            picker: None,
            typing: None,
            foreground: None,
            successor: None,
            next: None,
            files: Files::default(),
            answer: String::new(),
            copied: None,
            attention: Attention::default(),
            sent: String::new(),
            sessions: Vec::new(),
            known_title: None,
            noise_shown: false,
            is_own_agent: false,
            undo_failed: false,
            carried: Vec::new(),
        }
    }

    /// Switches to another session.
    pub(crate) fn opened(&mut self, state: SessionState) {
        let listed = self.sessions.iter().find(|session| session.session_id == state.id);
        self.known_title = listed.and_then(|session| session.title.clone());
        self.state = state;
        self.transcript.model.plans.clear();
        self.transcript.model.subagents.clear();
        self.transcript.changes.clear();
        self.transcript.tasks.opened();
        self.usage = None;
    }

    pub(crate) fn notice(&mut self, severity: Severity, text: impl Into<String>) {
        self.transcript.notice(severity, text);
    }

    pub(super) fn aside(&mut self, lines: Vec<Line>) {
        let lines = self.view.aside(lines);
        self.lines.extend(lines);
    }

    // Events.

    pub(crate) fn event(&mut self, event: Event) {
        if let Event::Text(chunk) = &event
            && self.answer.len() < MAX_ANSWER
        {
            self.answer.push_str(&chunk.text);
        }
        match event {
            Event::Permission(ask) => self.permission(ask),
            Event::Elicitation(ask) => self.elicitation(ask),
            Event::FromSubagent(_, inner)
                if matches!(*inner, Event::Permission(_) | Event::Elicitation(_)) =>
            {
                self.event(*inner);
            }
            Event::ElicitationComplete(id) => self.visited(&id),
            // Some agents echo the prompt, which is on the screen already.
            Event::User(chunk) if self.is_running() && self.sent.contains(chunk.text.trim()) => {}
            event => self.transcript.event(event),
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    /// The policy decides first, the user decides the rest.
    // PERM-05, PERM-07
    fn permission(&mut self, ask: PermissionAsk) {
        let known = self.transcript.find_tool(&ask.tool_call().tool_call_id);
        let request = complete_request(ask.request(), known.map(|(_, call)| &call.state));
        let title = request.tool_call.title.clone().unwrap_or_default();
        match self.policy.decide(&request) {
            Decision::Choose(selected) => {
                if selected.allows {
                    self.transcript.allow(&request.tool_call.tool_call_id, &selected.reason.text);
                } else {
                    self.transcript.deny(&request.tool_call.tool_call_id);
                    self.notice(Severity::Warning, format!("denied: {title} ({})", selected.reason));
                }
                let _ = ask.choose(&selected.option);
            }
            Decision::Deny(reason) | Decision::Fail(reason) => {
                self.transcript.deny(&request.tool_call.tool_call_id);
                self.notice(Severity::Warning, format!("denied: {title} ({reason})"));
            }
            Decision::Ask(question) => {
                self.transcript.asked(&request);
                let choice = Choice::permission(ask, request, question, self.policy.clone());
                self.ask(Question::Choice(Box::new(choice)));
            }
        }
    }

    pub(crate) fn elicitation(&mut self, ask: ElicitationAsk) {
        let question = match ask.requested() {
            Some(RequestedInput::Form(_)) => Question::Form(Box::new(Form::new(ask, &self.agent))),
            Some(RequestedInput::Url { .. }) => Question::Page(Box::new(Page::new(ask, &self.agent))),
            // ELIC-33: dropped, and so cancelled.
            _ => return,
        };
        self.ask(question);
    }

    /// Closes the question about a page whose purpose is fulfilled.
    pub(crate) fn visited(&mut self, id: &ElicitationId) {
        let front = self.questions.front().is_some_and(|question| question.is(id));
        self.questions.retain(|question| !question.is(id));
        if front {
            self.next_question();
        }
        self.notice(Severity::Info, "the agent's request is complete");
    }

    pub(crate) fn ask(&mut self, question: Question) {
        if self.questions.is_empty() {
            self.introduced = false;
            self.asked = None;
            self.writing = !self.editor.is_empty() || self.typing.is_some();
            self.attention.asks(&self.agent);
        }
        self.questions.push_back(question);
    }

    /// Removes withdrawn questions.
    pub(crate) fn prune(&mut self) {
        let front = self.questions.front().is_some_and(Question::is_open);
        self.questions.retain(Question::is_open);
        if !front {
            self.next_question();
        }
    }

    /// Returns the time from which the first question takes answers.
    pub(crate) fn answers_at(&self) -> Option<Instant> {
        self.asked
            .filter(|_| self.introduced && !self.questions.is_empty())?
            .checked_add(crate::output::GRACE)
    }

    /// Returns whether the first question has been visible long enough to be answered.
    pub(crate) fn takes_answers(&self, now: Instant) -> bool {
        self.answers_at().is_some_and(|ready| now >= ready)
    }

    /// Shows a decision of the guard, with its tool call if that is known.
    pub(crate) fn guard_notice(&mut self, notice: &Notice) {
        if !notice.allowed {
            self.transcript.deny_running();
            self.notice(Severity::Warning, format!("denied: {} ({})", notice.effect, notice.reason));
        } else if notice.reason.is_automatic() && !self.transcript.allow_running(&notice.reason.text) {
            self.notice(Severity::Info, format!("{}: allowed by {}", notice.effect, notice.reason));
        }
    }

    /// Returns the time at which the first question expires.
    pub(crate) fn expiry(&self) -> Option<Instant> {
        self.asked?.checked_add(self.questions.front()?.limit()?)
    }

    /// Returns the time at which a first Ctrl-C is forgotten.
    pub(crate) fn quit_expiry(&self) -> Option<Instant> {
        self.quitting?.checked_add(QUIT_WITHIN)
    }

    /// Forgets a first Ctrl-C.
    pub(crate) fn forget_quit(&mut self) {
        self.quitting = None;
        self.hint = None;
    }

    /// Expires the first question.
    pub(crate) fn expire(&mut self) {
        if let Some(mut question) = self.questions.pop_front() {
            question.expire();
            self.notice(Severity::Warning, "no answer in time");
            self.next_question();
        }
    }

    pub(super) fn next_question(&mut self) {
        self.introduced = false;
        self.asked = None;
        let elsewhere = !self.editor.is_empty() || self.typing.is_some();
        self.writing = elsewhere && !self.questions.is_empty();
    }

    // Turns.

    pub(crate) fn turn_started(&mut self, text: &str, attached: &[String], now: Instant) {
        self.sent = text.to_owned();
        self.answer.clear();
        self.phase = Phase::Running { since: now, cancelling: false };
        self.transcript.model.plans.clear();
        self.transcript.prompt(text);
        if !attached.is_empty() {
            self.notice(Severity::Info, format!("attached: {}", attached.join(", ")));
        }
    }

    /// Ends the turn; `explain` renders errors without secrets.
    pub(crate) fn turn_ended(
        &mut self,
        end: &attache::Result<Option<StopReason>>,
        usage: Option<&Usage>,
        explain: impl Fn(&attache::Error) -> String,
    ) {
        let cancelled = matches!(self.phase, Phase::Running { cancelling: true, .. });
        if let Phase::Running { since, .. } = self.phase {
            self.attention.done(since, end.is_ok(), &self.agent);
        }
        self.phase = Phase::Idle;
        self.sent.clear();
        if usage.is_some() {
            self.usage = usage.cloned();
        }
        self.prune();
        // An unfinished plan goes to the scrollback; a finished one has been seen.
        if self.transcript.has_open_plan() {
            let plan = super::view::plans(&self.transcript, &self.canvas);
            self.transcript.end_turn();
            self.settle();
            self.aside(plan);
        }
        self.transcript.model.plans.clear();
        self.transcript.end_turn();
        match end {
            Ok(Some(StopReason::EndTurn)) => {}
            Ok(Some(StopReason::Cancelled)) => self.notice(Severity::Warning, "cancelled"),
            Ok(Some(StopReason::MaxTokens)) => {
                self.notice(Severity::Warning, "the agent stopped: token limit reached")
            }
            Ok(Some(StopReason::MaxTurnRequests)) => {
                self.notice(Severity::Warning, "the agent stopped: too many model requests");
            }
            Ok(Some(StopReason::Refusal)) => self.notice(Severity::Warning, "the agent refused to continue"),
            Ok(_) => self.notice(Severity::Warning, "the turn ended without a stop reason"),
            Err(error) => self.notice(Severity::Error, explain(error)),
        }
        let next = self.next.take();
        if let Some(text) = next.filter(|_| end.is_ok()) {
            self.effects.push_back(Effect::Prompt(text));
        } else if cancelled || end.is_err() {
            self.requeue();
        } else {
            self.next_prompt();
        }
    }

    /// Cancels the running turn.
    pub(crate) fn cancel(&mut self) {
        if let Phase::Running { cancelling, .. } = &mut self.phase {
            *cancelling = true;
            self.effects.push_back(Effect::Cancel);
        }
    }

    /// Sends the first queued prompt.
    pub(crate) fn next_prompt(&mut self) {
        self.effects.extend(self.queue.pop_front().map(Effect::Prompt));
    }

    /// Returns queued prompts to the editor after a cancel, instead of sending them.
    pub(crate) fn requeue(&mut self) {
        if !self.queue.is_empty() && self.editor.is_empty() {
            let texts: Vec<String> = self.queue.drain(..).collect();
            self.editor.set(texts.join("\n"));
        }
    }

    /// Moves finished blocks to the scrollback, and all unfinished ones but the last.
    pub(crate) fn settle(&mut self) {
        let lines = self.view.settle(&mut self.transcript, &self.canvas, 0);
        self.lines.extend(lines);
    }
}

#[cfg(test)]
#[path = "app_tests.rs"]
mod tests;
