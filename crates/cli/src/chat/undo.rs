//! `/undo`, `/rewind`, `/redo` and `/diff`: the checkpoints of the chat, for any agent.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::pin::pin;

use attache::Prompt;
use attache::client::{Event, PermissionAsk};
use attache::wire::v1::{ToolCallContent, ToolKind};

use super::app::{App, Effect, Phase, Pick};
use super::drive::{Driver, OrExit};
use super::help;
use super::transcript::Severity;
use super::ui::TaskResult;
use crate::checkpoints::{Checkpoint, Checkpoints, FileDiff, Outcome, Part, Parts, Store};
use crate::error::Result;
use crate::output::count;
use attache_term::picker::{Picker, Row};

/// Bytes of a prompt that are kept with its checkpoint.
const MAX_PROMPT: usize = 16 << 10;

/// Bytes of the note about undone files.
const MAX_NOTE: usize = 8 << 10;

/// Something that goes to the agent with the next prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Carried {
    /// What it is, for the user.
    pub(crate) label: String,
    pub(crate) text: String,
}

/// What a task beside the chat does to the screen.
pub(crate) struct Applied(Box<dyn FnOnce(&mut App) + Send>);

impl Applied {
    pub(super) fn new(apply: impl FnOnce(&mut App) + Send + 'static) -> Applied {
        Applied(Box::new(apply))
    }

    pub(super) fn apply(self, app: &mut App) {
        (self.0)(app);
    }
}

impl fmt::Debug for Applied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Applied")
    }
}

impl Driver<'_> {
    /// The conversation whose turns can be undone. It is the same after a restart of the chat.
    fn conversation(&self) -> String {
        let saved = self.saved.as_ref().and_then(|saved| saved.conversation());
        saved.map_or_else(|| format!("process {}", std::process::id()), str::to_owned)
    }

    /// Notes the files before a prompt. A cancel meanwhile is for the turn that follows.
    pub(super) async fn begin_checkpoint(&mut self, prompt: &str) -> io::Result<OrExit<()>> {
        let Some(checkpoints) = self.starter.checkpoints.clone() else { return Ok(Ok(())) };
        let conversation = self.conversation();
        let mut text = self.starter.mask.text(prompt).into_owned();
        let end = (0..=MAX_PROMPT.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or(0));
        let mut noting = pin!(checkpoints.run(move |store| store.begin(&conversation, &text)));
        let mut cancelled = false;
        let noted = loop {
            match self.meanwhile(&mut noting).await? {
                Err(code) => return Ok(Err(code)),
                Ok(None) => cancelled = true,
                Ok(Some(noted)) => break noted,
            }
        };
        if cancelled {
            self.app.effects.push_front(Effect::Cancel);
        }
        match noted {
            Ok(turn) => self.checkpoint = Some(turn),
            Err(failure) => {
                self.checkpoint = None;
                if !std::mem::replace(&mut self.app.undo_failed, true) {
                    let text = format!("file changes cannot be undone: {}", failure.message);
                    self.app.notice(Severity::Warning, text);
                }
            }
        }
        Ok(Ok(()))
    }

    /// Finds the changes of the turn that has ended.
    pub(super) fn end_checkpoint(&mut self) {
        if let (Some(checkpoints), Some(turn)) = (&self.starter.checkpoints, self.checkpoint) {
            checkpoints.notify(move |store| store.end(turn).map(drop));
        }
    }

    /// The checkpoint that may not have ended when the chat ends.
    pub(super) fn last_checkpoint(&self) -> Option<(Checkpoints, i64)> {
        self.starter.checkpoints.clone().zip(self.checkpoint)
    }

    /// Notes the files that the agent names in calls that may change them.
    pub(super) fn name_files(&self, event: &Event) {
        let Some(checkpoints) = &self.starter.checkpoints else { return };
        for path in named(event) {
            checkpoints.notify(move |store| store.name(&path));
        }
    }

    /// Adds to a prompt what goes along with it.
    pub(super) fn with_carried(&mut self, mut prompt: Prompt) -> Prompt {
        for carried in std::mem::take(&mut self.app.carried) {
            self.app.notice(Severity::Info, format!("sent along: {}", carried.label));
            prompt = prompt.with(carried.text.as_str());
        }
        prompt
    }

    /// Performs an effect of the checkpoints. Returns it if it is another one.
    pub(super) fn checkpoint_effect(&mut self, effect: Effect) -> Option<Effect> {
        let conversation = self.conversation();
        match effect {
            Effect::Diff => {
                let Some(checkpoints) = &self.starter.checkpoints else {
                    let files = help::announced(&self.app.transcript);
                    self.app.show_changes(&files);
                    return None;
                };
                let job = move |store: &mut Store| store.diff(&conversation);
                let roots: Vec<PathBuf> =
                    std::iter::once(&self.opener.cwd).chain(&self.opener.directories).cloned().collect();
                self.ask(checkpoints.clone(), job, move |app, mut files| {
                    // Of other files only the agent's word is known.
                    let mut outside = help::announced(&app.transcript);
                    outside.retain(|file| !roots.iter().any(|root| file.path.starts_with(root)));
                    files.extend(outside);
                    app.show_changes(&files);
                });
            }
            Effect::Undo(None) => {
                self.checkpoint_job(
                    move |store| store.undo(&conversation),
                    |app, outcome| app.undone(&outcome),
                );
            }
            Effect::Undo(Some(name)) => {
                let name = name.trim_start_matches(['@', '/']).trim_start_matches("./").to_owned();
                self.checkpoint_job(move |store| store.parts(&conversation, &name), App::offer_parts);
            }
            Effect::UndoPart(parts, None) => {
                let job = move |store: &mut Store| store.undo_file(&conversation, &parts.path);
                self.checkpoint_job(job, |app, outcome| app.undone(&outcome));
            }
            Effect::UndoPart(parts, Some(part)) => {
                let job = move |store: &mut Store| {
                    let outcome = store.undo_part(&conversation, &parts, part)?;
                    let name = parts.path.to_string_lossy().into_owned();
                    // Without any other part there is nothing more to offer.
                    Ok((outcome, store.parts(&conversation, name.trim_start_matches('/')).ok()))
                };
                self.checkpoint_job(job, |app, (outcome, rest)| {
                    app.undone(&outcome);
                    if let Some(rest) = rest {
                        app.offer_parts(rest);
                    }
                });
            }
            Effect::Redo => {
                let job = move |store: &mut Store| store.redo(&conversation);
                self.checkpoint_job(job, |app, outcome| app.redone(&outcome));
            }
            Effect::ListPrompts => {
                let job = move |store: &mut Store| store.checkpoints(&conversation);
                self.checkpoint_job(job, |app, turns| app.offer_prompts(&turns));
            }
            Effect::Rewind(turn, prompt) => {
                let job = move |store: &mut Store| store.rewind(&conversation, turn);
                self.checkpoint_job(job, move |app, outcome| {
                    app.undone(&outcome);
                    if app.editor.is_empty() {
                        app.editor.set(prompt);
                    }
                });
            }
            other => return Some(other),
        }
        None
    }

    fn checkpoint_job<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&mut Store) -> Result<T> + Send + 'static,
        then: impl FnOnce(&mut App, T) + Send + 'static,
    ) {
        match self.starter.checkpoints.clone() {
            Some(checkpoints) => self.ask(checkpoints, job, then),
            None => self
                .app
                .notice(Severity::Info, "nothing is kept for /undo: the setting `checkpoints` is false"),
        }
    }

    fn ask<T: Send + 'static>(
        &self,
        checkpoints: Checkpoints,
        job: impl FnOnce(&mut Store) -> Result<T> + Send + 'static,
        then: impl FnOnce(&mut App, T) + Send + 'static,
    ) {
        let sender = self.ui.task_results.0.clone();
        checkpoints.submit(job, move |done| {
            let applied = Applied::new(move |app| match done {
                Ok(value) => then(app, value),
                Err(failure) => app.notice(Severity::Warning, failure.message),
            });
            // Before the next job, so that a prompt brings the note about an undo before it.
            let _ = sender.blocking_send(TaskResult::Apply(applied));
        });
    }
}

/// The files that an event says to change.
fn named(event: &Event) -> Vec<PathBuf> {
    match event {
        Event::FromSubagent(_, event) => named(event),
        Event::ToolCall(change) => named_in(&change.update),
        Event::Permission(ask) => asked(ask),
        _ => Vec::new(),
    }
}

fn asked(ask: &PermissionAsk) -> Vec<PathBuf> {
    named_in(ask.tool_call())
}

fn named_in(call: &attache::wire::v1::ToolCallUpdate) -> Vec<PathBuf> {
    let contents = call.content.iter().flatten();
    let diffs = contents.filter_map(|content| match content {
        ToolCallContent::Diff(diff) => Some(PathBuf::from(&diff.path)),
        _ => None,
    });
    let mut paths: Vec<PathBuf> = diffs.collect();
    if matches!(call.kind, Some(ToolKind::Edit | ToolKind::Delete | ToolKind::Move)) {
        let locations = call.locations.iter().flatten();
        paths.extend(locations.map(|location| PathBuf::from(&location.path)));
    }
    paths
}

impl App {
    /// Queues an effect that needs the agent to be idle.
    pub(super) fn while_idle(&mut self, effect: Effect) {
        match self.phase {
            Phase::Idle | Phase::Gone => self.effects.push_back(effect),
            _ => self.notice(Severity::Warning, "the agent is working; cancel it first"),
        }
    }

    fn show_changes(&mut self, files: &[FileDiff]) {
        let lines = help::changes(files, &self.canvas);
        match lines.is_empty() {
            true => self.notice(Severity::Info, "no file was changed"),
            false => self.aside(lines),
        }
    }

    fn names(&self, paths: &[PathBuf]) -> String {
        let names: Vec<String> =
            paths.iter().map(|path| self.canvas.short(&path.to_string_lossy()).to_owned()).collect();
        names.join(", ")
    }

    /// Reports what was undone, and tells the agent with the next prompt.
    fn undone(&mut self, outcome: &Outcome) {
        let names = self.names(&outcome.changed);
        if !outcome.changed.is_empty() {
            let files = count(outcome.changed.len() as u64, "file");
            self.notice(Severity::Info, format!("undone in {files}: {names}; /redo restores it"));
            self.tell_agent(&format!("The user has undone changes of yours in these files: {names}."));
        } else if outcome.left.is_empty() {
            self.notice(Severity::Info, "nothing to undo: the files are what they were");
        }
        self.left_alone(outcome);
    }

    fn redone(&mut self, outcome: &Outcome) {
        let names = self.names(&outcome.changed);
        if !outcome.changed.is_empty() {
            self.notice(Severity::Info, format!("restored: {names}"));
            self.tell_agent(&format!("The user has restored your changes in these files: {names}."));
        }
        self.left_alone(outcome);
    }

    fn left_alone(&mut self, outcome: &Outcome) {
        for (path, why) in &outcome.left {
            let name = self.names(std::slice::from_ref(path));
            self.notice(
                Severity::Warning,
                format!("left alone: {name}: {why}; /undo {name} shows its parts"),
            );
        }
    }

    fn tell_agent(&mut self, what: &str) {
        let label = "a note about undone files";
        match self.carried.iter_mut().find(|carried| carried.label == label) {
            Some(carried) if carried.text.len() < MAX_NOTE => {
                carried.text.push('\n');
                carried.text.push_str(what);
            }
            Some(_) => {}
            None => {
                let text = format!("Read a file again before you change it.\n{what}");
                self.carried.push(Carried { label: label.to_owned(), text });
            }
        }
    }

    fn offer_parts(&mut self, parts: Parts) {
        let file = FileDiff {
            path: parts.path.clone(),
            old: Some(parts.old.clone()),
            new: Some(parts.new.clone()),
            note: parts.doubt.clone(),
        };
        let lines = help::changes(&[file], &self.canvas);
        self.aside(lines);
        let parts = Box::new(parts);
        let row = |(at, part): (usize, &Part)| Row {
            label: format!("line {}  -{} +{}", part.line, part.removed, part.added),
            about: part.text.clone(),
            current: false,
            value: Pick::UndoPart(parts.clone(), Some(at)),
        };
        let mut rows: Vec<Row<Pick>> = parts.parts.iter().enumerate().map(row).collect();
        rows.push(Row {
            label: "the whole file".to_owned(),
            about: String::new(),
            current: false,
            value: Pick::UndoPart(parts.clone(), None),
        });
        let name = self.names(std::slice::from_ref(&parts.path));
        self.picker = Some(Picker::new(format!("Undo in {name}"), rows));
    }

    fn offer_prompts(&mut self, turns: &[Checkpoint]) {
        if turns.is_empty() {
            return self.notice(Severity::Info, "no prompt to go back to");
        }
        let now = std::time::SystemTime::now();
        let row = |turn: &Checkpoint| {
            let first = turn.prompt.lines().next().unwrap_or_default().to_owned();
            let files = match turn.files {
                0 => "no changes".to_owned(),
                files => count(files as u64, "file"),
            };
            Row {
                label: first,
                about: format!("{files}  {}", crate::time::since(turn.began, now).unwrap_or_default()),
                current: false,
                value: Pick::Rewind(turn.turn, turn.prompt.clone()),
            }
        };
        self.picker = Some(Picker::new("Go back to before", turns.iter().map(row).collect()));
    }
}
