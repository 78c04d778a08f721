//! A form, field by field, with a review before it is sent.

use attache::client::{ElicitationAsk, RequestedInput};
use attache::wire::v1::{ElicitationContentValue as Value, Fields};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::view::Canvas;
use super::field::{Field, Kind};
use super::{QuestionView, Step};
use attache_term::editor::{ActionResult, Editor};
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{clean, cut_line, wrap};

#[derive(Debug)]
pub(crate) struct Form {
    ask: Option<ElicitationAsk>,
    /// The agent that asks.
    // ELIC-07
    agent: String,
    fields: Vec<Field>,
    /// The current field; after the last one comes the review.
    at: usize,
    /// Whether the review was reached; a changed field leads back to it.
    reviewed: bool,
    input: Editor,
    problem: Option<String>,
}

impl Form {
    pub(crate) fn new(ask: ElicitationAsk, agent: &str) -> Form {
        let fields = match ask.requested() {
            Some(RequestedInput::Form(schema)) => Field::all(schema),
            _ => Vec::new(),
        };
        let mut form = Form {
            ask: Some(ask),
            agent: agent.to_owned(),
            fields,
            at: 0,
            reviewed: false,
            input: Editor::default(),
            problem: None,
        };
        form.enter(0);
        form
    }

    pub(crate) fn intro(&self, canvas: &Canvas) -> Vec<Line> {
        let look = canvas.look;
        let head = Line::styled("? ", Style::BOLD.colour(Colour::Yellow))
            .with(format!("{} asks for input", clean(&self.agent, look)), Style::BOLD);
        let prefix = Line::from("  ");
        let mut lines = wrap(&head, canvas.columns, &Line::new(), &prefix);
        let Some(ask) = &self.ask else { return lines };
        let (title, about) = match ask.requested() {
            Some(RequestedInput::Form(schema)) => (schema.title.as_deref(), schema.description.as_deref()),
            _ => (None, None),
        };
        // ELIC-09
        for text in [Some(ask.message()), title, about].into_iter().flatten() {
            for line in clean(text, look).lines() {
                lines.extend(wrap(&Line::from(line), canvas.columns, &prefix, &prefix));
            }
        }
        lines
    }

    /// Moves to a field and puts its value into the input.
    // ELIC-13
    fn enter(&mut self, at: usize) {
        self.at = at;
        self.problem = None;
        let text = self.fields.get(at).map_or(String::new(), Field::text);
        self.input.set(text);
        self.reviewed |= at >= self.fields.len();
    }

    pub(crate) fn view(&self, canvas: &Canvas, ready: bool) -> QuestionView {
        let mut face = match self.fields.get(self.at) {
            Some(field) => self.field_face(field, canvas),
            None => self.review(canvas),
        };
        if let Some(problem) = &self.problem {
            let line = Line::styled(clean(problem, canvas.look), Style::of(Colour::Red));
            face.lines.extend(wrap(&line, canvas.columns, &Line::from("  "), &Line::from("  ")));
        }
        let help = match self.fields.get(self.at) {
            _ if !ready => canvas.look.pick("…", "..."),
            None => "Enter send, number change, d decline, Esc cancel",
            Some(Field { kind: Kind::Many(_), .. }) => {
                "Space or number toggle, Enter next, Shift-Tab back, Ctrl-X decline, Esc cancel"
            }
            Some(Field { kind: Kind::One(_), .. }) => {
                "Arrows or number choose, Enter next, Shift-Tab back, Ctrl-X decline, Esc cancel"
            }
            Some(_) => "Enter next, Shift-Tab back, Ctrl-X decline, Esc cancel",
        };
        face.lines.push(cut_line(&Line::styled(help, Style::DIM), canvas.columns, canvas.look));
        face
    }

    fn field_face(&self, field: &Field, canvas: &Canvas) -> QuestionView {
        let look = canvas.look;
        let mut head = Line::styled(format!("{}/{} ", self.at + 1, self.fields.len()), Style::DIM);
        head.push(clean(&field.title, look), Style::BOLD);
        head.push(if field.required { " (required)" } else { " (optional)" }, Style::DIM);
        let mut lines = wrap(&head, canvas.columns, &Line::new(), &Line::from("  "));
        let prefix = Line::from("  ");
        for line in clean(&field.about, look).lines() {
            lines.extend(wrap(&Line::styled(line, Style::DIM), canvas.columns, &prefix, &prefix));
        }
        if !field.limits.is_empty() {
            let line = Line::styled(clean(&field.limits, look), Style::DIM.italic());
            lines.extend(wrap(&line, canvas.columns, &prefix, &prefix));
        }
        let options = match &field.kind {
            Kind::One(options) | Kind::Many(options) => options,
            Kind::Unknown => {
                let text = "unknown kind of field; it stays empty";
                lines.extend(wrap(
                    &Line::styled(text, Style::of(Colour::Yellow)),
                    canvas.columns,
                    &prefix,
                    &prefix,
                ));
                return QuestionView { lines, cursor: None };
            }
            _ => {
                let painted = self.input.render(&prefix, canvas.columns, canvas.rows / 2, look);
                let cursor = Some((lines.len() + painted.row, painted.column));
                lines.extend(painted.lines);
                return QuestionView { lines, cursor };
            }
        };
        let room = (canvas.rows / 2).max(3);
        let from = field.cursor.saturating_sub(room - 1);
        for (at, option) in options.iter().enumerate().skip(from).take(room) {
            let picked = field.picked.contains(&at);
            let mark = match (&field.kind, picked) {
                (Kind::Many(_), true) => look.pick("☑", "[x]"),
                (Kind::Many(_), false) => look.pick("☐", "[ ]"),
                (_, true) => look.pick("●", "(*)"),
                (_, false) => look.pick("○", "( )"),
            };
            let style = if at == field.cursor { Style::PLAIN.reverse() } else { Style::PLAIN };
            let mut line = Line::styled(format!("  {} {mark} ", at + 1), Style::DIM);
            line.push(clean(&option.title, look), style);
            if let Some(about) = &option.about {
                line.push(format!("  {}", clean(about, look)), Style::DIM);
            }
            lines.push(cut_line(&line, canvas.columns, look));
        }
        QuestionView { lines, cursor: None }
    }

    /// Renders the review, where everything can still be changed.
    // ELIC-08
    fn review(&self, canvas: &Canvas) -> QuestionView {
        let mut lines = vec![Line::styled("Send this?", Style::BOLD)];
        for (at, field) in self.fields.iter().enumerate() {
            let label = Line::styled(format!("  {} ", at + 1), Style::DIM)
                .with(format!("{}: ", clean(&field.title, canvas.look)), Style::BOLD);
            let value = match field.value() {
                Some(value) => Line::from(clean(&field.shown(&value), canvas.look).replace('\n', " ")),
                None => Line::styled("(empty)", Style::DIM),
            };
            lines.extend(wrap(&value, canvas.columns, &label, &Line::from("    ")));
        }
        QuestionView { lines, cursor: None }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if self.fields.get(self.at).is_some_and(Field::is_typed) {
            self.input.paste(text);
        }
    }

    pub(crate) fn key(&mut self, key: KeyEvent, canvas: &Canvas) -> Step {
        let said =
            |text: &str| vec![Line::styled(format!("{} {text}", canvas.look.pick("·", "*")), Style::DIM)];
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let reviewing = self.at >= self.fields.len();
        match key.code {
            KeyCode::Esc => {
                self.ask = None;
                return Step::Done(said("cancelled"));
            }
            KeyCode::Char('x') if ctrl => return self.decline(said("declined")),
            KeyCode::Char('d') if reviewing && !ctrl => return self.decline(said("declined")),
            KeyCode::BackTab => {
                if !reviewing {
                    self.keep_input();
                }
                self.enter(self.at.saturating_sub(1));
            }
            KeyCode::Enter if reviewing => return self.send(said("sent")),
            KeyCode::Char(c) if reviewing => {
                let number = c.to_digit(10).and_then(|number| (number as usize).checked_sub(1));
                if let Some(at) = number.filter(|at| *at < self.fields.len()) {
                    self.enter(at);
                }
            }
            KeyCode::Enter if !key.modifiers.contains(KeyModifiers::ALT) => self.next(),
            _ => self.fill(key),
        }
        Step::Changed
    }

    fn decline(&mut self, said: Vec<Line>) -> Step {
        if let Some(ask) = self.ask.take() {
            ask.decline();
        }
        Step::Done(said)
    }

    fn fill(&mut self, key: KeyEvent) {
        self.problem = None;
        let Some(field) = self.fields.get_mut(self.at) else { return };
        if field.is_typed() {
            // Enter is handled above, and no other key submits.
            let _: ActionResult = self.input.key(key);
        } else {
            field.choose_key(key);
        }
    }

    fn keep_input(&mut self) {
        if let Some(field) = self.fields.get_mut(self.at).filter(|field| field.is_typed()) {
            field.typed = self.input.text().to_owned();
        }
    }

    /// Moves on if the field is valid.
    // ELIC-11
    fn next(&mut self) {
        self.keep_input();
        let Some((field, ask)) = self.fields.get(self.at).zip(self.ask.as_ref()) else { return };
        match field.checked(ask) {
            Err(problem) => self.problem = Some(problem),
            Ok(()) => {
                let next = if self.reviewed { self.fields.len() } else { self.at + 1 };
                self.enter(next);
            }
        }
    }

    fn send(&mut self, said: Vec<Line>) -> Step {
        let Some(ask) = self.ask.take() else { return Step::Nothing };
        let values = self.fields.iter().filter_map(|field| Some((field.name.clone(), field.value()?)));
        let content: Fields<Value> = values.collect();
        match ask.accept(content) {
            Ok(()) => Step::Done(said),
            Err(unfit) => {
                self.problem = Some(unfit.to_string());
                self.ask = Some(unfit.ask);
                Step::Changed
            }
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.ask.as_ref().is_some_and(ElicitationAsk::is_open)
    }

    pub(crate) async fn withdrawn(&mut self) {
        if let Some(ask) = &self.ask {
            ask.withdrawn().await;
        }
    }
}
