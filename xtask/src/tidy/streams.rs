//! The program writes to its streams in one place, and escape sequences are made in one place.
//!
//! Any other place would let text of an agent reach a terminal without the filter.

/// Where the rule holds.
const ROOT: &str = "crates/cli/src/";

/// Files and directories that may, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("output/", "the one place"),
    ("render/style.rs", "turns styles into bytes"),
    ("render/filter.rs", "knows escape sequences to take them out"),
    ("chat/screen.rs", "draws the chat's screen from styled lines"),
    ("chat/terminal.rs", "makes the terminal raw, and what it was"),
    ("chat/mod.rs", "gives stdout to the chat's screen"),
    ("check/bridge.rs", "carries the protocol between pipes"),
    ("run/owner.rs", "its stdout is a pipe to the command that started it, its stderr a log"),
    ("run/queue.rs", "its stderr is the log of a session's process"),
    ("auth/ask.rs", "reads secrets without echo; its questions are cleaned where they are made"),
];

/// Finds what breaks the rule. `seen` collects the exceptions that were used.
pub(super) fn check(
    path: &str,
    line: usize,
    code: &str,
    problems: &mut Vec<String>,
    seen: &mut Vec<&'static str>,
) {
    let Some(file) = path.strip_prefix(ROOT) else { return };
    let Some(what) = forbidden(code) else { return };
    match ALLOWED.iter().find(|(allowed, _)| file.starts_with(allowed)) {
        Some((allowed, _)) => seen.push(allowed),
        None => problems.push(format!("{path}:{line}: {what}; print with `crate::output`")),
    }
}

/// Exceptions that nothing needs any more.
pub(super) fn unused(seen: &[&str]) -> impl Iterator<Item = String> {
    let unused = ALLOWED.iter().filter(|(allowed, _)| !seen.contains(allowed));
    unused.map(|(allowed, _)| {
        format!("xtask/src/tidy/streams.rs: nothing in {ROOT}{allowed} needs to be allowed")
    })
}

fn forbidden(code: &str) -> Option<&'static str> {
    // To ask whether there is a terminal writes nothing.
    let code = code.replace("io::stdout().is_terminal()", "").replace("io::stderr().is_terminal()", "");
    let streams = ["io::stdout", "io::stderr", "print!(", "println!("];
    // In two parts, so that this file does not find itself.
    let escapes =
        [concat!("\\x", "1b"), concat!("\\u{", "1b}"), concat!("\\x", "9b"), concat!("\\u{", "9b}")];
    if streams.iter().any(|stream| code.contains(stream)) {
        return Some("writes to a stream itself");
    }
    let lower = code.to_lowercase();
    escapes.iter().any(|escape| lower.contains(escape)).then_some("an escape sequence of its own")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_around_the_channel_is_found() {
        for code in [
            "let _ = writeln!(io::stderr().lock(), \"x\");",
            "std::io::stdout().flush()",
            "get_or_insert_with(tokio::io::stdout)",
            "println!(\"x\")",
            "eprint!(\"x\")",
            concat!("push_str(\"\\x", "1b[1m\")"),
            concat!("push('\\u{", "1B}')"),
        ] {
            let mut problems = Vec::new();
            check("crates/cli/src/registry/show.rs", 7, code, &mut problems, &mut Vec::new());
            assert_eq!(problems.len(), 1, "{code}");
            let mut seen = Vec::new();
            check("crates/cli/src/output/channel.rs", 7, code, &mut problems, &mut seen);
            check("crates/agent/src/lib.rs", 7, code, &mut problems, &mut seen);
            assert_eq!((problems.len(), seen.as_slice()), (1, ["output/"].as_slice()), "{code}");
        }
        for code in [
            "io::stdin().is_terminal() && io::stderr().is_terminal()",
            "cx.output.line(x)",
            "printed.stderr()",
        ] {
            assert_eq!(forbidden(code), None, "{code}");
        }
        assert_eq!(unused(&[]).count(), ALLOWED.len());
    }
}
