//! Keys and commands.

use std::time::Instant;

use attache::wire::v1::{SessionId, SessionInfo};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::{App, Effect, OpenTarget, Phase, Pick};
use super::ask::{Refusal, Step};
use super::clipboard;
use super::commands::{self, Command, Input};
use super::foreground::Foreground;
use super::help;
use super::item::echo_prompt;
use super::state::{Setting, SettingValue};
use super::transcript::Severity;
use attache_term::editor::ActionResult;
use attache_term::editor::complete::complete;
use attache_term::picker::{Picked, Picker, Row};

impl App {
    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(number) = self.typing {
            return self.type_bytes(number, text.as_bytes());
        }
        match self.questions.front_mut() {
            Some(question) if !self.writing => question.paste(text),
            _ => match clipboard::dropped(text) {
                Some(mention) => self.editor.paste(&mention),
                None => self.editor.paste(text),
            },
        }
    }

    pub(crate) fn key(&mut self, key: KeyEvent) {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let quitting = self.quit_expiry().is_some_and(|expiry| Instant::now() < expiry);
        self.quitting = None;
        let escaped = std::mem::take(&mut self.escaped);
        let prefixed = std::mem::take(&mut self.prefixed);
        self.hint = None;
        if self.picker.is_some() {
            return self.picker_key(key);
        }
        if let Some(number) = self.typing {
            return self.type_key(number, key);
        }
        let asked = !self.questions.is_empty() && !self.writing;
        match key.code {
            KeyCode::Char('c') if ctrl => return self.interrupt(quitting),
            KeyCode::Char('l') if ctrl => return self.clear = true,
            KeyCode::Char('z') if ctrl => return self.suspend_requested = true,
            KeyCode::Char('o') if ctrl => return self.unfold(),
            KeyCode::Char('t') if ctrl => return self.start_typing(),
            KeyCode::Char('d') if ctrl && self.editor.is_empty() && self.questions.is_empty() => {
                return self.effects.push_back(Effect::Quit(0));
            }
            KeyCode::Tab if self.writing && !self.questions.is_empty() => {
                self.writing = false;
                return;
            }
            _ if asked => return self.question_key(key),
            KeyCode::Esc => return self.escape(key, escaped),
            KeyCode::Char('g') if ctrl && !self.editor.is_searching() => {
                return self.foreground = Some(Foreground::Editor);
            }
            KeyCode::Char('e') if ctrl && prefixed => return self.foreground = Some(Foreground::Editor),
            KeyCode::Char('x') if ctrl => return self.prefixed = true,
            KeyCode::Char('v') if ctrl => return self.effects.push_back(Effect::PastePicture),
            KeyCode::BackTab if self.editor.menu.is_none() => return self.next_mode(),
            _ => {}
        }
        self.editor_key(key);
    }

    /// Esc: closes a menu, interrupts the agent, and pressed twice clears the line.
    fn escape(&mut self, key: KeyEvent, escaped: bool) {
        if self.editor.is_searching() {
            let _: ActionResult = self.editor.key(key);
        } else if self.editor.menu.take().is_some() {
            self.files.dismiss();
        } else {
            match &mut self.phase {
                Phase::Running { cancelling, .. } => {
                    if !std::mem::replace(cancelling, true) {
                        self.effects.push_back(Effect::Cancel);
                    }
                }
                Phase::Opening(_) => self.effects.push_back(Effect::Cancel),
                Phase::Idle | Phase::Gone if self.editor.is_empty() => {}
                Phase::Idle | Phase::Gone if escaped => drop(self.editor.take()),
                Phase::Idle | Phase::Gone => {
                    self.escaped = true;
                    self.hint = Some("press Esc again to clear the line".to_owned());
                }
            }
        }
    }

    /// Shift-Tab: switches to the next mode of the agent.
    fn next_mode(&mut self) {
        let Some(setting) = self.state.mode().filter(|setting| setting.values.len() > 1) else {
            return self.hint = Some("the agent has no modes to switch to".to_owned());
        };
        let at = setting.values.iter().position(|value| value.id == setting.current).map_or(0, |at| at + 1);
        if let Some(next) = setting.values.get(at % setting.values.len()) {
            self.effects.push_back(Effect::Set(setting.target.clone(), next.id.clone()));
        }
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
                self.quitting = Some(Instant::now());
                self.effects.push_back(Effect::Cancel);
            }
            Phase::Idle | Phase::Gone if !self.questions.is_empty() => {
                self.questions.pop_front();
                self.next_question();
            }
            Phase::Idle | Phase::Gone if !self.editor.is_empty() => drop(self.editor.take()),
            Phase::Idle | Phase::Gone if quitting => self.effects.push_back(Effect::Quit(0)),
            Phase::Idle | Phase::Gone => {
                self.quitting = Some(Instant::now());
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
            Step::Changed => return,
            Step::Nothing => {
                let keys = "arrows and Enter, a letter or a number answer; Esc interrupts";
                return self.hint = Some(keys.to_owned());
            }
            // PERM-05: the end of the turn answers open questions.
            Step::Interrupt if self.is_running() => return self.cancel(),
            Step::Interrupt => Vec::new(),
            Step::Instead(text, lines) => {
                self.send_now(text);
                lines
            }
            Step::Done(lines) => lines,
            Step::Open(url, lines) => {
                self.effects.push_back(Effect::OpenUrl(url));
                lines
            }
        };
        match self.questions.pop_front().and_then(|question| question.refusal()) {
            Some(Refusal::Call(id)) => self.transcript.deny(&id),
            Some(Refusal::Guard) => self.transcript.deny_running(),
            None => {}
        }
        let lines = self.view.answer(lines);
        self.lines.extend(lines);
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
        if key.code == KeyCode::Backspace
            && self.editor.is_empty()
            && let Some(dropped) = self.carried.pop()
        {
            return self.hint = Some(format!("not sent: {}", dropped.label));
        }
        // A queued prompt can be sent at once, in place of the running turn.
        if key.code == KeyCode::Enter
            && self.editor.is_empty()
            && self.is_running()
            && let Some(next) = self.queue.pop_front()
        {
            return self.send_now(next);
        }
        let plain = !key.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SHIFT);
        let for_menu = match key.code {
            KeyCode::Tab | KeyCode::BackTab | KeyCode::Up | KeyCode::Down => true,
            KeyCode::Enter => plain,
            _ => false,
        };
        if self.editor.menu.is_some() && for_menu {
            return self.menu_key(key);
        }
        if self.phase == Phase::Gone && key.code == KeyCode::Enter && self.editor.is_empty() {
            return self.effects.push_back(Effect::Open(OpenTarget::Restart));
        }
        match self.editor.key(key) {
            ActionResult::Submit(text) => self.submit(text),
            ActionResult::Complete => self.complete(),
            ActionResult::Changed => self.open_menu(),
            ActionResult::Ignored => {}
        }
    }

    /// The menus of files and commands open by themselves.
    fn open_menu(&mut self) {
        if self.editor.is_searching() || self.mention_menu() {
            return;
        }
        let text = self.editor.text();
        if text.starts_with('/') && !text.contains(char::is_whitespace) {
            self.editor.menu = complete(text, self.editor.cursor(), &self.state, &self.canvas.cwd);
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
        let back = matches!(key.code, KeyCode::BackTab | KeyCode::Up);
        let arrow = matches!(key.code, KeyCode::Up | KeyCode::Down);
        if menu.items.iter().all(|item| item.text.starts_with('@')) {
            if arrow || key.code == KeyCode::BackTab {
                menu.step(back);
                self.editor.menu = Some(menu);
                return;
            }
            if let Some(item) = menu.chosen() {
                self.editor.replace_back(menu.from, &item.text);
            }
            self.mention_menu();
            return;
        }
        if key.code == KeyCode::Enter {
            // Enter submits the text, which may be the chosen item. A part of a command's name
            // stands for the first one.
            let typed = self.editor.text().trim_end().strip_prefix('/').unwrap_or_default();
            let unknown = !typed.is_empty()
                && menu.from == 0
                && matches!(commands::parse(self.editor.text(), &self.state), Input::Mistake(_));
            if let Some(item) = menu.items.first().filter(|_| unknown && menu.chosen.is_none()) {
                self.editor.replace_back(menu.from, item.text.trim_end());
            }
            return self.editor_key(key);
        }
        let common = menu.common().to_owned();
        let typed = self.editor.cursor() - menu.from;
        if !arrow && menu.chosen.is_none() && common.len() > typed {
            self.editor.replace_back(menu.from, &common);
            self.editor.menu = (menu.items.len() > 1).then_some(menu);
            return;
        }
        menu.step(back);
        if let Some(item) = menu.chosen() {
            let text = item.text.clone();
            self.editor.replace_back(menu.from, &text);
        }
        self.editor.menu = (menu.items.len() > 1).then_some(menu);
    }

    // Commands.

    fn submit(&mut self, text: String) {
        if let Some(line) = text.strip_prefix('!').map(str::trim).filter(|line| !line.is_empty()) {
            let echo = echo_prompt(&text, &self.canvas);
            self.aside(echo);
            let shared = line.strip_suffix('|').filter(|line| !line.ends_with('|')).map(str::trim_end);
            let job = match shared.filter(|line| !line.is_empty()) {
                Some(line) => Foreground::Share(line.to_owned()),
                None => Foreground::Shell(line.to_owned()),
            };
            return self.foreground = Some(job);
        }
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
            Command::Permissions => self.effects.push_back(Effect::ListPermissions),
            Command::Mcp => self.effects.push_back(Effect::ListServers),
            Command::Login => self.effects.push_back(Effect::Login),
            Command::Copy if self.answer.is_empty() => self.notice(Severity::Info, "no answer to copy yet"),
            Command::Copy => {
                self.notice(Severity::Info, "the last answer is copied, if the terminal allows it (OSC 52)");
                self.copied = Some(self.answer.clone());
            }
            Command::Export(file) => self.effects.push_back(Effect::Export(file)),
            Command::Set(None) if self.state.options.is_empty() => {
                self.notice(Severity::Info, "the agent has no options");
            }
            Command::Set(None) => self.aside(help::options(&self.state, &self.canvas)),
            Command::Set(Some((option, value))) => match self.state.option(&option) {
                Some(setting) => self.set(&option, Some(setting), value),
                None => self.notice(Severity::Warning, format!("no option `{option}`; /set lists them")),
            },
            Command::Sessions => self.effects.push_back(Effect::ListSessions),
            Command::Resume => self.effects.push_back(Effect::ListConversations),
            Command::New => self.open(OpenTarget::New),
            Command::Load(None) => self.effects.push_back(Effect::ListSessions),
            Command::Load(Some(wanted)) => {
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
            Command::Tasks => self.list_tasks(),
            Command::Diff => self.effects.push_back(Effect::Diff),
            Command::Undo(file) => self.while_idle(Effect::Undo(file)),
            Command::Redo => self.while_idle(Effect::Redo),
            Command::Rewind => self.while_idle(Effect::ListPrompts),
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
            Command::Context => self.aside(help::context(&self.state, &self.canvas)),
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
            let text = match name {
                "models" if self.is_own_agent => {
                    "no model: set an API key or start Ollama; /login".to_owned()
                }
                "models" => "the agent offers no models to choose from".to_owned(),
                _ => format!("the agent has no {name}"),
            };
            return self.notice(Severity::Info, text);
        };
        match value {
            None => {
                let row = |value: &SettingValue| Row {
                    label: value.name.clone(),
                    about: [value.id.as_str(), &value.about].join("  ").trim_end().to_owned(),
                    current: value.id == setting.current,
                    value: Pick::Set(setting.target.clone(), value.id.clone()),
                };
                let rows = setting.values.iter().map(row).collect();
                let title = match name {
                    "modes" => "Modes",
                    "models" => "Models",
                    option => option,
                };
                self.picker = Some(Picker::new(title, rows));
            }
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

    /// Offers the sessions of the agent.
    pub(crate) fn listed(&mut self, sessions: Vec<SessionInfo>) {
        if sessions.is_empty() {
            return self.notice(Severity::Info, "no sessions here");
        }
        // A list must not take the keys of a sentence.
        if !self.editor.is_empty() {
            return self.notice(Severity::Info, "the list of sessions is ready: /sessions on an empty line");
        }
        let now = std::time::SystemTime::now();
        let row = |session: &SessionInfo| {
            let when = session.updated_at.as_deref().map(|time| crate::time::ago(time, now));
            let id = crate::session_store::short(session.session_id.as_str());
            let parts = [when.unwrap_or_default(), id.to_owned(), self.canvas.short(&session.cwd).to_owned()];
            Row {
                label: session.title.clone().unwrap_or_else(|| "(no title)".to_owned()),
                about: parts.join("  "),
                current: session.session_id == self.state.id,
                value: Pick::Load(session.session_id.clone()),
            }
        };
        self.picker = Some(Picker::new("Sessions", sessions.iter().map(row).collect()));
        self.sessions = sessions;
    }

    fn picker_key(&mut self, key: KeyEvent) {
        let Some(picker) = &mut self.picker else { return };
        let picked = match picker.key(key) {
            Picked::Nothing | Picked::Changed => return,
            Picked::Left => None,
            Picked::Value(value) => Some(value),
        };
        self.picker = None;
        match picked {
            None => {}
            Some(Pick::Set(target, value)) => self.effects.push_back(Effect::Set(target, value)),
            Some(Pick::Load(id)) => self.open(OpenTarget::Load(id)),
            Some(Pick::Become(args)) => self.while_idle(Effect::Become(args)),
            Some(Pick::Revoke(number)) => self.effects.push_back(Effect::Revoke(number)),
            Some(Pick::Rewind(turn, prompt)) => self.while_idle(Effect::Rewind(turn, prompt)),
            Some(Pick::UndoPart(parts, part)) => self.while_idle(Effect::UndoPart(parts, part)),
            Some(Pick::CancelTask(id)) => self.effects.push_back(Effect::CancelTask(id)),
            Some(Pick::Login(args)) => self.foreground = Some(Foreground::Login(args)),
        }
    }

    /// Sends a prompt now: a running turn is cancelled for it.
    pub(super) fn send_now(&mut self, text: String) {
        if self.is_running() {
            self.next = Some(text);
            self.cancel();
        } else {
            self.effects.push_back(Effect::Prompt(text));
        }
    }
}
