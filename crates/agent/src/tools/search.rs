//! `search`: lines that match a regular expression, found by ripgrep's libraries.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use attache::wire::v1::{ToolCallLocation, ToolKind};
use attache_host::policy::Effect;
use globset::GlobMatcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, SearcherBuilder};

use super::glob::{compile, is_match, walk};
use super::{Arguments, Job, Output, Result, Tool, ToolContext, ToolInfo, flag, missing, text};
use crate::blocking;
use crate::text::clip_marked;
use crate::workspace::WorkspacePath;

/// The most lines of one result.
const MAX_LINES: usize = 200;
/// The most further lines that are counted.
const MAX_COUNTED: usize = 10_000;
/// The longest line, in bytes.
const MAX_LINE: usize = 300;
/// How many of the lines are locations for the client.
const MAX_LOCATIONS: usize = 20;

pub(crate) struct Search;

impl Tool for Search {
    fn info(&self) -> ToolInfo {
        ToolInfo::new(
            ToolKind::Search,
            "search",
            "Searches files for a regular expression (Rust syntax) and returns the matching lines as path:line:text. Files that \
             the project ignores, and binary files, are left out.",
            &[
                ("pattern", text("the regular expression"), true),
                ("path", text("the file or directory to search; default: the working directory"), false),
                ("glob", text("only files whose name matches, such as *.rs"), false),
                ("ignore_case", flag("whether to ignore upper and lower case"), false),
                ("literal", flag("whether the pattern is plain text instead of a regular expression"), false),
            ],
        )
    }

    async fn prepare(&self, cx: &ToolContext, arguments: &Arguments<'_>) -> Result<Job> {
        let pattern = arguments.text("pattern")?.to_owned();
        let path = cx.resolve(arguments.text_if("path")?.unwrap_or("."))?;
        let files = arguments.text_if("glob")?.map(compile).transpose()?;
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(arguments.flag("ignore_case")?)
            .fixed_strings(arguments.flag("literal")?)
            .line_terminator(Some(b'\n'))
            .build(&pattern)
            .map_err(|error| format!("`pattern` is not a valid regular expression: {error}"))?;
        let title = format!("Search for `{pattern}` in {}", cx.short(&path));
        let (shown, effects) = (path.clone(), vec![Effect::Read(path.for_policy())]);
        let work = move |cx: ToolContext, _| async move {
            if !path.real.exists() {
                return Err(missing::error(&cx, &path).await);
            }
            let base = path.real.clone();
            let search = move |stop: &AtomicBool| search(&base, &matcher, files.as_ref(), stop);
            Ok(output(&cx, &path, blocking::run_until_dropped(search).await?))
        };
        Ok(Job::new(title, effects, work).location(&shown, None))
    }
}

/// A line that matches.
struct Match {
    /// Relative to the directory that is searched; empty if a file is searched.
    path: String,
    line: u64,
    text: String,
}

#[derive(Default)]
struct Matches {
    lines: Vec<Match>,
    /// How many more lines match, up to a limit.
    more: usize,
    /// How many files were searched.
    searched: usize,
    /// How many files the glob left out.
    excluded: usize,
}

fn search(base: &Path, matcher: &RegexMatcher, glob: Option<&GlobMatcher>, stop: &AtomicBool) -> Matches {
    let mut found = Matches::default();
    let mut searcher =
        SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).line_number(true).build();
    let matches = |path: &Path, name: &str| glob.is_none_or(|glob| is_match(glob, path, name));
    let mut files: Vec<_> = walk(base, stop)
        .filter(|(path, name)| {
            let is_wanted = matches(path, name);
            found.excluded += usize::from(!is_wanted);
            is_wanted
        })
        .collect();
    files.sort();
    found.searched = files.len();
    for (path, name) in files {
        let sink = Lossy(|line, text| {
            if found.lines.len() >= MAX_LINES {
                found.more += 1;
                return Ok(found.more < MAX_COUNTED && !stop.load(Ordering::Relaxed));
            }
            let text = clip_marked(text.trim_end(), MAX_LINE, " [… cut]");
            found.lines.push(Match { path: name.clone(), line, text });
            Ok(true)
        });
        // A file that cannot be read has no matches.
        let _ = searcher.search_path(matcher, &path, sink);
        if found.more >= MAX_COUNTED || stop.load(Ordering::Relaxed) {
            break;
        }
    }
    found
}

fn output(cx: &ToolContext, path: &WorkspacePath, found: Matches) -> Output {
    let base = cx.short(path);
    let name = |found: &Match| match (base.as_str(), found.path.as_str()) {
        (base, "") => base.to_owned(),
        (".", path) => path.to_owned(),
        (base, path) => format!("{base}/{path}"),
    };
    let lines = found.lines.iter().map(|found| format!("{}:{}:{}", name(found), found.line, found.text));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    if found.lines.is_empty() {
        text.push_str(&match (found.searched, found.excluded) {
            (0, 0) => "there are no files to search".to_owned(),
            (0, excluded) => format!("the glob excluded all {excluded} files; leave it out or change it"),
            (1, _) => "no line matches in 1 file".to_owned(),
            (searched, _) => format!("no line matches in {searched} files"),
        });
    }
    if found.more > 0 {
        let least = if found.more < MAX_COUNTED { "" } else { "at least " };
        text.push_str(&format!("\n(and {least}{} more; narrow the search)", found.more));
    }
    let location = |found: &Match| {
        let file = if path.is_dir() { path.named.join(&found.path) } else { path.named.clone() };
        ToolCallLocation::new(file.to_string_lossy().into_owned()).line(u32::try_from(found.line).ok())
    };
    let locations: Vec<_> = found.lines.iter().take(MAX_LOCATIONS).map(location).collect();
    Output { locations: (!locations.is_empty()).then_some(locations), ..Output::visible(text) }
}
