//! The layout of the screen: unfinished blocks, questions, status and the prompt at the bottom.

use std::time::Instant;

use attache_host::policy::Mode;

use super::app::{App, Phase};
use super::state::{money, tokens};
use super::subagents;
use super::view::plans;
use crate::output::count;
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{clean, cut_line, width};
use attache_term::screen::Frame;

/// Rows of the menu of completions.
const MENU: usize = 6;

impl App {
    /// Returns whether a spinner is visible.
    pub(crate) fn animated(&self) -> bool {
        !matches!(self.phase, Phase::Idle | Phase::Gone) && self.questions.is_empty()
    }

    pub(crate) fn frame(&mut self, now: Instant) -> Frame {
        self.check_typing();
        if !self.introduced && !self.questions.is_empty() {
            // The blocks that led to the question go above it.
            self.transcript.end_message();
            self.settle();
            if let Some(question) = self.questions.front() {
                let intro = question.intro(&self.canvas);
                let intro = self.view.aside(intro);
                self.lines.extend(intro);
            }
            self.introduced = true;
            self.asked = Some(now);
        }
        let (bottom, cursor) = self.bottom(now);
        let rows = self.canvas.rows.max(2);
        let room = rows.saturating_sub(bottom.len() + 1);
        let settled = self.view.settle(&mut self.transcript, &self.canvas, room);
        let mut up = std::mem::take(&mut self.lines);
        up.extend(settled);
        let clear = std::mem::take(&mut self.clear);
        let mut live = self.view.live(&self.transcript, &self.canvas);
        live.drain(..live.len().saturating_sub(room));
        // An empty line separates conversation and prompt, if there is room.
        if bottom.len() + live.len() < rows {
            live.push(Line::new());
        }
        let above = live.len();
        live.extend(bottom);
        let over = live.len().saturating_sub(rows);
        live.drain(..over);
        let cursor = cursor.and_then(|(row, column)| Some(((row + above).checked_sub(over)?, column)));
        if clear {
            // A cleared screen is filled from the scrollback.
            let room = rows.saturating_sub(live.len());
            up = self.view.scrollback.last(room, &self.transcript.terminal_outputs.lock(), &self.canvas);
        }
        // On very narrow screens not everything can be wrapped. A line that the terminal wraps
        // itself would shift the next frame.
        let columns = self.canvas.columns;
        for line in up.iter_mut().chain(&mut live).filter(|line| line.width() > columns) {
            *line = cut_line(line, columns, self.canvas.look);
        }
        let cursor = cursor.map(|(row, column)| (row, column.min(columns)));
        let (title, alert) = (self.window_title(), self.attention.take());
        Frame { clear, scrolled: up, live, cursor, title, alert }
    }

    /// Returns the title of the window: the state, the directory, the program.
    fn window_title(&self) -> Option<String> {
        let unicode = self.canvas.look;
        let state = match self.phase {
            _ if !self.questions.is_empty() => "? ",
            Phase::Running { .. } | Phase::Opening(_) => unicode.pick("… ", "... "),
            Phase::Idle => "",
            Phase::Gone => "! ",
        };
        let name = self.canvas.cwd.file_name().map(|name| name.to_string_lossy().into_owned());
        let title = format!("{state}{} - attache", name.unwrap_or_else(|| "/".to_owned()));
        self.attention.has_title().then(|| clean(&title, self.canvas.look).into_owned())
    }

    fn bottom(&self, now: Instant) -> (Vec<Line>, Option<(usize, usize)>) {
        let canvas = &self.canvas;
        let mut lines = Vec::new();
        let mut plan = plans(&self.transcript, canvas);
        let most = (canvas.rows / 3).max(2);
        if plan.len() > most {
            let hidden = plan.len() - most + 1;
            plan.truncate(most - 1);
            plan.push(Line::styled(format!("  {} {hidden} more", canvas.look.pick("…", "...")), Style::DIM));
        }
        lines.extend(plan);
        lines.extend(subagents::rows(&self.transcript.model, canvas));
        lines.extend(self.transcript.task_rows(canvas));
        for (at, waiting) in self.queue.iter().enumerate() {
            let last = at + 1 == self.queue.len() && self.editor.is_empty();
            let how = match last {
                true if self.is_running() => " (Up takes it back, Enter sends it now)",
                true => " (Up takes it back)",
                false => "",
            };
            let text = clean(waiting, canvas.look).replace('\n', " ");
            let line = Line::styled("queued: ", Style::DIM).with(text, Style::DIM);
            let mut line = cut_line(&line, canvas.columns.saturating_sub(width(how)).max(12), canvas.look);
            line.push(how, Style::DIM);
            lines.push(cut_line(&line, canvas.columns, canvas.look));
        }
        for carried in &self.carried {
            let how = " (Backspace drops it)";
            let text = format!("with the next prompt: {}", carried.label);
            let line = Line::styled(clean(&text, canvas.look).replace('\n', " "), Style::DIM);
            let mut line = cut_line(&line, canvas.columns.saturating_sub(width(how)).max(12), canvas.look);
            line.push(how, Style::DIM);
            lines.push(cut_line(&line, canvas.columns, canvas.look));
        }
        if let Some(picker) = &self.picker {
            let top = lines.len();
            let (rows, (row, column)) = picker.render(canvas.columns, canvas.rows, canvas.look);
            lines.extend(rows);
            return (lines, Some((top + row, column)));
        }
        if let Some(question) = self.questions.front() {
            let face = question.view(canvas, self.takes_answers(now));
            let top = lines.len();
            lines.extend(face.lines);
            if self.questions.len() > 1 {
                let more = count(self.questions.len() as u64 - 1, "more question");
                lines.push(Line::styled(more, Style::DIM));
            }
            if !self.writing {
                if let Some(hint) = &self.hint {
                    lines.push(Line::styled(hint.clone(), Style::of(Colour::Yellow)));
                }
                return (lines, face.cursor.map(|(row, column)| (top + row, column)));
            }
            let how = if self.typing.is_some() {
                "Ctrl-T: answer the question"
            } else {
                "Tab: answer the question"
            };
            lines.push(Line::styled(how, Style::of(Colour::Yellow)));
        }
        lines.extend(self.working(now));
        // Wire traffic is not part of the conversation and has rows of its own.
        let room = (canvas.rows / 5).min(self.wire.len());
        for line in self.wire.iter().skip(self.wire.len() - room) {
            let line = Line::styled(clean(line, canvas.look).replace('\n', " "), Style::DIM);
            lines.push(cut_line(&line, canvas.columns, canvas.look));
        }
        lines.push(self.status());
        let prompt = Line::styled("> ", Style::BOLD.colour(Colour::Cyan));
        let painted = self.editor.render(&prompt, canvas.columns, (canvas.rows / 2).max(1), canvas.look);
        let top = lines.len();
        lines.extend(painted.lines);
        lines.extend(self.editor.render_menu(canvas.columns, MENU.min(canvas.rows / 3), canvas.look));
        (lines, Some((top + painted.row, painted.column)))
    }

    fn working(&self, now: Instant) -> Option<Line> {
        if !self.questions.is_empty() {
            return None;
        }
        let (since, what) = match self.phase {
            Phase::Idle => return None,
            Phase::Gone => {
                let text = "the agent has exited; Enter restarts it, Ctrl-D quits";
                let line = Line::styled(text, Style::of(Colour::Yellow));
                return Some(cut_line(&line, self.canvas.columns, self.canvas.look));
            }
            Phase::Opening(since) => (since, "opening the session, Esc cancels"),
            Phase::Running { since, cancelling: true } => (since, "cancelling, Ctrl-C again quits"),
            Phase::Running { since, cancelling: false } => {
                let typable = self.typing.is_none() && self.transcript.terminal_outputs.running().is_some();
                (
                    since,
                    if typable {
                        "working, Esc interrupts, Ctrl-T types into the command"
                    } else {
                        "working, Esc interrupts"
                    },
                )
            }
        };
        let mut time = seconds(now.saturating_duration_since(since));
        if let (Phase::Running { .. }, Some(limit)) = (self.phase, self.time) {
            time = format!("{time} of {}", seconds(limit));
        }
        let line = Line::styled(self.canvas.spinner(), Style::of(Colour::Yellow))
            .with(format!(" {time} {what}"), Style::DIM);
        Some(cut_line(&line, self.canvas.columns, self.canvas.look))
    }

    /// Renders the status line: agent, mode, model, usage.
    fn status(&self) -> Line {
        let look = self.canvas.look;
        if let Some(command) = self.typed_command() {
            let text = format!("Ctrl-T returns; keys go to: {}", clean(&command, look).replace('\n', " "));
            return cut_line(&Line::styled(text, Style::of(Colour::Yellow)), self.canvas.columns, look);
        }
        if let Some(hint) = &self.hint {
            return cut_line(
                &Line::styled(hint.clone(), Style::of(Colour::Yellow)),
                self.canvas.columns,
                look,
            );
        }
        let mut parts = vec![self.agent.clone()];
        parts.extend(self.state.mode().map(|mode| mode.current_name().to_owned()));
        parts.extend(self.state.model().map(|model| model.current_name().to_owned()));
        if let Some(usage) = &self.state.usage {
            let share = usage.used.saturating_mul(100).checked_div(usage.size).unwrap_or(0);
            parts.push(format!("{}/{} ({share}%)", tokens(usage.used), tokens(usage.size)));
            parts.extend(usage.cost.as_ref().map(|cost| {
                let spent = money(cost.amount, &cost.currency);
                let limit = self.budget.cost.map(|limit| money(limit, &cost.currency));
                limit.map_or_else(|| spent.clone(), |limit| format!("{spent} of {limit}"))
            }));
        }
        if let Some(limit) = self.budget.tokens {
            parts.push(format!("{} of {} tokens", tokens(self.used), tokens(limit)));
        }
        parts.extend(self.state.title.clone().or_else(|| self.known_title.clone()));
        let separator = look.pick(" · ", " - ");
        let text = clean(&parts.join(separator), look).replace('\n', " ");
        let mut line = Line::new();
        if let Some((label, style)) = permissions(self.policy.mode()) {
            line.push(label, style);
            line.push(separator, Style::DIM);
        }
        line.push(text, Style::DIM);
        cut_line(&line, self.canvas.columns, look)
    }
}

/// Returns the permission mode unless it is the default.
fn permissions(mode: Mode) -> Option<(&'static str, Style)> {
    match mode {
        mode if mode == Mode::APPROVE_ALL => Some(("APPROVE ALL", Style::BOLD.colour(Colour::Red))),
        mode if mode == Mode::APPROVE_READS => Some(("approve reads", Style::of(Colour::Yellow))),
        mode if mode == Mode::DENY_ALL => Some(("deny all", Style::of(Colour::Yellow))),
        _ => None,
    }
}

/// Formats a duration.
fn seconds(time: std::time::Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds => format!("{}m{:02}s", seconds / 60, seconds % 60),
    }
}
