//! The page of a rule.

use std::fmt::Write as _;

use super::facts::Rule;
use super::{Site, escape, page, peer_path, store, title};

impl Site {
    /// The rule, its source, how it is tested, and who breaks it.
    pub(super) fn rule(&self, rule: &Rule) -> String {
        let mut body = format!(
            "<h1>{} <span class=\"dim\">{}</span></h1>\n<p>{}</p>\n",
            rule.id,
            escape(&rule.level),
            escape(&rule.text)
        );
        let versions: Vec<String> = rule.versions.iter().map(u64::to_string).collect();
        let mut about =
            format!("Binds {}, in version {} of the protocol", rule.sides, versions.join(" and "));
        if let Some(when) = &rule.when {
            let _ = write!(about, ", once {when} is advertised");
        }
        let _ = writeln!(body, "<p class=\"dim\">{}.</p>", escape(&about));
        if let Some(why) = &rule.strictness {
            let _ = writeln!(body, "<p>It does not count for the verdict: {}</p>", escape(why));
        }
        body.push_str("<h2>Source</h2>\n");
        for quote in &rule.quotes {
            let (text, url) = (escape(&quote.text), escape(&quote.url));
            let _ = writeln!(body, "<blockquote>{text}<br><a href=\"{url}\">{url}</a></blockquote>");
        }
        if !rule.asked.is_empty() {
            let _ = writeln!(
                body,
                "<p>Could a careful maintainer say that the specification does not ask for it? {}</p>",
                escape(&rule.asked)
            );
        }
        if let Some(cause) = &rule.cause {
            let _ = writeln!(body, "<p>The likely cause of a failure: {}.</p>", escape(cause));
        }
        self.tested(rule, &mut body);
        self.broken_by(rule, &mut body);
        page(&format!("{} ({})", rule.id, rule.level), "../", &body)
    }

    fn tested(&self, rule: &Rule, body: &mut String) {
        body.push_str("<h2>How it is tested</h2>\n");
        match rule.scenarios.is_empty() {
            true => body.push_str("<p>No scenario is about it alone; every message of every conversation is looked at, or it cannot be seen.</p>\n"),
            false => body.push_str("<ul>\n"),
        }
        for scenario in &rule.scenarios {
            let (side, name, about) = (&scenario.side, escape(&scenario.name), escape(&scenario.about));
            let _ = writeln!(
                body,
                "<li>{about}: <code>attache check {side} --only {} --scenario {name}</code></li>",
                rule.id
            );
        }
        if !rule.scenarios.is_empty() {
            body.push_str("</ul>\n");
        }
        if !rule.mutants.is_empty() {
            let mutants: Vec<String> =
                rule.mutants.iter().map(|name| format!("<code>{}</code>", escape(name))).collect();
            let _ = writeln!(
                body,
                "<p>Peers that break it on purpose, each of which the checker finds: {}.</p>",
                mutants.join(", ")
            );
        }
    }

    fn broken_by(&self, rule: &Rule, body: &mut String) {
        body.push_str("<h2>Who breaks it</h2>\n");
        let mut nobody = true;
        for record in store::newest(&self.records) {
            let Some(broken) = record.broken.iter().find(|broken| broken.id == rule.id) else { continue };
            nobody = false;
            let _ = writeln!(
                body,
                "<h3><a href=\"../{}#{}\">{} {}</a></h3>\n<p>{}</p>",
                peer_path(record),
                rule.id,
                escape(&title(record)),
                escape(&record.version),
                escape(self.notes.of(record, &rule.id).unwrap_or(&broken.why)),
            );
        }
        if nobody {
            body.push_str("<p>No peer that was judged.</p>\n");
        }
    }
}
