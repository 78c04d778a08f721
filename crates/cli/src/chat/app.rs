//! The chat as a state: events and keys go in, lines and wishes come out. It knows no terminal, no clock and no connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use attache::client::{ElicitationAsk, Event, PermissionAsk, Speaker, Wanted};
use attache::wire::v1::{RequestPermissionRequest, SessionId, SessionInfo, StopReason, Usage};
use attache_host::policy::{Decision, Policy};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::ask::choice::Choice;
use super::ask::form::Form;
use super::ask::url::Page;
use super::ask::{Question, Step};
use super::commands::{self, Command, Said};
use super::editor::complete::complete;
use super::editor::{Did, Editor};
use super::page;
use super::render::style::Line;
use super::state::{SessionState, Setting, Target};
use super::tool::ToolState;
use super::transcript::{Severity, Transcript};
use super::view::{Canvas, View, said};

/// What the chat wants from whoever drives it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Cancel what runs.
    Cancel,
    Quit(u8),
    Prompt(String),
    Open(Opening),
    Set(Target, String),
    ListSessions,
    OpenUrl(String),
    /// Draw everything anew.
    Redraw,
}

/// Which session to go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Opening {
    New,
    Load(SessionId),
    Fork,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
    /// A session is being opened.
    Opening(Instant),
    Running {
        since: Instant,
        cancelling: bool,
    },
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
    /// The question in front has been introduced.
    pub(crate) introduced: bool,
    /// Since when it stands.
    pub(crate) asked: Option<Instant>,
    /// The user was writing when the question came: keys go on into the editor, so that no letter of a sentence answers.
    pub(crate) writing: bool,
    /// A word for the moment, instead of the state.
    pub(crate) hint: Option<String>,
    pub(crate) usage: Option<Usage>,
    /// Lines on their way up into the terminal's history.
    pub(crate) lines: Vec<Line>,
    pub(crate) effects: VecDeque<Effect>,
    policy: Arc<Policy>,
    quitting: bool,
    /// The prompt of the turn that runs.
    sent: String,
    sessions: Vec<SessionInfo>,
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
            effects: VecDeque::new(),
            policy,
            quitting: false,
            sent: String::new(),
            sessions: Vec::new(),
        }
    }

    /// Goes on with another session.
    pub(crate) fn opened(&mut self, state: SessionState) {
        self.state = state;
        self.transcript.plans.clear();
        self.transcript.changes.clear();
        self.usage = None;
    }

    pub(crate) fn notice(&mut self, severity: Severity, text: impl Into<String>) {
        self.transcript.notice(severity, text);
    }

    fn aside(&mut self, lines: Vec<Line>) {
        let lines = self.view.aside(lines);
        self.lines.extend(lines);
    }

    // Events.

    pub(crate) fn event(&mut self, event: Event) {
        match event {
            Event::Permission(ask) => self.permission(ask),
            Event::Elicitation(ask) => self.elicitation(ask),
            Event::FromSubagent(_, inner)
                if matches!(*inner, Event::Permission(_) | Event::Elicitation(_)) =>
            {
                self.event(*inner);
            }
            // Some agents repeat the prompt; it is on the screen already.
            Event::User(chunk) if self.is_running() && self.sent.contains(chunk.text.trim()) => {}
            event => self.transcript.event(event),
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    /// PERM-05, PERM-07: the user's settings answer what they can, the rest is asked.
    fn permission(&mut self, ask: PermissionAsk) {
        let id = ask.tool_call().tool_call_id.clone();
        let known = self.transcript.find_tool(&id);
        let mut tool = known.map_or_else(|| ToolState::new(id), |tool| tool.clone());
        tool.merge(ask.tool_call().clone());
        let request = completed(ask.request(), &tool);
        match self.policy.decide(&request) {
            Decision::Choose(choice) => {
                if !choice.allows {
                    self.notice(Severity::Warning, format!("denied: {} ({})", tool.title, choice.reason));
                }
                let _ = ask.choose(&choice.option);
            }
            Decision::Deny(reason) | Decision::Fail(reason) => {
                self.notice(Severity::Warning, format!("denied: {} ({reason})", tool.title));
            }
            Decision::Ask(_) => {
                if let Some(known) = self.transcript.find_tool(&tool.id) {
                    known.shown = true;
                }
                let choice = Choice::permission(ask, request, &tool, self.policy.clone());
                self.ask(Question::Choice(Box::new(choice)));
            }
        }
    }

    pub(crate) fn elicitation(&mut self, ask: ElicitationAsk) {
        let question = match ask.wanted() {
            Some(Wanted::Form(_)) => Question::Form(Box::new(Form::new(ask, &self.agent))),
            Some(Wanted::Url { .. }) => Question::Page(Box::new(Page::new(ask, &self.agent))),
            // ELIC-33: dropped, and so cancelled.
            _ => return,
        };
        self.ask(question);
    }

    pub(crate) fn ask(&mut self, question: Question) {
        if self.questions.is_empty() {
            self.introduced = false;
            self.writing = !self.editor.is_empty();
        }
        self.questions.push_back(question);
    }

    /// Forgets the questions that nobody wants an answer to.
    pub(crate) fn prune(&mut self) {
        let front = self.questions.front().is_some_and(Question::is_open);
        self.questions.retain(Question::is_open);
        if !front {
            self.next_question();
        }
    }

    /// When the question in front has stood long enough.
    pub(crate) fn expiry(&self) -> Option<Instant> {
        self.asked?.checked_add(self.questions.front()?.limit()?)
    }

    /// Nobody has answered in time.
    pub(crate) fn expire(&mut self) {
        if let Some(mut question) = self.questions.pop_front() {
            question.expire();
            self.notice(Severity::Warning, "nobody has answered in time");
            self.next_question();
        }
    }

    fn next_question(&mut self) {
        self.introduced = false;
        self.writing = !self.editor.is_empty() && !self.questions.is_empty();
    }

    // Turns.

    pub(crate) fn turn_started(&mut self, text: &str, attached: &[String], now: Instant) {
        self.sent = text.to_owned();
        self.phase = Phase::Running { since: now, cancelling: false };
        self.transcript.plans.clear();
        self.transcript.say(Speaker::User, None, text, false);
        if !attached.is_empty() {
            self.notice(Severity::Info, format!("attached: {}", attached.join(", ")));
        }
    }

    pub(crate) fn turn_ended(&mut self, end: &attache::Result<Option<StopReason>>, usage: Option<&Usage>) {
        let cancelled = matches!(self.phase, Phase::Running { cancelling: true, .. });
        self.phase = Phase::Idle;
        self.sent.clear();
        if usage.is_some() {
            self.usage = usage.cloned();
        }
        self.prune();
        // What is left of a plan stays on record; one that is done has been seen.
        if self.transcript.plan_open() {
            let plan = super::view::plans(&self.transcript, &self.canvas);
            self.transcript.end_turn();
            self.settle();
            self.aside(plan);
        }
        self.transcript.plans.clear();
        self.transcript.end_turn();
        match end {
            Ok(Some(StopReason::EndTurn)) => {}
            Ok(Some(StopReason::Cancelled)) => self.notice(Severity::Warning, "cancelled"),
            Ok(Some(StopReason::MaxTokens)) => {
                self.notice(Severity::Warning, "the agent stopped: no tokens are left")
            }
            Ok(Some(StopReason::MaxTurnRequests)) => {
                self.notice(Severity::Warning, "the agent stopped: it has asked its model too often");
            }
            Ok(Some(StopReason::Refusal)) => self.notice(Severity::Warning, "the agent refuses to go on"),
            Ok(_) => self.notice(Severity::Warning, "the turn ended without saying how"),
            Err(error) => self.notice(Severity::Error, error.to_string()),
        }
        if cancelled || end.is_err() {
            self.requeue();
        } else if let Some(next) = self.queue.pop_front() {
            self.effects.push_back(Effect::Prompt(next));
        }
    }

    /// What waited is not sent after a cancel; it comes back to be looked at.
    fn requeue(&mut self) {
        if !self.queue.is_empty() && self.editor.is_empty() {
            let texts: Vec<String> = self.queue.drain(..).collect();
            self.editor.set(texts.join("\n"));
        }
    }

    /// Everything that is finished goes up, and all but the last of what is not.
    pub(crate) fn settle(&mut self) {
        let lines = self.view.settle(&mut self.transcript, &self.canvas, 0);
        self.lines.extend(lines);
    }

    // Keys.

    pub(crate) fn paste(&mut self, text: &str) {
        match self.questions.front_mut() {
            Some(question) if !self.writing => question.paste(text),
            _ => self.editor.paste(text),
        }
    }

    pub(crate) fn key(&mut self, key: KeyEvent) {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let quitting = std::mem::take(&mut self.quitting);
        self.hint = None;
        match key.code {
            KeyCode::Char('c') if ctrl => return self.interrupt(quitting),
            KeyCode::Char('l') if ctrl => return self.effects.push_back(Effect::Redraw),
            KeyCode::Char('d') if ctrl && self.editor.is_empty() && self.questions.is_empty() => {
                return self.effects.push_back(Effect::Quit(0));
            }
            KeyCode::Tab if self.writing && !self.questions.is_empty() => {
                self.writing = false;
                return;
            }
            _ => {}
        }
        if !self.questions.is_empty() && !self.writing {
            return self.question_key(key);
        }
        self.editor_key(key);
    }

    /// Ctrl-C: cancels what runs; the second one leaves.
    fn interrupt(&mut self, quitting: bool) {
        match &mut self.phase {
            Phase::Running { cancelling: true, .. } => self.effects.push_back(Effect::Quit(130)),
            Phase::Running { cancelling, .. } => {
                *cancelling = true;
                self.effects.push_back(Effect::Cancel);
            }
            Phase::Opening(_) if quitting => self.effects.push_back(Effect::Quit(130)),
            Phase::Opening(_) => {
                self.quitting = true;
                self.effects.push_back(Effect::Cancel);
            }
            Phase::Idle if !self.questions.is_empty() => {
                self.questions.pop_front();
                self.next_question();
            }
            Phase::Idle if !self.editor.is_empty() => drop(self.editor.take()),
            Phase::Idle if quitting => self.effects.push_back(Effect::Quit(0)),
            Phase::Idle => {
                self.quitting = true;
                self.hint = Some("press Ctrl-C again to leave".to_owned());
            }
        }
    }

    fn question_key(&mut self, key: KeyEvent) {
        let Some(question) = self.questions.front_mut() else { return };
        let lines = match question.key(key, &self.canvas) {
            Step::Nothing | Step::Changed => return,
            Step::Done(lines) => lines,
            Step::Open(url, lines) => {
                self.effects.push_back(Effect::OpenUrl(url));
                lines
            }
        };
        self.lines.extend(lines);
        self.questions.pop_front();
        self.next_question();
    }

    fn editor_key(&mut self, key: KeyEvent) {
        // What waits can be taken back.
        if key.code == KeyCode::Up && self.editor.is_empty() {
            if let Some(last) = self.queue.pop_back() {
                return self.editor.set(last);
            }
        }
        if self.editor.menu.is_some() && matches!(key.code, KeyCode::Tab | KeyCode::BackTab | KeyCode::Enter)
        {
            return self.menu_key(key);
        }
        match self.editor.key(key) {
            Did::Submit(text) => self.submit(text),
            Did::Complete => self.complete(),
            // The names of commands come up by themselves.
            Did::Changed
                if self.editor.text().starts_with('/')
                    && !self.editor.text().contains(char::is_whitespace) =>
            {
                self.editor.menu =
                    complete(self.editor.text(), self.editor.cursor(), &self.state, &self.canvas.cwd);
            }
            Did::Changed | Did::Nothing => {}
        }
    }

    fn complete(&mut self) {
        let menu = complete(self.editor.text(), self.editor.cursor(), &self.state, &self.canvas.cwd);
        let Some(menu) = menu else { return };
        let typed = self.editor.cursor() - menu.from;
        let common = menu.common().to_owned();
        if common.len() > typed || menu.items.len() == 1 {
            self.editor.replace_back(menu.from, &common);
        }
        self.editor.menu = (menu.items.len() > 1).then_some(menu);
    }

    fn menu_key(&mut self, key: KeyEvent) {
        let Some(mut menu) = self.editor.menu.take() else { return };
        if key.code == KeyCode::Enter {
            // Enter means what is written, which may be what was chosen.
            return self.editor_key(key);
        }
        let common = menu.common().to_owned();
        let typed = self.editor.cursor() - menu.from;
        if menu.chosen.is_none() && common.len() > typed {
            self.editor.replace_back(menu.from, &common);
            self.editor.menu = (menu.items.len() > 1).then_some(menu);
            return;
        }
        menu.step(key.code == KeyCode::BackTab);
        if let Some(item) = menu.chosen() {
            let text = item.text.clone();
            self.editor.replace_back(menu.from, &text);
        }
        self.editor.menu = (menu.items.len() > 1).then_some(menu);
    }

    // Commands.

    fn submit(&mut self, text: String) {
        match commands::read(&text, &self.state) {
            Said::Prompt(text) if self.phase == Phase::Idle => self.effects.push_back(Effect::Prompt(text)),
            Said::Prompt(text) => self.queue.push_back(text),
            Said::Command(command) => {
                let echo = said(&text, &self.canvas);
                self.aside(echo);
                self.command(command);
            }
            Said::Mistake(why) => {
                let echo = said(&text, &self.canvas);
                self.aside(echo);
                self.notice(Severity::Warning, why);
            }
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Mode(value) => self.set("modes", self.state.mode(), value),
            Command::Model(value) => self.set("models", self.state.model(), value),
            Command::Set(None) if self.state.options.is_empty() => {
                self.notice(Severity::Info, "the agent has no options");
            }
            Command::Set(None) => self.aside(page::options(&self.state, &self.canvas)),
            Command::Set(Some((option, value))) => match self.state.option(&option) {
                Some(setting) => self.set(&option, Some(setting), value),
                None => self.notice(
                    Severity::Warning,
                    format!("the agent has no option `{option}`; /set lists them"),
                ),
            },
            Command::Sessions => self.effects.push_back(Effect::ListSessions),
            Command::New => self.open(Opening::New),
            Command::Load(wanted) => {
                let listed =
                    wanted.parse::<usize>().ok().and_then(|number| self.sessions.get(number.checked_sub(1)?));
                let id = listed
                    .map_or_else(|| SessionId::from(wanted.as_str()), |session| session.session_id.clone());
                self.open(Opening::Load(id));
            }
            Command::Fork => self.open(Opening::Fork),
            Command::Cancel => {
                self.queue.clear();
                if let Phase::Running { cancelling, .. } = &mut self.phase {
                    *cancelling = true;
                    self.effects.push_back(Effect::Cancel);
                } else {
                    self.notice(Severity::Info, "nothing runs");
                }
            }
            Command::Diff => {
                let lines = page::changes(&self.transcript, &self.canvas);
                match lines.is_empty() {
                    true => self.notice(Severity::Info, "no file was changed"),
                    false => self.aside(lines),
                }
            }
            Command::Cost => self.aside(page::cost(&self.state, self.usage.as_ref(), &self.canvas)),
            Command::Help => self.aside(page::help(&self.state, &self.canvas)),
            Command::Quit => self.effects.push_back(Effect::Quit(0)),
        }
    }

    fn open(&mut self, opening: Opening) {
        if self.phase == Phase::Idle {
            self.effects.push_back(Effect::Open(opening));
        } else {
            self.notice(Severity::Warning, "not while the agent works; cancel it first");
        }
    }

    fn set(&mut self, name: &str, setting: Option<Setting>, value: Option<String>) {
        let Some(setting) = setting else {
            return self.notice(Severity::Info, format!("the agent has no {name}"));
        };
        match value {
            None => self.aside(page::setting(name, &setting, &self.canvas)),
            Some(value) => match setting.find(&value) {
                Some(found) => self.effects.push_back(Effect::Set(setting.target.clone(), found.id.clone())),
                None => {
                    let ids: Vec<&str> = setting.values.iter().map(|value| value.id.as_str()).collect();
                    self.notice(Severity::Warning, format!("`{value}` is none of {}", ids.join(", ")));
                }
            },
        }
    }

    pub(crate) fn listed(&mut self, sessions: Vec<SessionInfo>) {
        if sessions.is_empty() {
            return self.notice(Severity::Info, "the agent has no stored sessions here");
        }
        self.sessions = sessions;
        self.aside(page::sessions(&self.sessions, &self.state, &self.canvas));
    }
}

/// A permission request with all that is known about its tool call, so that rules do not depend on how often an agent
/// repeats itself.
fn completed(request: &RequestPermissionRequest, tool: &ToolState) -> RequestPermissionRequest {
    let mut request = request.clone();
    let call = &mut request.tool_call;
    call.title = Some(tool.title.clone());
    call.kind = Some(tool.kind);
    call.content = Some(tool.content.clone());
    call.locations = Some(tool.locations.clone());
    call.raw_input.clone_from(&tool.raw_input);
    request
}

#[cfg(test)]
#[path = "app_tests.rs"]
mod tests;
