//! `glob`: files by name. The walk that it shares with `search` leaves out what the project ignores.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use attache::wire::v1::ToolKind;
use attache_host::policy::Effect;
use globset::{GlobBuilder, GlobMatcher};

use super::{Arguments, Boxed, Cx, Job, Output, Tool, spec, text};
use crate::model::ToolSpec;
use crate::project;

/// The most files that are told.
const MOST: usize = 200;

pub(crate) struct Find;

impl Tool for Find {
    fn spec(&self) -> ToolSpec {
        spec(
            "glob",
            "Finds files by name, such as `src/**/*.rs` or `*.toml`, the latest changed first. Files that the project \
             ignores are left out.",
            &[
                ("pattern", text("a glob; one without `/` is looked for in every directory"), true),
                ("path", text("the directory to look below; the working directory unless given"), false),
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
            let glob = glob(&pattern)?;
            let title = format!("Find {pattern} in {}", cx.short(&place));
            let (at, effects) = (place.clone(), vec![Effect::Read(place.path())]);
            let work = move |cx: Cx, _| async move {
                let (base, shown) = (place.real.clone(), cx.short(&place));
                let found = blocking(move |stop| find(&base, &glob, stop)).await?;
                Ok(tell(&shown, found))
            };
            Ok(Job::new(title, ToolKind::Search, effects, work).at(&at, None))
        })
    }
}

/// A glob that is matched against paths relative to where the walk begins.
pub(super) fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    let pattern = pattern.trim_start_matches("./");
    let everywhere = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    let glob = GlobBuilder::new(&everywhere).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| format!("`{pattern}` is no glob: {error}"))
}

fn find(base: &Path, glob: &GlobMatcher, stop: &AtomicBool) -> Vec<(SystemTime, String)> {
    let mut found = Vec::new();
    for entry in project::files(base).take_while(|_| !stop.load(Ordering::Relaxed)) {
        let path = entry.into_path();
        let relative = path.strip_prefix(base).unwrap_or(&path);
        if glob.is_match(relative) {
            let time = path.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
            found.push((time, relative.display().to_string()));
        }
    }
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found
}

fn tell(base: &str, found: Vec<(SystemTime, String)>) -> Output {
    let count = found.len();
    let prefix = if base == "." { String::new() } else { format!("{base}/") };
    let names: Vec<String> =
        found.into_iter().take(MOST).map(|(_, name)| format!("{prefix}{name}")).collect();
    let mut told = match names.is_empty() {
        true => "no file matches".to_owned(),
        false => names.join("\n"),
    };
    if count > MOST {
        told.push_str(&format!("\n(and {} more; narrow the pattern)", count - MOST));
    }
    Output::shown(told)
}

/// Work that looks at many files, on a thread of its own; told to stop when nobody waits for it any more.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, String> {
    struct Stop(Arc<AtomicBool>);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = Stop(Arc::default());
    let flag = stop.0.clone();
    tokio::task::spawn_blocking(move || work(&flag)).await.map_err(|error| error.to_string())
}
