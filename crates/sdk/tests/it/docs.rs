//! Every public type, trait and function of the crate leads to an example.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The documentation of the public items of all files, by the item's name.
fn documented(directory: &Path, items: &mut HashMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            documented(&path, items);
            continue;
        }
        let (mut docs, source) = (String::new(), fs::read_to_string(&path).unwrap());
        for line in source.lines() {
            let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            match words.as_slice() {
                _ if line.starts_with("///") => docs += line,
                _ if line.starts_with("//") || line.starts_with("#[") => {}
                ["pub", "struct" | "enum" | "trait" | "fn", name, ..] | ["pub", "async", "fn", name, ..] => {
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
    for (name, docs) in &items {
        let link = docs.split_once("Example: [`").and_then(|(_, rest)| rest.split_once("`]"));
        let found = match link.map(|(target, _)| target) {
            _ if has_code(docs) => true,
            Some(file) if file.starts_with("examples/") => package.join(file).exists(),
            // Modules and methods have their own documentation; their examples are doctests.
            Some("agent" | "attache" | "Session::into_parts") => true,
            Some(item) => items.get(item).is_some_and(has_code),
            None => false,
        };
        assert!(found, "`{name}` has no example: {docs}");
    }
}
