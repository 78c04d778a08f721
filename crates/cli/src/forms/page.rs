//! A page that the agent wants the user to visit.

use std::process::{Command, Stdio};

use crate::output::quoted;
use attache_term::render::filter::is_forbidden;

/// Other schemes may start any program.
pub(crate) fn is_web(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")
}

/// The host that an address leads to, and what is odd about it.
// ELIC-30
pub(super) fn about(url: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let Some((scheme, rest)) = url.split_once("://") else {
        lines.push("this is not a web address".to_owned());
        return lines;
    };
    // As browsers read it: a backslash ends the host too, and what stands before an @ is not the
    // host.
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    lines.push(format!("the host is {}", quoted(host)));
    if !is_web(url) {
        lines.push(format!("this is not a web address but {}", quoted(scheme)));
    } else if scheme.eq_ignore_ascii_case("http") {
        lines.push("the page is not encrypted".to_owned());
    }
    if authority.contains('@') {
        lines.push("what stands before the @ is not the host".to_owned());
    }
    let odd_label = |label: &str| label.to_ascii_lowercase().starts_with("xn--") || !label.is_ascii();
    if host.split('.').any(odd_label) {
        lines.push("the host's name has characters that can look like others".to_owned());
    }
    if url.chars().any(|letter| is_forbidden(letter) || letter.is_whitespace()) {
        lines.push("the address has invisible characters".to_owned());
    }
    lines
}

/// Opens a page, by its address as one argument: nothing of it is read by a shell.
///
/// # Errors
/// The name of the program that cannot be started.
pub(crate) fn open(url: &str) -> Result<(), String> {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    let set = std::env::var("BROWSER").ok().filter(|browser| !browser.is_empty());
    let program = set.unwrap_or_else(|| program.to_owned());
    let started = Command::new(&program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else { return Err(program) };
    // A thread waits for it; otherwise it stays a zombie.
    let waiting = std::thread::Builder::new().name("browser".to_owned()).spawn(move || drop(child.wait()));
    waiting.map(drop).map_err(|_| program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspicious_addresses_are_explained() {
        // shows ELIC-30
        let odd = |url: &str| about(url).len() - 1;
        assert_eq!(about("https://example.org/a?b")[0], "the host is \"example.org\"");
        assert_eq!(about("https://good.org@evil.org\\@x/")[0], "the host is \"evil.org\"");
        assert_eq!(odd("https://example.org/"), 0);
        assert_eq!(odd("http://example.org/"), 1);
        assert_eq!(odd("https://good.org@evil.org/"), 1);
        assert_eq!(odd("https://xn--pypal-4ve.com/"), 1);
        assert_eq!(odd("ssh://host/"), 1);
        assert_eq!(about("javascript:alert(1)").len(), 1);
        assert!(!is_web("javascript:alert(1)") && is_web("HTTPS://a"));
    }
}
