//! Cycles between the top-level modules of a crate.
//!
//! An edge leads from module `a` to module `b` when code of `a`, tests left out, has a path that
//! starts with `crate::b`, a chain of `super` that ends in `b`, or a name that the crate root
//! re-exports from `b`. Modules on a cycle cannot be read, tested or moved one by one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::repo;

/// Edges of one crate: from module, to module, and the first place that makes the edge.
type Edges = BTreeMap<String, BTreeMap<String, String>>;

/// A token with its line.
type Token = (usize, String);

/// Source files of a crate by their path below `src/`.
type Sources = BTreeMap<String, String>;

/// Returns one line per cycle found in the sources of any crate.
pub(super) fn check(files: &[String]) -> Vec<String> {
    let mut crates: BTreeMap<String, Sources> = BTreeMap::new();
    for path in files.iter().filter(|path| path.ends_with(".rs") && !repo::is_test_file(path)) {
        let Some((name, below)) = path.split_once("/src/") else { continue };
        // Files in `bin/` are roots of other programs.
        if below.starts_with("bin/") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(repo::root().join(path)) else { continue };
        crates.entry(name.to_owned()).or_default().insert(below.to_owned(), text);
    }
    crates.iter().flat_map(|(name, sources)| cycles_of(name, sources)).collect()
}

fn cycles_of(name: &str, sources: &Sources) -> Vec<String> {
    let edges = edges(sources);
    let reachable: BTreeMap<&String, BTreeSet<&String>> =
        edges.keys().map(|module| (module, reach(&edges, module))).collect();
    let mut seen = BTreeSet::new();
    let mut problems = Vec::new();
    for module in edges.keys() {
        if seen.contains(module) || !reachable[module].contains(module) {
            continue;
        }
        let group: Vec<&String> = reachable[module]
            .iter()
            .copied()
            .filter(|other| reachable.get(other).is_some_and(|back| back.contains(module)))
            .collect();
        seen.extend(group.iter().copied());
        let names: Vec<&str> = group.iter().map(|name| name.as_str()).collect();
        problems.push(format!("{name}: {} modules depend on each other: {}", names.len(), names.join(", ")));
        for from in &group {
            for (to, place) in edges[*from].iter().filter(|(to, _)| group.contains(to)) {
                problems.push(format!("    {from} -> {to} ({name}/src/{place})"));
            }
        }
    }
    problems
}

/// Modules that can be reached from `start` over at least one edge.
fn reach<'a>(edges: &'a Edges, start: &'a String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut queue = VecDeque::from([start]);
    while let Some(module) = queue.pop_front() {
        for to in edges.get(module).into_iter().flat_map(BTreeMap::keys) {
            if found.insert(to) {
                queue.push_back(to);
            }
        }
    }
    found
}

fn edges(sources: &Sources) -> Edges {
    let modules: BTreeSet<String> = sources.keys().filter_map(|path| top_module(path)).collect();
    let exported = root_exports(sources, &modules);
    let mut edges = Edges::new();
    for (path, text) in sources {
        let Some(from) = top_module(path) else { continue };
        let depth = module_depth(path);
        let known = edges.entry(from.clone()).or_default();
        for (line, name) in root_names(text, depth) {
            let to = if modules.contains(&name) { Some(&name) } else { exported.get(&name) };
            if let Some(to) = to.filter(|to| **to != from) {
                known.entry(to.clone()).or_insert_with(|| format!("{path}:{line}"));
            }
        }
    }
    edges
}

/// The module at the top of the crate that a file belongs to, `None` for the crate root.
fn top_module(path: &str) -> Option<String> {
    let first = path.split('/').next().unwrap_or(path).trim_end_matches(".rs");
    (!matches!(first, "lib" | "main")).then(|| first.to_owned())
}

/// How many `super` lead from the module in this file to the crate root.
fn module_depth(path: &str) -> usize {
    let depth = path.split('/').count();
    if path.ends_with("/mod.rs") { depth - 1 } else { depth }
}

/// Names that the crate root re-exports, with the module that each comes from.
fn root_exports(sources: &Sources, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut exported = BTreeMap::new();
    for root in ["lib.rs", "main.rs"].iter().filter_map(|root| sources.get(*root)) {
        let tokens = without_tests(tokens(root));
        for place in (0..tokens.len()).filter(|place| is_at(&tokens, *place, "use")) {
            let mut next = place + 1;
            while matches!(tokens.get(next), Some((_, token)) if matches!(token.as_str(), "crate" | "self" | "::"))
            {
                next += 1;
            }
            let Some((_, module)) = tokens.get(next).filter(|(_, name)| modules.contains(name)) else {
                continue;
            };
            for (_, name) in tokens[next..].iter().take_while(|(_, token)| token != ";") {
                if is_name(name) && name != module {
                    exported.entry(name.clone()).or_insert_with(|| module.clone());
                }
            }
        }
    }
    exported
}

/// Names at the crate root that a text refers to, with their lines.
fn root_names(text: &str, depth: usize) -> Vec<Token> {
    let tokens = without_tests(tokens(text));
    let mut names = Vec::new();
    let mut place = 0;
    while place < tokens.len() {
        let token = tokens[place].1.as_str();
        let starts = place == 0 || tokens[place - 1].1 != "::";
        let mut next = place + 1;
        let at_root = match token {
            "crate" if starts => true,
            "super" if starts => {
                let mut supers = 1;
                while is_at(&tokens, next, "::") && is_at(&tokens, next + 1, "super") {
                    supers += 1;
                    next += 2;
                }
                supers == depth
            }
            _ => false,
        };
        if at_root && is_at(&tokens, next, "::") {
            names.extend(first_names(&tokens, next + 1));
        }
        place = next;
    }
    names
}

/// The name at `place`, or the first name of each branch of a `{…}` group there.
fn first_names(tokens: &[Token], place: usize) -> Vec<Token> {
    if !is_at(tokens, place, "{") {
        return tokens.get(place).into_iter().cloned().collect();
    }
    let (mut depth, mut expects, mut names) = (0, false, Vec::new());
    for (line, token) in &tokens[place..] {
        match token.as_str() {
            "{" => {
                depth += 1;
                expects = depth == 1;
            }
            "}" if depth == 1 => break,
            "}" => depth -= 1,
            "," => expects = depth == 1,
            name if expects => {
                names.push((*line, name.to_owned()));
                expects = false;
            }
            _ => {}
        }
    }
    names
}

fn is_at(tokens: &[Token], place: usize, expected: &str) -> bool {
    tokens.get(place).is_some_and(|(_, token)| token == expected)
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Leaves out modules of tests, at any place of a file.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut rest = tokens.as_slice();
    while let Some((first, after)) = rest.split_first() {
        if let Some(block) = test_block(rest) {
            rest = after_block(&rest[block..]);
        } else {
            kept.push(first.clone());
            rest = after;
        }
    }
    kept
}

/// Where the block of a module begins whose attribute, the first token, names `test`:
/// `#[cfg(all(test, …))] mod name {`.
fn test_block(tokens: &[Token]) -> Option<usize> {
    let words: Vec<&str> = tokens.iter().take(10).map(|(_, token)| token.as_str()).collect();
    let module = words.iter().position(|word| *word == "mod")?;
    let attribute = words.get(..module)?;
    let for_tests =
        words.first() == Some(&"cfg") && attribute.contains(&"test") && !attribute.contains(&"not");
    (for_tests && words.get(module + 2) == Some(&"{")).then_some(module + 2)
}

/// The tokens after a block that begins with the first one.
fn after_block(tokens: &[Token]) -> &[Token] {
    let mut depth = 0;
    for (place, (_, token)) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" => depth += 1,
            "}" if depth == 1 => return &tokens[place + 1..],
            "}" => depth -= 1,
            _ => {}
        }
    }
    &[]
}

/// Names, `::`, braces, commas and semicolons, each with its line; comments and strings are left
/// out.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut chars = text.chars().peekable();
    let mut line = 1;
    while let Some(c) = chars.next() {
        match c {
            '\n' => line += 1,
            '/' if chars.peek() == Some(&'/') => {
                while chars.peek().is_some_and(|c| *c != '\n') {
                    chars.next();
                }
            }
            '"' => {
                let mut escaped = false;
                for c in chars.by_ref() {
                    line += usize::from(c == '\n');
                    match c {
                        '"' if !escaped => break,
                        '\\' => escaped = !escaped,
                        _ => escaped = false,
                    }
                }
            }
            ':' if chars.peek() == Some(&':') => {
                chars.next();
                tokens.push((line, "::".to_owned()));
            }
            '{' | '}' | ',' | ';' => tokens.push((line, c.to_string())),
            c if c.is_ascii_alphabetic() || c == '_' => {
                let mut name = c.to_string();
                while let Some(c) = chars.peek().filter(|c| c.is_ascii_alphanumeric() || **c == '_') {
                    name.push(*c);
                    chars.next();
                }
                tokens.push((line, name));
            }
            // A quoted character must not open a string.
            '\'' => {
                let mut ahead = chars.clone();
                let (first, second, third) = (ahead.next(), ahead.next(), ahead.next());
                if first == Some('\\') && third == Some('\'') {
                    chars = ahead;
                } else if second == Some('\'') && first.is_some() {
                    chars.next();
                    chars.next();
                }
            }
            _ => {}
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        cycles_of("x", &sources)
    }

    #[test]
    fn arrows_in_one_direction_are_no_cycle() {
        let files = [("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "pub struct B;")];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn groups_supers_and_exports_of_the_root_are_followed() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; pub use c::{C, D};"),
            ("a.rs", "use crate::{b::{B, X}, Y};"),
            ("b/mod.rs", "mod inner;"),
            ("b/inner.rs", "fn f() { super::super::c::g(\"crate::z\") }"),
            ("c.rs", "struct C; impl C { fn f(a: crate::a::A) {} }"),
        ];
        let report = found(&files);
        assert_eq!(report[0], "x: 3 modules depend on each other: a, b, c");
        let files = [
            ("lib.rs", "mod a; mod c; pub use c::C;"),
            ("a.rs", "use crate::C;"),
            ("c.rs", "use super::a::A;"),
        ];
        assert_eq!(found(&files)[0], "x: 2 modules depend on each other: a, c");
    }

    #[test]
    fn tests_comments_and_strings_make_no_edge() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            (
                "b.rs",
                "// crate::a\nconst Q: char = '\"'; // \"\n#[cfg(test)]\nmod tests { use crate::a::A; fn f() {} }\nfn g() {}",
            ),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }
}
