//! Every public type, trait and function of the crate leads to an example.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The documentation of the public items of all files, by the item's name; that of methods by
/// `::name`.
fn documented(directory: &Path, items: &mut HashMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            documented(&path, items);
            continue;
        }
        let (mut docs, source) = (String::new(), fs::read_to_string(&path).unwrap());
        for line in source.lines() {
            let (code, is_method) = (line.trim_start(), line.starts_with(' '));
            let words: Vec<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            match words.as_slice() {
                _ if code.starts_with("///") => {
                    docs += code.trim_start_matches('/').trim();
                    docs.push(' ');
                }
                _ if code.starts_with("//") || code.starts_with("#[") => {}
                ["pub", "fn", name, ..] | ["pub", "async", "fn", name, ..] if is_method => {
                    items.entry(format!("::{name}")).or_default().push_str(&std::mem::take(&mut docs));
                }
                ["pub", "struct" | "enum" | "trait" | "fn", name, ..] | ["pub", "async", "fn", name, ..]
                    if !is_method =>
                {
                    items.insert((*name).to_owned(), std::mem::take(&mut docs));
                }
                _ => docs.clear(),
            }
        }
    }
}

#[test]
fn every_public_item_leads_to_an_example() {
    let package = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut items = HashMap::new();
    documented(&package.join("src"), &mut items);
    assert!(items.len() > 80, "{}", items.len());
    let has_code = |docs: &String| docs.contains("```");
    for (name, docs) in items.iter().filter(|(name, _)| !name.starts_with("::")) {
        let link = docs.split_once("Example: [`").and_then(|(_, rest)| rest.split_once("`]"));
        let found = match link.map(|(target, _)| target) {
            _ if has_code(docs) => true,
            Some(file) if file.starts_with("examples/") => package.join(file).exists(),
            // Modules and methods have their own documentation; their examples are doctests.
            Some("agent" | "attache" | "translate" | "Session::into_parts") => true,
            Some(item) => {
                let item = item.split_once("::").map_or(item.to_owned(), |(_, method)| format!("::{method}"));
                items.get(&item).is_some_and(has_code)
            }
            None => false,
        };
        assert!(found, "`{name}` has no example: {docs}");
    }
}

/// Messages that only version 1 has, or that are about its wire: proxies, services of a client,
/// drafts.
const OF_VERSION_1: [&str; 6] = [
    "CreateTerminalRequest, TerminalExitStatus, TerminalOutputResponse",
    "NesCapabilities, NesEditSuggestion, NesSuggestion, SuggestNesRequest",
    "NesSuggestContext, NesTriggerKind, Position, StartNesRequest",
    "PromptRequest",
    "ReadTextFileRequest, WriteTextFileRequest",
    "SessionNotification",
];

/// Checks the examples in a file, or all of a directory.
fn check_versions(path: &Path, is_example: bool) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            check_versions(&entry.unwrap().path(), is_example);
        }
        return;
    }
    let source = fs::read_to_string(path).unwrap();
    let is_shown =
        |line: &&str| is_example || ["///", "//!"].iter().any(|doc| line.trim_start().starts_with(doc));
    let lines: Vec<&str> = source.lines().filter(is_shown).collect();
    let text = lines.join(" ").replace("///", "").replace("//!", "");
    for used in text.split("attache::wire::v1::").skip(1) {
        let names = used.split(';').next().unwrap().replace(['{', '}'], "");
        let names: Vec<&str> = names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        assert!(OF_VERSION_1.contains(&&*names.join(", ")), "{}: {names:?}", path.display());
    }
}

#[test]
fn examples_name_no_version_of_the_protocol() {
    let package = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    check_versions(&package.join("src"), false);
    check_versions(&package.join("examples"), true);
    check_versions(&package.join("README.md"), true);
}
