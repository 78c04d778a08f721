//! Output of the built-in commands.

use super::commands::BUILTIN_COMMANDS;
use super::state::{SessionState, Setting, hint, money, tokens};
use super::transcript::Transcript;
use super::view::Canvas;
use attache::wire::v1::{SessionInfo, Usage};
use attache_term::render::diff;
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{clean, cut_line, width, wrap};

static KEYS: &[(&str, &str)] = &[
    ("Enter", "send; queued while the agent works"),
    ("Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    ("Tab", "complete a command or an @file"),
    ("Up, Down, Ctrl-R", "history"),
    ("Ctrl-C", "cancel; again: quit"),
    ("Ctrl-D", "quit, on an empty line"),
    ("Ctrl-Z", "suspend; `fg` resumes, the agent keeps working"),
    ("Ctrl-O", "unfold or fold long blocks"),
    ("Ctrl-L", "redraw the screen"),
    ("@path", "attach a file or a picture"),
    ("//text", "send a text that begins with a slash"),
];

/// Renders two columns, the second wrapped.
fn columns(rows: &[(String, String)], canvas: &Canvas) -> Vec<Line> {
    let widest = rows.iter().map(|(left, _)| width(left)).max().unwrap_or(0).min(canvas.columns / 2);
    let mut lines = Vec::new();
    for (left, right) in rows {
        let mut head = Line::from("  ").with(clean(left, canvas.look), Style::of(Colour::Cyan));
        head.push(" ".repeat(widest.saturating_sub(width(left)) + 2), Style::PLAIN);
        let right = Line::from(clean(right, canvas.look).replace('\n', " "));
        lines.extend(wrap(&right, canvas.columns, &head, &Line::from(" ".repeat(widest + 4))));
    }
    lines
}

fn head(text: &str) -> Line {
    Line::styled(text, Style::BOLD)
}

pub(crate) fn help(state: &SessionState, canvas: &Canvas) -> Vec<Line> {
    let mut lines = vec![head("Commands")];
    let row = |name: &str, args: &str, about: &str| {
        (format!("/{name} {args}").trim_end().to_owned(), about.to_owned())
    };
    let ours: Vec<_> = BUILTIN_COMMANDS.iter().map(|ours| row(ours.name, ours.args, ours.about)).collect();
    lines.extend(columns(&ours, canvas));
    if !state.commands.is_empty() {
        lines.push(head("Agent commands"));
        let theirs: Vec<_> = state
            .commands
            .iter()
            .map(|command| row(&command.name, hint(command), &command.description))
            .collect();
        lines.extend(columns(&theirs, canvas));
    }
    lines.push(head("Keys"));
    let keys: Vec<_> = KEYS.iter().map(|(key, what)| ((*key).to_owned(), (*what).to_owned())).collect();
    lines.extend(columns(&keys, canvas));
    lines
}

pub(crate) fn setting(name: &str, setting: &Setting, canvas: &Canvas) -> Vec<Line> {
    let mut lines = vec![head(name)];
    let row = |value: &super::state::SettingValue| {
        let mark = if value.id == setting.current { "* " } else { "  " };
        let about = if value.about.is_empty() {
            value.name.clone()
        } else {
            format!("{}: {}", value.name, value.about)
        };
        (format!("{mark}{}", value.id), about)
    };
    let rows: Vec<_> = setting.values.iter().map(row).collect();
    lines.extend(columns(&rows, canvas));
    lines
}

pub(crate) fn options(state: &SessionState, canvas: &Canvas) -> Vec<Line> {
    let rows: Vec<_> = state
        .options
        .iter()
        .map(|option| {
            let current = state.option(option.id.as_str()).map_or(String::new(), |setting| setting.current);
            let about = option.description.as_deref().unwrap_or_default();
            (format!("{} = {current}", option.id), format!("{} {about}", option.name).trim_end().to_owned())
        })
        .collect();
    let mut lines = vec![head("Options")];
    lines.extend(columns(&rows, canvas));
    lines
}

pub(crate) fn sessions(sessions: &[SessionInfo], state: &SessionState, canvas: &Canvas) -> Vec<Line> {
    let mut lines = vec![head("Sessions (/load NUMBER)")];
    for (at, session) in sessions.iter().enumerate() {
        let here = if session.session_id == state.id { "* " } else { "  " };
        let title = session.title.as_deref().unwrap_or("(no title)");
        let mut line = Line::from(here).with(format!("{} ", at + 1), Style::of(Colour::Cyan));
        line.push(clean(title, canvas.look).replace('\n', " "), Style::PLAIN);
        let when = session.updated_at.as_deref().unwrap_or_default();
        let more = format!(
            "  {}  {when}  {}",
            clean(session.session_id.as_str(), canvas.look),
            clean(canvas.short(&session.cwd), canvas.look)
        );
        line.push(clean(&more, canvas.look).replace('\n', " "), Style::DIM);
        lines.push(cut_line(&line, canvas.columns, canvas.look));
    }
    lines
}

pub(crate) fn changes(transcript: &Transcript, canvas: &Canvas) -> Vec<Line> {
    let mut lines = Vec::new();
    for change in &transcript.changes {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        let path = canvas.short(&change.path);
        lines.extend(diff::render(
            path,
            change.old.as_deref(),
            &change.new,
            canvas.columns,
            None,
            canvas.look,
        ));
    }
    lines
}

pub(crate) fn cost(state: &SessionState, usage: Option<&Usage>, canvas: &Canvas) -> Vec<Line> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| rows.push((name.to_owned(), value));
    if let Some(usage) = &state.usage {
        add("context", format!("{} of {} tokens", tokens(usage.used), tokens(usage.size)));
        if let Some(cost) = &usage.cost {
            add("cost", money(cost.amount, &cost.currency));
        }
    }
    if let Some(usage) = usage {
        add("input", tokens(usage.input_tokens));
        add("output", tokens(usage.output_tokens));
        for (name, count) in [
            ("thoughts", usage.thought_tokens),
            ("read from cache", usage.cached_read_tokens),
            ("written to cache", usage.cached_write_tokens),
        ] {
            if let Some(count) = count {
                add(name, tokens(count));
            }
        }
        add("total", tokens(usage.total_tokens));
    }
    if rows.is_empty() {
        return vec![Line::styled("no usage reported yet", Style::DIM)];
    }
    columns(&rows, canvas)
}
