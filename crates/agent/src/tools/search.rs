//! `search`: lines that match a regular expression, found by ripgrep's libraries.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use attache::wire::v1::{ToolCallLocation, ToolKind};
use attache_host::policy::Effect;
use globset::GlobMatcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, SearcherBuilder};

use super::find::{blocking, glob};
use super::{Arguments, Boxed, Cx, Job, Output, Tool, clip, flag, spec, text};
use crate::ground::{Ground, Place};
use crate::model::ToolSpec;
use crate::project;

/// The most lines that are told.
const MOST: usize = 200;
/// How long one of them may be.
const LINE: usize = 300;
/// How many of them are places to jump to.
const LOCATIONS: usize = 20;

pub(crate) struct Search;

impl Tool for Search {
    fn spec(&self) -> ToolSpec {
        spec(
            "search",
            "Searches files for a regular expression (Rust syntax) and tells the matching lines as path:line:text. Files that \
             the project ignores, and binary files, are left out.",
            &[
                ("pattern", text("the regular expression"), true),
                ("path", text("the file or directory to search; the working directory unless given"), false),
                ("glob", text("only files whose name matches, such as *.rs"), false),
                ("ignore_case", flag("whether upper and lower case are the same"), false),
                ("literal", flag("whether the pattern is plain text and no regular expression"), false),
            ],
        )
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Search
    }

    fn prepare<'a>(&'a self, cx: &'a Cx, arguments: &'a Arguments<'a>) -> Boxed<'a, Result<Job, String>> {
        Box::pin(async move {
            let pattern = arguments.text("pattern")?.to_owned();
            let place = cx.place(arguments.text_if("path")?.unwrap_or("."))?;
            let files = arguments.text_if("glob")?.map(glob).transpose()?;
            let matcher = RegexMatcherBuilder::new()
                .case_insensitive(arguments.flag("ignore_case")?)
                .fixed_strings(arguments.flag("literal")?)
                .line_terminator(Some(b'\n'))
                .build(&pattern)
                .map_err(|error| format!("`pattern` is no regular expression: {error}"))?;
            let title = format!("Search for `{pattern}` in {}", cx.short(&place));
            let (at, effects) = (place.clone(), vec![Effect::Read(place.path())]);
            let work = move |cx: Cx, _| async move {
                let base = place.real.clone();
                let found = blocking(move |stop| search(&base, &matcher, files.as_ref(), stop)).await?;
                Ok(tell(&cx, &place, found))
            };
            Ok(Job::new(title, ToolKind::Search, effects, work).at(&at, None))
        })
    }
}

/// A line that matches.
struct Hit {
    /// Relative to where the search began; empty if that is the file itself.
    path: String,
    line: u64,
    text: String,
}

#[derive(Default)]
struct Found {
    hits: Vec<Hit>,
    /// There are more.
    more: bool,
}

fn search(base: &Path, matcher: &RegexMatcher, files: Option<&GlobMatcher>, stop: &AtomicBool) -> Found {
    let mut found = Found::default();
    let mut searcher =
        SearcherBuilder::new().binary_detection(BinaryDetection::quit(0)).line_number(true).build();
    let entries = project::files(base).take_while(|_| !stop.load(Ordering::Relaxed));
    let mut paths: Vec<_> = entries.map(ignore::DirEntry::into_path).collect();
    paths.sort();
    for path in paths {
        let relative = path.strip_prefix(base).unwrap_or(&path);
        if files.is_some_and(|files| !files.is_match(relative)) {
            continue;
        }
        let name = relative.display().to_string();
        let sink = Lossy(|line, text| {
            if found.hits.len() >= MOST || stop.load(Ordering::Relaxed) {
                found.more = true;
                return Ok(false);
            }
            let (text, cut) = clip(text.trim_end(), LINE);
            let text = format!("{text}{}", if cut { " [… cut]" } else { "" });
            found.hits.push(Hit { path: name.clone(), line, text });
            Ok(true)
        });
        // A file that cannot be read has no lines to tell.
        let _ = searcher.search_path(matcher, &path, sink);
        if found.more || stop.load(Ordering::Relaxed) {
            break;
        }
    }
    found
}

fn tell(cx: &Cx, place: &Place, found: Found) -> Output {
    let base = cx.short(place);
    let name = |hit: &Hit| match (base.as_str(), hit.path.as_str()) {
        (base, "") => base.to_owned(),
        (".", path) => path.to_owned(),
        (base, path) => format!("{base}/{path}"),
    };
    let mut told = match found.hits.is_empty() {
        true => "no line matches".to_owned(),
        false => {
            let lines = found.hits.iter().map(|hit| format!("{}:{}:{}", name(hit), hit.line, hit.text));
            lines.collect::<Vec<_>>().join("\n")
        }
    };
    if found.more {
        told.push_str("\n(and more; narrow the search)");
    }
    let location = |hit: &Hit| {
        let path = if Ground::is_dir(place) { place.named.join(&hit.path) } else { place.named.clone() };
        let line = u32::try_from(hit.line).ok();
        ToolCallLocation::new(path.to_string_lossy().into_owned()).line(line)
    };
    let locations: Vec<_> = found.hits.iter().take(LOCATIONS).map(location).collect();
    Output { locations: (!locations.is_empty()).then_some(locations), ..Output::shown(told) }
}
