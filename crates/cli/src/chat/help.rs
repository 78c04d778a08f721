//! Output of the built-in commands.

use super::commands::BUILTIN_COMMANDS;
use super::state::{SessionState, hint, money, tokens};
use super::transcript::Transcript;
use super::view::Canvas;
use crate::checkpoints::FileDiff;
use crate::output::count;
use attache::wire::v1::{McpServer, Usage};
use attache_term::render::diff;
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{clean, width, wrap};

static KEYS: &[(&str, &str)] = &[
    ("Enter", "send; queued while the agent works; on an empty line the queued prompt is sent now"),
    ("Shift-Enter, Alt-Enter, Ctrl-J, \\ Enter", "a new line"),
    ("Esc", "interrupt the agent, close a menu, leave a question; twice: clear the line"),
    ("Shift-Tab", "switch to the next mode"),
    ("Tab", "complete a command or an @file"),
    ("Up, Down, Ctrl-R", "history; rows of a menu or question"),
    ("Ctrl-G, Ctrl-X Ctrl-E", "write the prompt in $EDITOR"),
    ("Ctrl-_", "undo in the line"),
    ("Ctrl-C", "cancel; again: quit"),
    ("Ctrl-D", "quit, on an empty line"),
    ("Ctrl-Z", "suspend; `fg` resumes, the agent keeps working"),
    ("Ctrl-O", "unfold or fold long blocks"),
    ("Ctrl-T", "type into the agent's command"),
    ("Ctrl-V", "attach the picture in the clipboard"),
    ("Ctrl-L", "redraw the screen"),
    ("@name", "attach a file or a picture"),
    ("!command", "run a command in a shell"),
    ("!command |", "send its output with the next prompt"),
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

/// Renders the changes of files.
pub(crate) fn changes(files: &[FileDiff], canvas: &Canvas) -> Vec<Line> {
    let mut lines = Vec::new();
    for file in files {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        let path = file.path.to_string_lossy();
        let new = file.new.as_deref().unwrap_or_default();
        let (path, look) = (canvas.short(&path), canvas.look);
        let mut rendered = diff::render(path, file.old.as_deref(), new, canvas.columns, None, look);
        let deleted = file.new.is_none().then_some("deleted");
        let notes: Vec<&str> = deleted.into_iter().chain(file.note.as_deref()).collect();
        if let (Some(head), false) = (rendered.first_mut(), notes.is_empty()) {
            head.push(format!("  ({})", notes.join(", ")), Style::DIM);
        }
        lines.extend(rendered);
    }
    lines
}

/// The changes that the agent has announced, for a chat without checkpoints. Those that are not
/// there any more are left out.
pub(crate) fn announced(transcript: &Transcript) -> Vec<FileDiff> {
    let changes = transcript.changes.iter().map(|change| FileDiff {
        path: change.path.clone().into(),
        old: change.old.clone(),
        new: Some(change.new.clone()),
        note: None,
    });
    let is_there = |file: &FileDiff| match &file.old {
        None => file.path.symlink_metadata().is_ok(),
        Some(old) => std::fs::read_to_string(&file.path).map_or(true, |now| now != *old),
    };
    changes.filter(is_there).collect()
}

/// Renders the MCP servers of the session. Arguments, variables and the query of an address may
/// hold credentials.
pub(crate) fn servers(servers: &[McpServer], canvas: &Canvas) -> Vec<Line> {
    let rows: Vec<_> = servers
        .iter()
        .map(|server| {
            let about = match server {
                McpServer::Stdio(server) => match server.args.len() {
                    0 => server.command.clone(),
                    args => format!("{} ({})", server.command, count(args as u64, "argument")),
                },
                McpServer::Http(server) => format!("http, {}", public_part(&server.url)),
                McpServer::Sse(server) => format!("sse, {}", public_part(&server.url)),
                _ => "over this connection".to_owned(),
            };
            (server.name().to_owned(), about)
        })
        .collect();
    let mut lines = vec![head("MCP servers")];
    lines.extend(columns(&rows, canvas));
    lines
}

/// Returns an address without a user and without what follows its path.
fn public_part(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    match path.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}/{path}")
        }
        None => path.to_owned(),
    }
}

/// Renders how full the context is, as the agent reports it.
pub(crate) fn context(state: &SessionState, canvas: &Canvas) -> Vec<Line> {
    let Some(usage) = &state.usage else {
        return vec![Line::styled("no usage reported yet", Style::DIM)];
    };
    let left = usage.size.saturating_sub(usage.used);
    let share = usage.used.saturating_mul(100).checked_div(usage.size).unwrap_or(0);
    let text =
        format!("{} of {} tokens ({share}%), {} left", tokens(usage.used), tokens(usage.size), tokens(left));
    columns(&[("context".to_owned(), text)], canvas)
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
