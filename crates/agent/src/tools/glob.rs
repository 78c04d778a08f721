//! `glob`: files by name.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use attache::wire::v1::ToolKind;
use attache_host::policy::Effect;
use globset::{GlobBuilder, GlobMatcher};

use super::{Arguments, Job, Output, Result, Tool, ToolContext, ToolInfo, limited_lines, missing, text};
use crate::{blocking, project_files};

/// The most files of one result.
const MAX_FILES: usize = 200;

pub(crate) struct Glob;

impl Tool for Glob {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            ToolKind::Search,
            "glob",
            "Finds files by name, such as `src/**/*.rs` or `*.toml`, most recently changed first. Files that the project \
             ignores are left out.",
            &[
                ("pattern", text("a glob; one without `/` matches in every directory"), true),
                ("path", text("the directory to search; default: the working directory"), false),
            ],
        )
    }

    async fn prepare(&self, cx: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let pattern = arguments.text("pattern")?.to_owned();
        let path = cx.resolve(arguments.text_if("path")?.unwrap_or("."))?;
        let glob = compile(&pattern)?;
        let title = format!("Find {pattern} in {}", cx.short(&path));
        let (shown, effects) = (path.clone(), vec![Effect::Read(path.for_policy())]);
        let work = move |cx: ToolContext, _| async move {
            if !path.real.exists() {
                return Err(missing::error(&cx, &path).await);
            }
            let (base, prefix) = (path.real.clone(), cx.short(&path));
            let found = blocking::run_until_dropped(move |stop| find(&base, &glob, stop)).await?;
            let prefix = if prefix == "." { String::new() } else { format!("{prefix}/") };
            let names: Vec<String> = found.into_iter().map(|name| format!("{prefix}{name}")).collect();
            Ok(Output::visible(limited_lines(&names, MAX_FILES, "no file matches", "narrow the pattern")))
        };
        Ok(Job::new(title, effects, work).location(&shown, None))
    }
}

/// A glob that is matched against paths relative to the directory that is searched.
pub(super) fn compile(pattern: &str) -> Result<GlobMatcher, String> {
    let pattern = pattern.trim_start_matches("./");
    let everywhere = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    let glob = GlobBuilder::new(&everywhere).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|error| format!("`{pattern}` is not a valid glob: {error}"))
}

/// The project's files below a directory, or one file, each with its path relative to `base`, until
/// `stop` is set.
pub(super) fn walk<'a>(base: &'a Path, stop: &'a AtomicBool) -> impl Iterator<Item = (PathBuf, String)> + 'a {
    let files = project_files::walk(base).take_while(|_| !stop.load(Ordering::Relaxed));
    files.map(move |path| {
        let relative = path.strip_prefix(base).unwrap_or(&path).display().to_string();
        (path, relative)
    })
}

/// Whether a file of [`walk`] matches. The path relative to the file itself is empty; then its name
/// counts.
pub(super) fn is_match(glob: &GlobMatcher, path: &Path, relative: &str) -> bool {
    match relative {
        "" => path.file_name().is_some_and(|name| glob.is_match(name)),
        relative => glob.is_match(relative),
    }
}

fn find(base: &Path, glob: &GlobMatcher, stop: &AtomicBool) -> Vec<String> {
    let time =
        |path: &Path| path.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut found: Vec<_> = walk(base, stop)
        .filter(|(path, name)| is_match(glob, path, name))
        .map(|(path, name)| (time(&path), name))
        .collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.into_iter().map(|(_, name)| name).collect()
}
