//! What keys and commands do to the chat.

use std::time::Instant;

use attache::wire::v1::{SessionId, SessionInfo};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{App, Effect, Opening, Phase};
use super::ask::Step;
use super::block::said;
use super::commands::{self, Command, Said};
use super::page;
use super::state::Setting;
use super::transcript::Severity;
use attache_term::editor::Did;
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
            KeyCode::Char('l') if ctrl => return self.anew = true,
            KeyCode::Char('z') if ctrl => return self.away = true,
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

    /// What is long is shown to its end, or folded again.
    fn unfold(&mut self) {
        self.canvas.unfold = !self.canvas.unfold;
        self.anew = true;
        let hint = if self.canvas.unfold { "nothing is folded; Ctrl-O folds again" } else { "folded" };
        self.hint = Some(hint.to_owned());
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
            Phase::Idle | Phase::Gone if !self.questions.is_empty() => {
                self.questions.pop_front();
                self.next_question();
            }
            Phase::Idle | Phase::Gone if !self.editor.is_empty() => drop(self.editor.take()),
            Phase::Idle | Phase::Gone if quitting => self.effects.push_back(Effect::Quit(0)),
            Phase::Idle | Phase::Gone => {
                self.quitting = true;
                self.hint = Some("press Ctrl-C again to leave".to_owned());
            }
        }
    }

    fn question_key(&mut self, key: KeyEvent) {
        // A key that was meant for something else must not answer a question that has just appeared.
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
        // What waits can be taken back.
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
            return self.effects.push_back(Effect::Open(Opening::Again));
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
            Said::Prompt(text) if matches!(self.phase, Phase::Idle | Phase::Gone) => {
                self.effects.push_back(Effect::Prompt(text))
            }
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
            Command::Restart if self.phase == Phase::Gone => {
                self.effects.push_back(Effect::Open(Opening::Again));
            }
            Command::Restart => self.open(Opening::Again),
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
            Command::Show(None) => {
                let lines = self.view.past.list(&self.transcript.terminal_outputs.lock(), &self.canvas);
                match lines.is_empty() {
                    true => self.notice(Severity::Info, "there is nothing to show"),
                    false => self.aside(lines),
                }
            }
            Command::Show(Some(number)) => {
                let shown =
                    self.view.past.whole(number, &self.transcript.terminal_outputs.lock(), &self.canvas);
                match shown {
                    Ok(lines) => self.aside(lines),
                    Err(why) => self.notice(Severity::Warning, why),
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
        } else if self.phase == Phase::Gone {
            self.notice(Severity::Warning, "the agent has ended; /restart starts it again");
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
