//! Patterns for paths.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

/// A pattern for paths: `*` and `?` match anything but `/`, `[a-z]` and `[!a-z]` one character,
/// `**` any number of directories, `{a,b}` either.
///
/// A pattern that begins with `/` or `~/` is absolute; any other one is relative to the directories
/// of the session. A pattern without `/` matches names at any depth. A pattern that ends with `/`
/// matches everything below that directory.
#[derive(Clone, Debug)]
pub struct Glob {
    text: String,
    absolute: bool,
    /// The components of each alternative.
    alternatives: Vec<Vec<Segment>>,
}

/// One component of a pattern.
///
/// Components are compiled apart from each other, because a class such as `[!a]` matches `/` in a
/// pattern that globset compiles as a whole, and braces are expanded before, because each branch of
/// `{*.rs,src/main.c}` begins in its own place.
#[derive(Clone, Debug)]
enum Segment {
    /// Any number of directories.
    Any,
    Name(GlobMatcher),
}

/// Upper bound of the alternatives of one pattern.
const MAX_ALTERNATIVES: usize = 256;

impl Glob {
    /// Parses a pattern.
    ///
    /// # Errors
    /// When brackets or braces are not balanced, or there are too many alternatives.
    pub fn new(text: &str) -> Result<Self, String> {
        let mut whole = text.to_owned();
        if let Some(rest) = text.strip_prefix("~/") {
            let home = std::env::var("HOME").map_err(|_| format!("`{text}`: HOME is not set"))?;
            whole = format!("{}/{rest}", home.trim_end_matches('/'));
        }
        if whole.is_empty() {
            return Err("an empty pattern matches nothing".to_owned());
        }
        if whole.ends_with('/') {
            whole.push_str("**");
        }
        let absolute = whole.starts_with('/');
        let mut alternatives = Vec::new();
        for alternative in expand(&whole)? {
            let anywhere = !absolute && !alternative.contains('/');
            let names = alternative.split('/').filter(|name| !name.is_empty() && *name != ".");
            let mut segments: Vec<Segment> = names.map(segment).collect::<Result<_, _>>()?;
            if anywhere {
                segments.insert(0, Segment::Any);
            }
            alternatives.push(segments);
        }
        Ok(Glob { text: text.to_owned(), absolute, alternatives })
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern matches a path, which is absolute and has no `..`; `roots` are the
    /// directories of the session.
    pub fn matches(&self, path: &Path, roots: &[PathBuf]) -> bool {
        self.candidates(path, roots).any(|names| self.matches_names(&names))
    }

    /// Whether the pattern matches a path or one of its parents. Without roots, a relative pattern
    /// may begin anywhere.
    pub fn covers(&self, path: &Path, roots: &[PathBuf]) -> bool {
        let beginnings: Vec<PathBuf>;
        let roots = if roots.is_empty() {
            beginnings = path.ancestors().map(Path::to_owned).collect();
            &beginnings
        } else {
            roots
        };
        self.candidates(path, roots).any(|names| {
            (1..=names.len()).any(|n| names.get(..n).is_some_and(|some| self.matches_names(some)))
        })
    }

    /// The components to match: those of the whole path, or those below each root that contains it.
    fn candidates<'a>(&self, path: &'a Path, roots: &'a [PathBuf]) -> impl Iterator<Item = Vec<String>> {
        let absolute = self.absolute;
        let below =
            roots.iter().filter(move |_| !absolute).filter_map(move |root| path.strip_prefix(root).ok());
        // Outside of all roots, a pattern without `/` still matches names at any depth.
        let whole = (absolute || !roots.iter().any(|root| path.starts_with(root)) && self.is_anywhere())
            .then_some(path);
        below.chain(whole).map(names)
    }

    fn is_anywhere(&self) -> bool {
        self.alternatives.iter().all(|segments| matches!(segments.first(), Some(Segment::Any)))
    }

    fn matches_names(&self, names: &[String]) -> bool {
        self.alternatives.iter().any(|segments| matches_segments(segments, names))
    }
}

fn names(path: &Path) -> Vec<String> {
    let name = |component: std::path::Component<'_>| match component {
        std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

/// Expands `{a,b}` into two patterns, nested braces included.
fn expand(text: &str) -> Result<Vec<String>, String> {
    let mut open = vec![text.to_owned()];
    let mut done = Vec::new();
    while let Some(text) = open.pop() {
        let Some((before, choices, after)) = first_braces(&text)? else {
            done.push(text);
            continue;
        };
        if open.len() + done.len() + choices.len() > MAX_ALTERNATIVES {
            return Err("too many alternatives".to_owned());
        }
        open.extend(choices.iter().map(|choice| format!("{before}{choice}{after}")));
    }
    Ok(done)
}

type Braces<'a> = (&'a str, Vec<&'a str>, &'a str);

fn first_braces(text: &str) -> Result<Option<Braces<'_>>, String> {
    let (mut depth, mut start, mut from) = (0_usize, 0, 0);
    let mut choices = Vec::new();
    let mut in_class = false;
    for (at, c) in text.char_indices() {
        match c {
            '[' => in_class = true,
            ']' => in_class = false,
            _ if in_class => {}
            '{' => {
                depth += 1;
                if depth == 1 {
                    (start, from) = (at, at + 1);
                }
            }
            ',' if depth == 1 => {
                choices.push(&text[from..at]);
                from = at + 1;
            }
            '}' if depth == 1 => {
                choices.push(&text[from..at]);
                return Ok(Some((&text[..start], choices, &text[at + 1..])));
            }
            '}' if depth == 0 => return Err(format!("`{text}`: unmatched `}}`")),
            '}' => depth -= 1,
            _ => {}
        }
    }
    if depth > 0 { Err(format!("`{text}`: unmatched `{{`")) } else { Ok(None) }
}

fn segment(name: &str) -> Result<Segment, String> {
    if name == "**" {
        return Ok(Segment::Any);
    }
    let glob = GlobBuilder::new(name).backslash_escape(true).build();
    glob.map(|glob| Segment::Name(glob.compile_matcher())).map_err(|error| error.to_string())
}

/// Matches in time bounded by the product of the two lengths: only the last `**` is backtracked to.
fn matches_segments(pattern: &[Segment], names: &[String]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while let Some(name) = names.get(n) {
        match pattern.get(p) {
            Some(Segment::Any) => {
                back = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some(Segment::Name(glob)) if glob.is_match(name) => {
                (p, n) = (p + 1, n + 1);
                continue;
            }
            _ => {}
        }
        // The last `**` takes one name more.
        let Some((after, taken)) = back else { return false };
        back = Some((after, taken + 1));
        (p, n) = (after, taken + 1);
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|segment| matches!(segment, Segment::Any)))
}
