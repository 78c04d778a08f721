//! Keys and commands.

use std::time::Instant;

use attache::wire::v1::{SessionId, SessionInfo};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{App, Effect, OpenTarget, Phase};
use super::ask::Step;
use super::commands::{self, Command, Input};
use super::help;
use super::item::echo_prompt;
use super::state::Setting;
use super::transcript::Severity;
use attache_term::editor::ActionResult;
use attache_term::editor::complete::complete;

impl App {
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
            KeyCode::Char('l') if ctrl => return self.clear = true,
            KeyCode::Char('z') if ctrl => return self.suspend_requested = true,
            KeyCode::Char('o') if ctrl => return self.unfold(),
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

    /// Unfolds or folds long blocks.
    fn unfold(&mut self) {
        self.canvas.unfold = !self.canvas.unfold;
        self.clear = true;
        let hint = if self.canvas.unfold { "unfolded; Ctrl-O folds again" } else { "folded" };
        self.hint = Some(hint.to_owned());
    }

    /// Ctrl-C: cancels the turn; the second one quits.
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
            Phase::Idle | Phase::Gone if !self.questions.is_empty() => {
                self.questions.pop_front();
                self.next_question();
            }
            Phase::Idle | Phase::Gone if !self.editor.is_empty() => drop(self.editor.take()),
            Phase::Idle | Phase::Gone if quitting => self.effects.push_back(Effect::Quit(0)),
            Phase::Idle | Phase::Gone => {
                self.quitting = true;
                self.hint = Some("press Ctrl-C again to quit".to_owned());
            }
        }
    }

    fn question_key(&mut self, key: KeyEvent) {
        // A key that was typed before the question appeared must not answer it.
        if !self.takes_answers(Instant::now()) {
            return;
        }
        let Some(question) = self.questions.front_mut() else { return };
        let lines = match question.key(key, &self.canvas) {
            Step::Nothing | Step::Changed => return,
            Step::Done(lines) => lines,
            Step::Open(url, lines) => {
                self.effects.push_back(Effect::OpenUrl(url));
                lines
            }
        };
        let lines = self.view.answer(lines);
        self.lines.extend(lines);
        self.questions.pop_front();
        self.next_question();
    }

    fn editor_key(&mut self, key: KeyEvent) {
        // A queued prompt can be edited again.
        if key.code == KeyCode::Up
            && self.editor.is_empty()
            && let Some(last) = self.queue.pop_back()
        {
            return self.editor.set(last);
        }
        if self.editor.menu.is_some() && matches!(key.code, KeyCode::Tab | KeyCode::BackTab | KeyCode::Enter)
        {
            return self.menu_key(key);
        }
        if self.phase == Phase::Gone && key.code == KeyCode::Enter && self.editor.is_empty() {
            return self.effects.push_back(Effect::Open(OpenTarget::Restart));
        }
        match self.editor.key(key) {
            ActionResult::Submit(text) => self.submit(text),
            ActionResult::Complete => self.complete(),
            // The menu of commands opens by itself.
            ActionResult::Changed
                if self.editor.text().starts_with('/')
                    && !self.editor.text().contains(char::is_whitespace) =>
            {
                self.editor.menu =
                    complete(self.editor.text(), self.editor.cursor(), &self.state, &self.canvas.cwd);
            }
            ActionResult::Changed | ActionResult::Ignored => {}
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
            // Enter submits the text, which may be the chosen item.
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
        match commands::parse(&text, &self.state) {
            Input::Prompt(text) if matches!(self.phase, Phase::Idle | Phase::Gone) => {
                self.effects.push_back(Effect::Prompt(text))
            }
            Input::Prompt(text) => self.queue.push_back(text),
            Input::Command(command) => {
                let echo = echo_prompt(&text, &self.canvas);
                self.aside(echo);
                self.command(command);
            }
            Input::Mistake(why) => {
                let echo = echo_prompt(&text, &self.canvas);
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
            Command::Set(None) => self.aside(help::options(&self.state, &self.canvas)),
            Command::Set(Some((option, value))) => match self.state.option(&option) {
                Some(setting) => self.set(&option, Some(setting), value),
                None => self.notice(Severity::Warning, format!("no option `{option}`; /set lists them")),
            },
            Command::Sessions => self.effects.push_back(Effect::ListSessions),
            Command::New => self.open(OpenTarget::New),
            Command::Load(wanted) => {
                let listed =
                    wanted.parse::<usize>().ok().and_then(|number| self.sessions.get(number.checked_sub(1)?));
                let id = listed
                    .map_or_else(|| SessionId::from(wanted.as_str()), |session| session.session_id.clone());
                self.open(OpenTarget::Load(id));
            }
            Command::Restart if self.phase == Phase::Gone => {
                self.effects.push_back(Effect::Open(OpenTarget::Restart));
            }
            Command::Restart => self.open(OpenTarget::Restart),
            Command::Fork => self.open(OpenTarget::Fork),
            Command::Cancel => {
                self.queue.clear();
                if let Phase::Running { cancelling, .. } = &mut self.phase {
                    *cancelling = true;
                    self.effects.push_back(Effect::Cancel);
                } else {
                    self.notice(Severity::Info, "nothing to cancel");
                }
            }
            Command::Diff => {
                let lines = help::changes(&self.transcript, &self.canvas);
                match lines.is_empty() {
                    true => self.notice(Severity::Info, "no file was changed"),
                    false => self.aside(lines),
                }
            }
            Command::Show(None) => {
                let lines = self.view.scrollback.list(&self.transcript.terminal_outputs.lock(), &self.canvas);
                match lines.is_empty() {
                    true => self.notice(Severity::Info, "nothing to show"),
                    false => self.aside(lines),
                }
            }
            Command::Show(Some(number)) => {
                let shown =
                    self.view.scrollback.show(number, &self.transcript.terminal_outputs.lock(), &self.canvas);
                match shown {
                    Ok(lines) => self.aside(lines),
                    Err(why) => self.notice(Severity::Warning, why),
                }
            }
            Command::Cost => self.aside(help::cost(&self.state, self.usage.as_ref(), &self.canvas)),
            Command::Help => self.aside(help::help(&self.state, &self.canvas)),
            Command::Quit => self.effects.push_back(Effect::Quit(0)),
        }
    }

    fn open(&mut self, opening: OpenTarget) {
        if self.phase == Phase::Idle {
            self.effects.push_back(Effect::Open(opening));
        } else if self.phase == Phase::Gone {
            self.notice(Severity::Warning, "the agent has exited; restart it with /restart");
        } else {
            self.notice(Severity::Warning, "the agent is working; cancel it first");
        }
    }

    fn set(&mut self, name: &str, setting: Option<Setting>, value: Option<String>) {
        let Some(setting) = setting else {
            return self.notice(Severity::Info, format!("the agent has no {name}"));
        };
        match value {
            None => self.aside(help::setting(name, &setting, &self.canvas)),
            Some(value) => match setting.find(&value) {
                Some(found) => self.effects.push_back(Effect::Set(setting.target.clone(), found.id.clone())),
                None => {
                    let ids: Vec<&str> = setting.values.iter().map(|value| value.id.as_str()).collect();
                    let what = name.trim_end_matches('s');
                    let text = format!("no {what} \"{value}\"; available: {}", ids.join(", "));
                    self.notice(Severity::Warning, text);
                }
            },
        }
    }

    pub(crate) fn listed(&mut self, sessions: Vec<SessionInfo>) {
        if sessions.is_empty() {
            return self.notice(Severity::Info, "no sessions here");
        }
        self.sessions = sessions;
        self.aside(help::sessions(&self.sessions, &self.state, &self.canvas));
    }
}
