//! Rule ids in documentation. A reader of docs.rs has no list of rules: an id is a link to
//! docs/rules.md there, or belongs in a `//` comment.

use crate::repo;
use crate::rules::ids;

/// Finds bare rule ids in the documentation of a published crate. Code blocks may name them.
pub(super) fn check(path: &str, text: &str) -> Vec<String> {
    let published = path.starts_with("crates/") && path.contains("/src/") && !repo::is_test_file(path);
    if !published {
        return Vec::new();
    }
    let mut problems = Vec::new();
    let mut in_code = false;
    for (place, line) in text.lines().enumerate() {
        let line = line.trim_start();
        // The module of tests is the last thing in a file.
        if line == "mod tests {" {
            break;
        }
        let Some(doc) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            in_code = false;
            continue;
        };
        in_code ^= doc.trim_start().starts_with("```");
        if in_code || doc.contains("docs/rules.md") {
            continue;
        }
        for id in ids(doc) {
            problems.push(format!(
                "{path}:{}: {id} in documentation; name it in a `//` comment or link docs/rules.md",
                place + 1
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn bare_ids_in_documentation_are_found() {
        let text = "//! RPC-09: answered.\n\n// RPC-10\n/// See [RPC-11](../docs/rules.md#rpc-11).\n///\n/// ```\n\
                    /// RPC-12\n/// ```\n/// RPC-13\nfn x() {}\n\nmod tests {\n    /// RPC-14\n}\n";
        let problems = check("crates/rpc/src/machine.rs", text);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("crates/rpc/src/machine.rs:1: RPC-09"), "{problems:?}");
        assert!(problems[1].starts_with("crates/rpc/src/machine.rs:9: RPC-13"), "{problems:?}");
        assert!(check("tests/mutants/src/agent/turn.rs", text).is_empty());
        assert!(check("crates/rpc/tests/it/main.rs", text).is_empty());
    }
}
