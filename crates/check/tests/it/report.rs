//! Reports as they are printed. `ATTACHE_BLESS=1 cargo test -p attache-check report` updates the
//! snapshots.

use std::path::PathBuf;

use attache_check::report::{self, Look, Mark};
use attache_check::run::{Conclusion, Options, Repeat, Report, judge_trace};
use attache_check::{Entry, EntryKind, Role, Tier, Transport, Version};

use crate::talk::begun;

const PROMPT: &str = r#"c {"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"<b>hi & \"bye\"</b>\u0007"}]}}"#;

/// A conversation with one duty broken, one piece of advice not followed, and text that must be
/// escaped.
fn sample() -> Report {
    let mut trace = begun(
        "{}",
        r#"{"_meta":{"later":true}}"#,
        &[
            PROMPT,
            "a <starting & \u{7}\"ready\">",
            r#"a {"jsonrpc":"2.0","id":2,"result":{"stopReason":"done"}}"#,
            r#"a {"jsonrpc":"2.0","id":null,"method":"_later","params":{}}"#,
        ],
    );
    trace.head.command = vec!["agent".to_owned(), "--acp".to_owned()];
    let only = ["PROMPT-08", "STDIO-08", "RPC-07", "RPC-01", "TERM-05", "NES-05"].map(str::to_owned).into();
    let words = |text: &str| text.split(' ').map(str::to_owned).collect();
    let report = judge_trace(trace, Some(Role::Agent), &Options { only, ..Options::new(Role::Agent) });
    let after = words("--deadline 5 --env KEY=$KEY -- agent --acp");
    Report { repeat: Some(Repeat { before: words("attache check agent"), after }), ..report }
}

fn snapshot(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    if std::env::var_os("ATTACHE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == wanted,
        "{} is not what is printed now; look at it and bless it:\n{text}",
        path.display()
    );
}

#[test]
fn the_text() {
    snapshot(
        "report.txt",
        &report::plain(&report::terminal(&sample(), Look { all: true, ..Look::default() })),
    );
}

#[test]
fn the_json() {
    snapshot("report.json", &format!("{:#}\n", report::json(&sample())));
}

#[test]
fn the_junit_xml() {
    let text = report::junit(&sample());
    well_formed(&text, &[]);
    snapshot("report.xml", &text);
}

#[test]
fn the_page() {
    let text = report::html(&sample());
    well_formed(text.strip_prefix("<!DOCTYPE html>").unwrap(), &["meta"]);
    assert!(!text.contains("<starting") && !text.contains("<b>hi"), "what a peer says is text");
    // Addresses of sources are text; nothing is loaded from anywhere.
    let loads = [" src=", "href=\"http", "url(", "@import", "<script"];
    assert!(!loads.iter().any(|load| text.contains(load)), "the page needs nothing else");
    snapshot("report.html", &text);
}

#[test]
fn the_badge() {
    let text = report::badge(&sample());
    well_formed(&text, &[]);
    snapshot("badge.svg", &text);
    let says = |report: &Report| {
        let badge = report::badge(report);
        let title = badge.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
        title.map(|(title, _)| title.to_owned()).unwrap()
    };
    assert_eq!(says(&sample()), "ACP agent v1: 2 rules broken");
    let mut report = sample();
    report.rules.iter_mut().filter(|outcome| outcome.failed()).for_each(|outcome| outcome.known = true);
    assert_eq!(says(&report), "ACP agent v1: 2 rules broken, known");
    report.rules.retain(|outcome| !outcome.failed());
    assert_eq!(says(&report), "ACP agent v1: nothing broken, 1 of 3 seen");
    report.interrupted = Some(3);
    assert_eq!(says(&report), "ACP agent v1: not finished");
    report.conclusion = Conclusion::CouldNotRun("<gone>".to_owned());
    assert_eq!(says(&report), "ACP agent v1: could not run");
}

/// Text of the peer is escaped wherever it stands: as a line, a label, a method, an error, a name,
/// on stderr, in the command.
#[test]
fn text_of_a_peer_is_escaped_in_the_page() {
    let evil =
        "</script></pre></summary></details><img src=x onerror=alert(1)><svg onload='x'>\" onclick=\"x";
    let quoted = serde_json::Value::from(evil).to_string();
    let lines = [
        PROMPT.replace("hi &", &quoted[1..quoted.len() - 1]),
        format!("a {evil}"),
        format!(r#"a {{"jsonrpc":"2.0","method":{quoted},"params":{{{quoted}:{quoted}}}}}"#),
        format!(r#"a {{"jsonrpc":"2.0","id":2,"error":{{"code":{quoted},"message":{quoted}}}}}"#),
    ];
    let mut trace = begun("{}", "{}", &lines.each_ref().map(String::as_str));
    trace.head.command = vec![evil.to_owned()];
    for kind in [EntryKind::Stderr(evil.as_bytes().to_vec()), EntryKind::Note(evil.to_owned())] {
        trace.entries.push(Entry { at: std::time::Duration::ZERO, kind });
    }
    let report = judge_trace(trace, None, &Options::new(Role::Agent));
    let page = report::html(&report);
    assert!(page.contains("&lt;img src=x") && page.contains("default-src 'none'"), "{page}");
    // Every tag is one of ours, and none has a handler.
    for tag in page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default()) {
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap();
        let ours = [
            "!DOCTYPE", "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "table",
            "tr", "th", "td", "section", "small", "ul", "li", "a", "details", "summary", "span", "div", "i",
            "b", "pre",
        ];
        assert!(ours.contains(&name) && !tag.contains(" on"), "<{tag}>");
    }
}

#[test]
fn a_failure_is_marked_in_the_drawing() {
    let report = sample();
    let mark = Mark { index: 5, rule: "STDIO-08".to_owned(), why: "not <this>".to_owned(), binding: true };
    let drawn = report::sequence(&report.scenes[0].trace, &[mark], "x");
    let row = drawn.lines().find(|line| line.contains("id=\"x5\"")).unwrap();
    assert!(
        row.contains("marked") && row.contains("<a href=\"#STDIO-08\">STDIO-08</a>: not &lt;this&gt;"),
        "{row}"
    );
    assert_eq!(drawn.matches("marked").count(), 1);
}

#[test]
fn evidence_is_cut_on_a_terminal_only() {
    let long = format!("a {}", "y".repeat(9000));
    let trace = begun("{}", "{}", &[&long]);
    let only = vec!["STDIO-08".to_owned()];
    let report = judge_trace(trace, Some(Role::Agent), &Options { only, ..Options::new(Role::Agent) });
    let text = |whole| report::plain(&report::terminal(&report, Look { whole, ..Look::default() }));
    assert!(text(true).contains(&long[2..]) && !text(false).contains(&long[2..]));
    assert!(report::junit(&report).contains(&long[2..]));
    let json = report::json(&report);
    let failure = &json["rules"][0]["failures"][0];
    assert_eq!(failure["lines"][0]["text"], long[2..]);
    let before = failure["around"][0]["entry"].as_u64().unwrap();
    assert_eq!(before + 1, failure["lines"][0]["entry"].as_u64().unwrap());
}

#[test]
fn colours_only_where_they_are_wanted() {
    let report = sample();
    let lines = report::terminal(&report, Look::default());
    assert!(!report::plain(&lines).contains('\x1b'));
    assert_eq!(lines.last().map(|line| line.emphasis), Some(report::Emphasis::Bad));
}

#[test]
fn a_run_that_could_not_begin_is_an_error_in_junit() {
    let report = Report {
        role: Some(Role::Agent),
        version: Version::V1,
        transports: vec![Transport::Stdio],
        command: vec!["a&b".to_owned()],
        rules: Vec::new(),
        scenes: Vec::new(),
        conclusion: Conclusion::CouldNotRun("no \"such\" <program>".to_owned()),
        interrupted: None,
        repeat: None,
    };
    let text = report::junit(&report);
    well_formed(&text, &[]);
    assert!(text.contains("<error message=\"no &quot;such&quot; &lt;program&gt;\"/>"), "{text}");
    assert!(report::plain(&report::terminal(&report, Look::default())).contains("could not run"));
}

#[test]
fn advice_does_not_fail_a_build() {
    let report = sample();
    assert_eq!(report.conclusion, Conclusion::Broken);
    let advice = report.rules.iter().find(|outcome| outcome.rule.id == "RPC-07").unwrap();
    assert!(advice.failed() && advice.rule.tier() == Tier::Advisory);
    let text = report::junit(&report);
    assert!(text.contains("recommendation not followed"), "{text}");
    assert_eq!(text.matches("<failure ").count(), 2, "only the two duties fail");
}

/// Every tag is closed in order, attributes are quoted, and nothing stands in the text that XML
/// does not allow. `void` elements have no end.
fn well_formed(text: &str, void: &[&str]) {
    let mut open: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        text_is_clean(&rest[..start], open.last().map(String::as_str));
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if tag.starts_with('?') {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "an end tag without its beginning");
            continue;
        }
        let name = tag.split([' ', '/', '\n']).next().unwrap();
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{tag}");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        if !tag.ends_with('/') && !void.contains(&name) {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty(), "{open:?} are not closed");
}

fn text_is_clean(text: &str, within: Option<&str>) {
    assert!(!text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{text:?}");
    if within != Some("style") {
        for (place, _) in text.match_indices('&') {
            let entity = text[place..].split(';').next().unwrap();
            assert!(["&amp", "&lt", "&gt", "&quot", "&#39"].contains(&entity), "{entity}");
        }
    }
}
