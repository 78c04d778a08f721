//! The program writes to its streams in one place, and escape sequences are made in one place.
//!
//! Any other place would let text of an agent reach a terminal without the filter.

/// Where the rule holds.
const ROOTS: &[&str] = &["crates/cli/src/", "crates/registry/src/", "crates/term/src/"];

/// Files and directories that may, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/term/src/output/", "the one place"),
    ("crates/term/src/render/style.rs", "turns styles into bytes"),
    ("crates/term/src/render/filter.rs", "knows escape sequences to remove them"),
    ("crates/term/src/render/sgr.rs", "knows the sequences of colours to turn them into styles"),
    ("crates/term/src/screen/", "draws frames from styled lines"),
    ("crates/term/src/device.rs", "switches raw mode"),
    ("crates/term/src/dialog.rs", "hands a stream to the screen of its lines"),
    ("crates/cli/src/chat/mod.rs", "hands stdout to the screen of the chat"),
    ("crates/cli/src/chat/typing.rs", "its bytes are keys for a command of the agent, not for this terminal"),
    ("crates/cli/src/commands/top.rs", "hands stdout to the screen of its table"),
    ("crates/cli/src/commands/check/bridge.rs", "carries the protocol between pipes"),
    ("crates/cli/src/run/owner.rs", "its stdout is a pipe to the command that started it, its stderr a log"),
    ("crates/cli/src/run/queue.rs", "its stderr is the log of a session's process"),
    (
        "crates/cli/src/auth/ask.rs",
        "reads secrets without echo; its questions are cleaned where they are made",
    ),
];

/// Finds what breaks the rule. `seen` collects the exceptions that were used.
pub(super) fn check(
    path: &str,
    line: usize,
    code: &str,
    problems: &mut Vec<String>,
    seen: &mut Vec<&'static str>,
) {
    if !ROOTS.iter().any(|root| path.starts_with(root)) {
        return;
    }
    let Some(what) = forbidden(code) else { return };
    match ALLOWED.iter().find(|(allowed, _)| path.starts_with(allowed)) {
        Some((allowed, _)) => seen.push(allowed),
        None => problems.push(format!("{path}:{line}: {what}; print with `attache_term::output`")),
    }
}

/// Exceptions that nothing needs any more.
pub(super) fn unused(seen: &[&str]) -> impl Iterator<Item = String> {
    let unused = ALLOWED.iter().filter(|(allowed, _)| !seen.contains(allowed));
    unused.map(|(allowed, _)| format!("xtask/src/tidy/streams.rs: nothing in {allowed} needs to be allowed"))
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
            check("crates/registry/src/install.rs", 7, code, &mut problems, &mut Vec::new());
            assert_eq!(problems.len(), 1, "{code}");
            let mut seen = Vec::new();
            check("crates/term/src/output/channel.rs", 7, code, &mut problems, &mut seen);
            check("crates/agent/src/lib.rs", 7, code, &mut problems, &mut seen);
            assert_eq!(
                (problems.len(), seen.as_slice()),
                (1, ["crates/term/src/output/"].as_slice()),
                "{code}"
            );
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
