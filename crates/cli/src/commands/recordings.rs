//! `record`, `replay` and `trace`: conversations kept, played again and looked at.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use attache_check::record::{Mask, Recorder, relay};
use attache_check::replay::{self, Options, Outcome};
use attache_check::report::{page, sequence};
use attache_check::show::{self, Filter, Selection};
use attache_check::trace::{Entry, EntryKind, Header, Trace};
use attache_check::{Role, report};
use attache_conn::process::Command;
use attache_conn::{Link, private};
use attache_host::secrets;
use serde_json::json;

use crate::cx::Cx;
use crate::error::{Context as _, Failure, Kind, Result};
use crate::output::{Format, Mark, Output, Relay};
use crate::runtime::runtime;
use crate::time;

/// `attache record FILE -- COMMAND…`. Ends as the agent ends, with its exit code.
pub(crate) fn record(cx: &Cx) -> Result<()> {
    let [file, program, args @ ..] = cx.args.words.as_slice() else {
        return Err(Failure::usage("no file or command: attache record FILE -- COMMAND…"));
    };
    if cx.flags.record.mask && cx.flags.record.no_mask {
        return Err(Failure::usage("give --mask or --no-mask, not both"));
    }
    let (path, file) = recording_file(cx, file, program)?;
    let masked = !cx.flags.record.no_mask;
    let mut command: Vec<String> = std::iter::once(program).chain(args).cloned().collect();
    let mask = masked.then(|| -> Mask {
        let mask = secrets::Mask::from_env().with(crate::credentials::secrets(&cx.paths));
        command = mask.command_line(&command);
        Box::new(move |line| mask.frame(line))
    });
    let head = Header { started: attache_check::trace::now(), command, masked };
    let recorder =
        Recorder::new(file, &head, mask).context(format_args!("{} cannot be written", path.display()))?;
    let recorder = Arc::new(recorder);
    let (heard, output) = (recorder.clone(), cx.output.clone());
    let command = Command::new(program).args(args).current_dir(&cx.cwd).on_stderr_line(move |line| {
        heard.note(EntryKind::Stderr(line.into()));
        output.tell_row(line);
    });
    let status = runtime(async {
        let child = command
            .spawn()
            .map_err(|error| Failure::runtime(error).hint("give the agent's command after `--`"))?;
        Ok(relay(child, tokio::io::stdin(), Relay::stdout(), &recorder).await)
    })?;
    if let Some(why) = recorder.failure() {
        cx.output.warn(format_args!("{} is not complete: {why}", path.display()));
    }
    std::process::exit(exit_code(status));
}

/// A new file; in a directory one with a name of its own, so that an editor can start many.
fn recording_file(cx: &Cx, name: &str, program: &str) -> Result<(PathBuf, File)> {
    let mut path = cx.cwd.join(name);
    if path.is_dir() {
        let agent = Path::new(program).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let now = time::now().replace(':', "-");
        path.push(format!("{agent}-{now}-{}.jsonl", std::process::id()));
    }
    // Only files are replaced: a device or a pipe of that name stays, and is written to.
    let special = private::is_special(&path);
    if cx.flags.record.overwrite && !special {
        let _ = std::fs::remove_file(&path);
    }
    // Opened for appending, so that each line is one write at its end.
    let opened = if special { private::append(&path) } else { private::create_log(&path) };
    let file = opened.map_err(|error| {
        let failure = Failure::runtime(format_args!("cannot create the recording: {error}"));
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return failure.hint("--overwrite replaces it; a directory takes any number of recordings");
        }
        failure
    })?;
    Ok((path, file))
}

/// `attache replay FILE`: the agent of a recording on stdin and stdout, or its client.
pub(crate) fn replay(cx: &Cx) -> Result<()> {
    let [file, command @ ..] = cx.args.words.as_slice() else {
        return Err(Failure::usage("no recording: attache replay FILE"));
    };
    let trace = read(cx, file)?;
    if !trace.entries.iter().any(|entry| matches!(entry.kind, EntryKind::Line { .. })) {
        return Err(Failure::usage(format_args!("{file}: the recording is empty")));
    }
    let patience = cx.flags.replay.patience.unwrap_or(Options::default().patience);
    let part = match cx.flags.replay.party.as_deref() {
        Some("client") => Role::Client,
        _ => Role::Agent,
    };
    let options = Options {
        part,
        delays: cx.flags.replay.delays,
        patience,
        strict: cx.flags.replay.strict,
        cwd: (part == Role::Client && cx.flags.cwd.is_some()).then(|| cx.cwd.clone()),
    };
    let verbose = options.strict || cx.output.verbose;
    let outcome = runtime(async {
        let link = match command {
            // A person at a terminal sees the recording as it may be shown.
            [] if cx.output.stdout.terminal => Link::from_io(tokio::io::stdin(), Relay::stdout()),
            [] => Link::stdio(),
            [program, args @ ..] => {
                let command = Command::new(program).args(args).current_dir(&cx.cwd);
                Link::command(command).map_err(Failure::usage)?
            }
        };
        let hear = |deviation: &replay::Deviation| {
            if deviation.is_grave() || verbose {
                cx.output.tell_line(&Mark::Replay.then(deviation.to_string()));
            }
        };
        Ok(replay::replay(&trace, link, &options, hear).await)
    })?;
    if let Some(path) = &cx.flags.replay.report {
        let text = format!("{:#}\n", outcome_json(&outcome, options.strict));
        private::write(&cx.cwd.join(path), text.as_bytes()).context("cannot write the report")?;
    }
    cx.output.note(format_args!(
        "{} of {} recorded messages of the peer matched, {} sent",
        outcome.matched, outcome.expected, outcome.said
    ));
    if outcome.is_faithful(options.strict) {
        return Ok(());
    }
    let graves = outcome.deviations.iter().filter(|deviation| options.strict || deviation.is_grave()).count();
    let what = crate::output::count(graves as u64, "deviation");
    Err(Failure::new(Kind::Runtime, format_args!("the {} deviated from the recording: {what}", part.other())))
}

fn outcome_json(outcome: &Outcome, strict: bool) -> serde_json::Value {
    let deviations: Vec<_> = outcome
        .deviations
        .iter()
        .map(|deviation| json!({ "what": deviation.to_string(), "grave": deviation.is_grave() }))
        .collect();
    json!({
        "faithful": outcome.is_faithful(strict), "expected": outcome.expected, "matched": outcome.matched, "said": outcome.said,
        "deviations": deviations,
    })
}

/// `attache trace FILE`: a recording for people.
pub(crate) fn trace(cx: &Cx) -> Result<()> {
    let Some(file) = cx.args.word(0) else {
        return Err(Failure::usage("provide a recording: attache trace FILE"));
    };
    let selection = Selection {
        session: cx.flags.trace.session.clone(),
        method: cx.flags.trace.method.clone(),
        kind: cx.flags.trace.kind.clone(),
        from: cx.flags.trace.from.as_deref().and_then(Role::of),
    };
    let by_line = cx.flags.trace.lines
        || selection.method.is_some()
        || selection.kind.is_some()
        || selection.from.is_some();
    // As wide as the terminal; without one, whole.
    let width = cx.output.stdout.columns().map_or(usize::MAX, |columns| columns.max(20));
    let mut lines = Lines { filter: Filter::new(selection.clone()), output: &cx.output, width };
    if cx.flags.trace.follow {
        return follow(cx, file, &mut lines);
    }
    let trace = read(cx, file)?;
    if let Some(path) = &cx.flags.trace.html {
        let title = format!("attache trace {file}");
        let body = format!(
            "<h1>{}</h1>\n<pre>{}</pre>\n{}",
            report::escape(&title),
            report::escape(&show::summary(&trace)),
            sequence(&trace, &[], "e")
        );
        private::write(&cx.cwd.join(path), page(&title, &body).as_bytes())
            .context("cannot write the page")?;
        if cx.output.format == Format::Text {
            cx.output.line(format_args!("saved in {path}"));
        }
        return Ok(());
    }
    if by_line || cx.output.format == Format::Json {
        trace.entries.iter().for_each(|entry| lines.show(entry));
        return Ok(());
    }
    let (summary, timing) = (cx.flags.trace.summary, cx.flags.trace.timing);
    let mut parts = Vec::new();
    if summary || (!timing && selection.session.is_none()) {
        parts.push(show::summary(&trace));
    }
    if timing {
        parts.push(show::timing(&trace));
    }
    if !summary && !timing {
        parts.push(show::conversation(&trace, selection.session.as_deref()));
    }
    parts.retain(|part| !part.is_empty());
    if parts.is_empty() {
        return Err(Failure::runtime("no matching entry in the recording"));
    }
    cx.output.print(&parts.join("\n"));
    Ok(())
}

/// Prints entries as they are written, until the agent of the recording has ended.
fn follow(cx: &Cx, file: &str, lines: &mut Lines<'_>) -> Result<()> {
    let path = cx.cwd.join(file);
    let mut input = BufReader::new(open(&path)?);
    let mut text = String::new();
    let mut head = true;
    loop {
        let count = input.read_line(&mut text).context(format_args!("{} cannot be read", path.display()))?;
        if !text.ends_with('\n') {
            // Half a line, or nothing yet: the rest is still to be written.
            if count == 0 {
                std::thread::sleep(Duration::from_millis(100));
            }
            continue;
        }
        let line = std::mem::take(&mut text);
        if std::mem::take(&mut head) {
            // Says what is wrong if this is no recording.
            attache_check::trace::Reader::new(line.as_bytes())
                .map_err(|error| Failure::usage(format_args!("{file}: {error}")))?;
        } else if let Ok(entry) = Entry::read(line.trim_end()) {
            lines.show(&entry);
            if matches!(entry.kind, EntryKind::Exit { .. }) {
                return Ok(());
            }
        }
    }
}

struct Lines<'a> {
    filter: Filter,
    output: &'a Output,
    width: usize,
}

impl Lines<'_> {
    fn show(&mut self, entry: &Entry) {
        if !self.filter.matches(entry) {
            return;
        }
        if self.output.format == Format::Json {
            self.output.json_line(&entry.to_line());
        } else {
            self.output.row(show::line(entry, self.width));
        }
    }
}

fn read(cx: &Cx, file: &str) -> Result<Trace> {
    let path = cx.cwd.join(file);
    Trace::read(BufReader::new(open(&path)?)).map_err(|error| Failure::usage(format_args!("{file}: {error}")))
}

fn open(path: &Path) -> Result<File> {
    File::open(path)
        .map_err(|error| Failure::usage(format_args!("{} cannot be read: {error}", path.display())))
}

#[cfg(unix)]
fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

#[cfg(not(unix))]
fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(1)
}
