#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;

use super::*;

/// The values of an attribute.
fn values<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    page.split(start.as_str()).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// The path that a link leads to.
fn resolve(from: &str, link: &str) -> String {
    match link.strip_prefix("../") {
        Some(path) => path.to_owned(),
        None if from.contains('/') && !link.is_empty() => {
            format!("{}/{link}", from.split('/').next().unwrap())
        }
        None => link.to_owned(),
    }
}

#[test]
fn every_link_inside_leads_to_a_page_and_a_place() {
    let pages = pages().unwrap();
    for (path, page) in &pages {
        for link in values(page, "href").into_iter().filter(|link| !link.starts_with("https://")) {
            let (file, place) = link.split_once('#').map_or((link, None), |(file, id)| (file, Some(id)));
            let target = pages.get(&resolve(path, file)).unwrap_or_else(|| panic!("{path}: {link}"));
            if let Some(id) = place {
                assert!(values(target, "id").contains(&id), "{path}: {link}");
            }
        }
    }
}

/// The elements of the pages; none of them runs or loads anything.
const ELEMENTS: &[&str] = &[
    "a",
    "b",
    "blockquote",
    "br",
    "circle",
    "code",
    "h1",
    "h2",
    "h3",
    "li",
    "nav",
    "p",
    "path",
    "pre",
    "rect",
    "section",
    "span",
    "svg",
    "table",
    "td",
    "text",
    "th",
    "thead",
    "title",
    "tr",
    "ul",
    "div",
];

#[test]
fn pages_are_well_formed_and_load_nothing() {
    for (path, page) in pages().unwrap() {
        assert!(page.contains("default-src 'none'"), "{path}");
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
        let (_, body) = page.split_once("<body>").unwrap();
        let (body, _) = body.split_once("</body>").unwrap();
        let mut open: Vec<&str> = Vec::new();
        for tag in body.split('<').skip(1) {
            let (tag, _) = tag.split_once('>').unwrap_or_else(|| panic!("{path}: <{tag}"));
            let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
            assert!(ELEMENTS.contains(&name), "{path}: <{tag}>");
            for active in [" on", " src=", " style=", "javascript:"] {
                assert!(!tag.contains(active) || tag.contains(" title="), "{path}: <{tag}>");
            }
            match tag {
                _ if tag.ends_with('/') || name == "br" => {}
                _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "{path}"),
                _ => open.push(name),
            }
        }
        assert!(open.is_empty(), "{path}: {open:?} are not closed");
        let ids = values(body, "id");
        assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "{path}: an id comes twice");
    }
}

#[test]
fn there_is_a_page_for_every_rule_and_every_peer() {
    let (pages, records) = (pages().unwrap(), store::read().unwrap());
    let newest = store::newest(&records);
    let paths: BTreeSet<String> = newest.iter().map(|record| peer_path(record)).collect();
    assert_eq!(paths.len(), newest.len(), "two peers have one path");
    assert!(paths.iter().all(|path| pages["index.html"].contains(path)));
    let gemini = newest.iter().find(|record| record.peer == "gemini").unwrap();
    for broken in &gemini.broken {
        assert!(pages[&rule_path(&broken.id)].contains(&peer_path(gemini)), "{}", broken.id);
    }
    assert!(pages["rules/CANCEL-05.html"].contains("<blockquote>"));
}

#[test]
fn foreign_text_is_escaped() {
    assert_eq!(escape("<b a=\"x\">&'\u{1b}"), "&lt;b a=&quot;x&quot;&gt;&amp;&#39;\u{fffd}");
}
