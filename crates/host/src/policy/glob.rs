//! Patterns for paths.

use std::path::{Path, PathBuf};

/// A pattern for paths: `*` and `?` stand for anything but `/`, `[a-z]` and `[!a-z]` for one character, `**` for any number of
/// directories, `{a,b}` for either.
///
/// A pattern that begins with `/` or `~/` means a place in the file system; any other one begins in the session's
/// directories. One without `/` means names at any depth. One that ends with `/` means everything below.
#[derive(Clone, Debug)]
pub struct Glob {
    text: String,
    absolute: bool,
    /// One for each way to choose among alternatives.
    ways: Vec<Vec<Segment>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// Any number of directories.
    Any,
    Name(Vec<Piece>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// Any number of characters.
    Star,
    One,
    Char(char),
    Class {
        not: bool,
        ranges: Vec<(char, char)>,
    },
}

/// More alternatives than this are a mistake.
const MAX_WAYS: usize = 256;

impl Glob {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When brackets or braces do not fit together.
    pub fn new(text: &str) -> Result<Self, String> {
        let mut whole = text.to_owned();
        if let Some(rest) = text.strip_prefix("~/") {
            let home = std::env::var("HOME").map_err(|_| format!("`{text}`: there is no HOME"))?;
            whole = format!("{}/{rest}", home.trim_end_matches('/'));
        }
        if whole.is_empty() {
            return Err("an empty pattern matches nothing".to_owned());
        }
        if whole.ends_with('/') {
            whole.push_str("**");
        }
        let absolute = whole.starts_with('/');
        let mut ways = Vec::new();
        for way in expand(&whole)? {
            let anywhere = !absolute && !way.contains('/');
            let names = way.split('/').filter(|name| !name.is_empty() && *name != ".");
            let mut segments: Vec<Segment> = names.map(segment).collect::<Result<_, _>>()?;
            if anywhere {
                segments.insert(0, Segment::Any);
            }
            ways.push(segments);
        }
        Ok(Glob { text: text.to_owned(), absolute, ways })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it means this path, which is absolute and free of `..`; `roots` are the session's directories.
    pub fn matches(&self, path: &Path, roots: &[PathBuf]) -> bool {
        self.candidates(path, roots).any(|names| self.matches_names(&names))
    }

    /// Whether it means this path or a directory above it. Where there are no roots, a relative pattern may begin anywhere.
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

    /// The names to look at: those of the whole path, or those below each root that it is in.
    fn candidates<'a>(&self, path: &'a Path, roots: &'a [PathBuf]) -> impl Iterator<Item = Vec<String>> {
        let absolute = self.absolute;
        let below =
            roots.iter().filter(move |_| !absolute).filter_map(move |root| path.strip_prefix(root).ok());
        // Where there are no roots, a relative pattern can still mean names at any depth.
        let whole = (absolute || !roots.iter().any(|root| path.starts_with(root)) && self.is_anywhere())
            .then_some(path);
        below.chain(whole).map(names)
    }

    fn is_anywhere(&self) -> bool {
        self.ways.iter().all(|way| way.first() == Some(&Segment::Any))
    }

    fn matches_names(&self, names: &[String]) -> bool {
        self.ways.iter().any(|way| matches_segments(way, names))
    }
}

fn names(path: &Path) -> Vec<String> {
    let name = |component: std::path::Component<'_>| match component {
        std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

/// `{a,b}` becomes two patterns, and so on for each pair of braces, also inside of others.
fn expand(text: &str) -> Result<Vec<String>, String> {
    let mut open = vec![text.to_owned()];
    let mut done = Vec::new();
    while let Some(text) = open.pop() {
        let Some((before, choices, after)) = first_braces(&text)? else {
            done.push(text);
            continue;
        };
        if open.len() + done.len() + choices.len() > MAX_WAYS {
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
            '}' if depth == 0 => return Err(format!("`{text}`: a `}}` without `{{`")),
            '}' => depth -= 1,
            _ => {}
        }
    }
    if depth > 0 { Err(format!("`{text}`: a `{{` without `}}`")) } else { Ok(None) }
}

fn segment(name: &str) -> Result<Segment, String> {
    if name == "**" {
        return Ok(Segment::Any);
    }
    let mut pieces = Vec::new();
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' if pieces.last() == Some(&Piece::Star) => {}
            '*' => pieces.push(Piece::Star),
            '?' => pieces.push(Piece::One),
            '[' => pieces.push(class(name, &mut chars)?),
            '\\' => pieces.push(Piece::Char(chars.next().ok_or_else(|| format!("`{name}` ends with `\\`"))?)),
            c => pieces.push(Piece::Char(c)),
        }
    }
    Ok(Segment::Name(pieces))
}

fn class(name: &str, chars: &mut std::str::Chars<'_>) -> Result<Piece, String> {
    let unclosed = || format!("`{name}`: a `[` without `]`");
    let mut members = Vec::new();
    let mut not = false;
    loop {
        match chars.next().ok_or_else(unclosed)? {
            '!' | '^' if members.is_empty() && !not => not = true,
            ']' if !members.is_empty() => break,
            c => members.push(c),
        }
    }
    let mut ranges = Vec::new();
    let mut rest = members.as_slice();
    loop {
        rest = match rest {
            [from, '-', to, rest @ ..] => {
                ranges.push((*from, *to));
                rest
            }
            [one, rest @ ..] => {
                ranges.push((*one, *one));
                rest
            }
            [] => return Ok(Piece::Class { not, ranges }),
        };
    }
}

/// The time this takes is bounded by the product of the two lengths: only the last `**` is ever gone back to.
fn matches_segments(pattern: &[Segment], names: &[String]) -> bool {
    star_match(
        pattern,
        names,
        |segment| *segment == Segment::Any,
        |segment, name| match segment {
            Segment::Any => true,
            Segment::Name(pieces) => matches_name(pieces, name),
        },
    )
}

fn matches_name(pieces: &[Piece], name: &str) -> bool {
    let chars: Vec<char> = name.chars().collect();
    star_match(
        pieces,
        &chars,
        |piece| *piece == Piece::Star,
        |piece, c| match piece {
            Piece::Star | Piece::One => true,
            Piece::Char(wanted) => wanted == c,
            Piece::Class { not, ranges } => ranges.iter().any(|(from, to)| (from..=to).contains(&c)) != *not,
        },
    )
}

fn star_match<P, T>(
    pattern: &[P],
    items: &[T],
    is_star: impl Fn(&P) -> bool,
    fits: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut p, mut i) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while let Some(item) = items.get(i) {
        match pattern.get(p) {
            Some(star) if is_star(star) => {
                back = Some((p + 1, i));
                p += 1;
                continue;
            }
            Some(piece) if fits(piece, item) => {
                (p, i) = (p + 1, i + 1);
                continue;
            }
            _ => {}
        }
        // The last star takes one item more.
        let Some((after, taken)) = back else { return false };
        back = Some((after, taken + 1));
        (p, i) = (after, taken + 1);
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(is_star))
}
