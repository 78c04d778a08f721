//! `attache trust`, and the question whether the files of a folder may take effect.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};

use attache_host::trust::{ProjectFile, ProjectFiles, Trust, TrustStore};
use serde_json::{Value, json};

use crate::config;
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::output::{Format, wait_unanswered_blocking};

/// Files that the question lists one by one.
const LISTED: usize = 20;

fn store(cx: &Cx) -> TrustStore {
    TrustStore::new(&cx.paths.state)
}

/// Asks on a terminal whether the folder is trusted, before a command that works in it. In scripts
/// the folder stays restricted.
pub(crate) fn ask_first(cx: &mut Cx) -> Result<()> {
    let Trust::Unknown(files) = &cx.config.project.status else { return Ok(()) };
    let path = cx.args.path();
    let works_here =
        matches!(path.as_slice(), [] | ["prompt" | "exec" | "compare"] | ["sessions", "new" | "ensure"]);
    let attended =
        io::stdin().is_terminal() && io::stderr().is_terminal() && cx.output.format == Format::Text;
    if !works_here || !attended || cx.config.project.overridden {
        return Ok(());
    }
    let trusted = question(cx, files)?;
    crate::paths::private_dir(&cx.paths.state).context(cx.paths.state.display())?;
    store(cx).set(&cx.config.project.files, trusted).context("the trusted folders")?;
    cx.config = config::load(&cx.paths, &cx.cwd, Some(&cx.flags))?;
    Ok(())
}

fn question(cx: &Cx, files: &[ProjectFile]) -> Result<bool> {
    let project = &cx.config.project.files;
    let out = &cx.output;
    let before = if files.len() < project.files().len() { " These are new or have changed:" } else { "" };
    out.tell(format_args!("Do you trust the files in this folder? {}", project.root().display()));
    out.tell(format_args!("If you do, the following take effect.{before}"));
    for file in files.iter().take(LISTED) {
        out.tell_row(&format!("  {}  ({})", project.short(&file.path).display(), file.kind));
    }
    if files.len() > LISTED {
        out.tell(format_args!("  and {} more", files.len() - LISTED));
    }
    for ignored in &cx.config.ignored {
        out.tell(format_args!("  the setting `{}`", ignored.key));
    }
    out.tell("If you do not, the folder is restricted: they do not take effect, and Attaché's own agent only reads.");
    // Input typed before the question could be read is discarded.
    wait_unanswered_blocking();
    loop {
        out.ask("? Trust it? [y/n] ");
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line).context("your answer")?;
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ if read == 0 => return Err(Failure::interrupted()),
            _ => {}
        }
    }
}

/// Lists the answers.
pub(crate) fn list(cx: &Cx) -> Result<()> {
    let entries = store(cx).list().context("the trusted folders")?;
    if cx.output.format == Format::Json {
        let row = |entry: &attache_host::trust::TrustEntry| {
            let files: Vec<&Path> = entry.files().collect();
            json!({ "path": entry.path, "trusted": entry.trusted, "since": entry.since, "files": files })
        };
        cx.output.json(&entries.iter().map(row).collect::<Value>());
        return Ok(());
    }
    if entries.is_empty() && cx.output.format == Format::Text {
        cx.output.line("no folder is trusted yet");
    }
    for entry in &entries {
        let word = if entry.trusted { "trusted" } else { "restricted" };
        cx.output.line(format_args!("{word}\t{}\t{}", entry.path.display(), entry.since));
    }
    Ok(())
}

/// The folder that a command names, or the present one.
fn folder(cx: &Cx) -> Result<PathBuf> {
    cx.args.word(0).map_or_else(|| Ok(cx.cwd.clone()), |dir| crate::cx::absolute(&cx.cwd, dir))
}

/// Trusts a folder.
pub(crate) fn add(cx: &Cx) -> Result<()> {
    let folder = folder(cx)?;
    // Read again with the folder's own settings, so that the files which they name are covered.
    let files = config::load(&cx.paths, &folder, None)?.project.files;
    if files.is_empty() {
        cx.output.line(format_args!("{} has no files that would take effect", files.root().display()));
        return Ok(());
    }
    crate::paths::private_dir(&cx.paths.state).context(cx.paths.state.display())?;
    store(cx).set(&files, true).context("the trusted folders")?;
    report(cx, "trusted", &files);
    Ok(())
}

fn report(cx: &Cx, word: &str, files: &ProjectFiles) {
    match cx.output.format {
        Format::Json => cx.output.json(&json!({ "action": word, "path": files.root() })),
        Format::Quiet => {}
        Format::Text => {
            cx.output.line(format_args!("{word}: {}", files.root().display()));
            for file in files.files() {
                cx.output.row(format_args!("  {}  ({})", files.short(&file.path).display(), file.kind));
            }
        }
    }
}

/// Forgets the answer about a folder. One that does not exist any more can be named too.
pub(crate) fn remove(cx: &Cx) -> Result<()> {
    let named = cx.args.word(0).map_or_else(|| cx.cwd.clone(), |dir| cx.cwd.join(dir));
    let real = named.canonicalize().unwrap_or(named);
    let root = attache_host::trust::project_root(&real).to_owned();
    let store = store(cx);
    let removed =
        [&real, &root].into_iter().try_fold(false, |removed, path| Ok(removed | store.remove(path)?));
    match removed.map_err(|error: io::Error| error).context("the trusted folders")? {
        true => cx.output.line(format_args!("deleted: {}", root.display())),
        false => return Err(Failure::usage(format_args!("no answer for {}", root.display()))),
    }
    Ok(())
}
