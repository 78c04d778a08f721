//! `cargo xtask conformance --site DIR`: a static site of the results that are kept.
//!
//! A matrix of peers and rules, one page per rule and one per peer. The pages have no scripts and
//! load nothing, and everything foreign in them is escaped.

mod facts;
mod picture;
mod rule;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::store::{self, Broken, Record};
use super::table::{Notes, read_notes};
use facts::Rule;

const STYLE: &str = include_str!("page.css");

/// What all pages are made of.
struct Site {
    rules: Vec<Rule>,
    records: Vec<Record>,
    notes: Notes,
}

/// Writes the site into a directory.
pub(super) fn write(dir: &Path) -> Result<(), String> {
    let pages = pages()?;
    for (path, text) in &pages {
        let path = dir.join(path);
        let write = || {
            std::fs::create_dir_all(path.parent().unwrap_or(dir))?;
            std::fs::write(&path, text)
        };
        write().map_err(|error: std::io::Error| format!("{}: {error}", path.display()))?;
    }
    println!("{} pages are written into {}", pages.len(), dir.display());
    Ok(())
}

/// Every page by its path.
fn pages() -> Result<BTreeMap<String, String>, String> {
    let site = Site { rules: facts::rules()?, records: store::read()?, notes: read_notes()? };
    let mut pages = BTreeMap::new();
    pages.insert("index.html".to_owned(), site.index());
    for rule in &site.rules {
        pages.insert(rule_path(&rule.id), site.rule(rule));
    }
    for record in store::newest(&site.records) {
        pages.insert(peer_path(record), site.peer(record));
    }
    Ok(pages)
}

fn rule_path(id: &str) -> String {
    format!("rules/{id}.html")
}

fn peer_path(record: &Record) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = record.peer.chars().map(plain).collect();
    format!("peers/{}-{name}-v{}.html", record.side, record.protocol)
}

/// The name of a peer with the version of the protocol, if that is not the first.
fn title(record: &Record) -> String {
    match record.protocol {
        1 => record.peer.clone(),
        version => format!("{}, version {version}", record.peer),
    }
}

/// Escapes text for HTML.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A page; `root` leads to the directory of the site.
fn page(title: &str, root: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <nav><a href=\"{root}index.html\">Conformance</a><a href=\"{root}index.html#rules\">Rules</a></nav>\n{body}</body>\n</html>\n",
        escape(title)
    )
}

/// The sections of the page: side, version of the protocol, title.
const SIDES: [(&str, u64, &str); 6] = [
    ("agent", 1, "Agents"),
    ("client", 1, "Clients"),
    ("agent", 2, "Agents in version 2 of the protocol"),
    ("client", 2, "Clients in version 2 of the protocol"),
    ("server", 1, "Servers"),
    ("remote", 1, "Remote clients"),
];

impl Site {
    fn of(&self, side: &str, protocol: u64) -> Vec<&Record> {
        let mut of = store::newest(&self.records);
        of.retain(|record| record.side == side && record.protocol == protocol);
        of
    }

    fn index(&self) -> String {
        let mut body = String::from(
            "<h1>Conformance of ACP peers</h1>\n<p>Results of <code>attache check</code>. <span class=\"ok\">Kept</span> rules were seen; \
             what a peer did not do is not judged. A <span class=\"bad\">broken</span> duty is a MUST of the protocol. Each failure was reviewed by hand.</p>\n",
        );
        for (side, protocol, title) in SIDES {
            let of = self.of(side, protocol);
            let _ = writeln!(body, "<h2>{title}</h2>");
            self.verdicts(&of, &mut body);
            self.matrix(&of, &mut body);
        }
        body.push_str("<h2 id=\"rules\">Rules</h2>\n<div class=\"wide\"><table>\n<thead><tr><th>rule</th><th>level</th><th>broken by</th><th></th></tr></thead>\n");
        for rule in &self.rules {
            let newest = store::newest(&self.records);
            let broken = newest.iter().filter(|record| record.broken.iter().any(|one| one.id == rule.id));
            let _ = writeln!(
                body,
                "<tr><td><a href=\"{}\">{}</a></td><td>{}</td><td>{}</td><td class=\"text\">{}</td></tr>",
                rule_path(&rule.id),
                rule.id,
                rule.level,
                broken.count(),
                escape(&rule.text)
            );
        }
        body.push_str("</table></div>\n");
        page("Conformance of ACP peers", "", &body)
    }

    /// One line per peer.
    fn verdicts(&self, of: &[&Record], body: &mut String) {
        body.push_str("<div class=\"wide\"><table>\n<thead><tr><th>peer</th><th>version</th><th>verdict</th><th></th><th>kept</th><th>duties broken</th><th>worth a look</th><th>run</th></tr></thead>\n");
        for record in of {
            let duties = record.broken_in(&["mandatory", "capability"]);
            let class = if duties == 0 { "ok" } else { "bad" };
            let _ = writeln!(
                body,
                "<tr><td><a href=\"{}\">{}</a></td><td>{}</td><td class=\"{class}\">{}</td><td>{}</td><td>{}</td><td>{duties}</td><td>{}</td><td>{}</td></tr>",
                peer_path(record),
                escape(&record.peer),
                escape(&record.version),
                escape(&record.conclusion),
                picture::bar(record),
                record.count("pass"),
                record.broken.len() - duties,
                record.date.as_deref().unwrap_or("earlier"),
            );
        }
        body.push_str("</table></div>\n");
    }

    /// The rules that a peer broke, by peer.
    fn matrix(&self, of: &[&Record], body: &mut String) {
        let is_broken =
            |rule: &&Rule| of.iter().any(|record| record.broken.iter().any(|one| one.id == rule.id));
        let rules: Vec<&Rule> = self.rules.iter().filter(is_broken).collect();
        if rules.is_empty() {
            return;
        }
        body.push_str("<h3>Rules that somebody broke</h3>\n<div class=\"wide\"><table class=\"matrix\">\n<thead><tr><th>rule</th>");
        for record in of {
            let _ = write!(
                body,
                "<th><a class=\"name\" href=\"{}\">{}</a></th>",
                peer_path(record),
                escape(&record.peer)
            );
        }
        body.push_str("</tr></thead>\n");
        for rule in rules {
            let _ = write!(
                body,
                "<tr><th><a href=\"{}\" title=\"{}\">{}</a></th>",
                rule_path(&rule.id),
                escape(&rule.text),
                rule.id
            );
            for record in of {
                let _ = write!(body, "<td>{}</td>", picture::cell(record.status_of(&rule.id)));
            }
            body.push_str("</tr>\n");
        }
        body.push_str("</table></div>\n");
    }

    /// The page of a peer.
    fn peer(&self, record: &Record) -> String {
        let name = format!("{} {}", title(record), record.version);
        let mut body = format!("<h1>{}</h1>\n", escape(&name));
        let ran = match (&record.date, &record.checker) {
            (Some(date), Some(checker)) => format!("Run on {date} with checker {checker}."),
            _ => "An earlier run, of which the failures were kept; rules that were kept are only counted."
                .to_owned(),
        };
        let duties = record.broken_in(&["mandatory", "capability"]);
        let class = if duties == 0 { "ok" } else { "bad" };
        let _ = writeln!(
            body,
            "<p><b class=\"{class}\">{}</b>: {} rules kept, {duties} duties broken, {} worth a look, {} not applicable, {} not exercised. \
             <span class=\"dim\">{}</span></p>",
            escape(&record.conclusion),
            record.count("pass"),
            record.broken.len() - duties,
            record.count("not applicable"),
            record.count("not exercised"),
            escape(&ran),
        );
        let protocol = record.protocol;
        let of_peer =
            |rule: &&Rule| rule.versions.contains(&protocol) && record.status_of(&rule.id).is_some();
        let rules: Vec<&Rule> = self.rules.iter().filter(of_peer).collect();
        body.push_str(&picture::all(record, &rules));
        if record.broken.is_empty() {
            body.push_str("<p>No failure was seen.</p>\n");
        } else {
            body.push_str("<h2>Failures</h2>\n");
        }
        let is_duty = |broken: &Broken| ["mandatory", "capability"].contains(&broken.tier.as_str());
        let mut failures: Vec<&Broken> = record.broken.iter().collect();
        failures.sort_by_key(|broken| !is_duty(broken));
        for broken in failures {
            let duty = is_duty(broken);
            let is_rule = self.rules.iter().any(|rule| rule.id == broken.id);
            let id = match is_rule {
                true => format!("<a href=\"../{}\">{}</a>", rule_path(&broken.id), broken.id),
                false => escape(&broken.id),
            };
            let _ = writeln!(
                body,
                "<section{}>\n<h3 id=\"{}\">{id} <span class=\"dim\">{}, {}</span></h3>\n<p>{}</p>",
                if duty { " class=\"duty\"" } else { "" },
                escape(&broken.id),
                escape(&broken.level),
                escape(&broken.tier),
                escape(&broken.text),
            );
            if let Some(note) = self.notes.of(record, &broken.id) {
                let _ = writeln!(body, "<p><b>Review:</b> {}</p>", escape(note));
            }
            if !broken.why.is_empty() {
                let more = match broken.failures {
                    0 | 1 => String::new(),
                    count => format!(" (and {} more)", count - 1),
                };
                let (scenario, why) = (escape(&broken.scenario), escape(&broken.why));
                let _ = writeln!(body, "<p>Seen in <code>{scenario}</code>: {why}{more}</p>");
            }
            if !broken.lines.is_empty() {
                let lines = broken.lines.iter().map(|(from, text)| format!("{from:<6} {text}\n"));
                let _ = writeln!(body, "<pre>{}</pre>", escape(&lines.collect::<String>()));
            }
            body.push_str("</section>\n");
        }
        self.history(record, &mut body);
        page(&name, "../", &body)
    }

    /// The versions of a peer that were judged.
    fn history(&self, newest: &Record, body: &mut String) {
        body.push_str("<h2>Versions</h2>\n<div class=\"wide\"><table>\n<thead><tr><th>version</th><th>verdict</th><th></th><th>kept</th><th>duties broken</th><th>run</th></tr></thead>\n");
        for record in self.records.iter().filter(|record| record.is_of(newest)).rev() {
            let _ = writeln!(
                body,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(&record.version),
                escape(&record.conclusion),
                picture::bar(record),
                record.count("pass"),
                record.broken_in(&["mandatory", "capability"]),
                record.date.as_deref().unwrap_or("earlier"),
            );
        }
        body.push_str("</table></div>\n");
    }
}

#[cfg(test)]
mod tests;
