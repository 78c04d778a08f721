//! The report as a self-contained HTML page.

use std::fmt::Write as _;

use super::sequence::{Mark, sequence};
use super::terminal::sourced;
use super::{Origin, counts, headline, judged, reason, repeat, status_name};
use crate::rules::Tier;
use crate::run::{Outcome, Report, ScenarioResult};

const STYLE: &str = include_str!("page.css");

/// Escapes text for HTML and XML. Characters that neither can hold become U+FFFD.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A page with the common style; `body` is HTML. Since it shows foreign text, a content security
/// policy forbids scripts and requests in addition to the escaping.
pub fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n{body}</body>\n</html>\n",
        escape(title)
    )
}

/// The report as one page.
pub fn html(report: &Report) -> String {
    let title = format!("attache check {} {}", judged(report), report.command.join(" "));
    let mut body = String::new();
    let _ = writeln!(body, "<h1>{}</h1>", escape(title.trim_end()));
    let class = if report.broken().any(|outcome| !outcome.known) { "bad" } else { "good" };
    let _ = writeln!(body, "<p class=\"headline {class}\">{}</p>", escape(&headline(report)));
    let origin = Origin::of(report);
    let _ = writeln!(body, "<p class=\"dim\">{}</p>", escape(&origin.line()));
    if let Some(options) = origin.options.filter(|options| !options.is_empty()) {
        let _ = writeln!(body, "<p class=\"dim\">options: {}</p>", escape(&options));
    }
    summary(report, &mut body);
    failures(report, &mut body);
    rules(report, &mut body);
    body.push_str("<h2>Conversations</h2>\n");
    for (number, scene) in report.scenes.iter().enumerate() {
        conversation(report, number, scene, &mut body);
    }
    page(title.trim_end(), &body)
}

fn summary(report: &Report, body: &mut String) {
    body.push_str(
        "<table><tr><th></th><th>pass</th><th>fail</th><th>not applicable</th><th>not exercised</th></tr>\n",
    );
    for tier in Tier::ALL {
        let counts = counts(report.rules.iter().filter(|outcome| outcome.rule.tier() == tier));
        if counts.iter().sum::<usize>() > 0 {
            let cells: String = counts.iter().map(|count| format!("<td>{count}</td>")).collect();
            let _ = writeln!(body, "<tr><th>{}</th>{cells}</tr>", tier.name());
        }
    }
    body.push_str("</table>\n");
}

fn failures(report: &Report, body: &mut String) {
    let failed: Vec<&Outcome> = Tier::ALL
        .iter()
        .flat_map(|tier| {
            report.rules.iter().filter(|outcome| outcome.failed() && outcome.rule.tier() == *tier)
        })
        .collect();
    if failed.is_empty() {
        return;
    }
    body.push_str("<h2>Broken</h2>\n");
    for outcome in failed {
        let rule = outcome.rule;
        let class = if rule.tier().binds() { "broken" } else { "advice" };
        let _ = writeln!(
            body,
            "<section class=\"{class}\" id=\"{id}\"><h3>{id} <small>{} · {}</small></h3>\n<p>{}</p>\n<ul>",
            rule.marked_level(),
            rule.tier().name(),
            escape(rule.text),
            id = rule.id,
        );
        for (place, finding) in outcome.failures() {
            let name = report.scenes.get(*place).map_or("", |scene| scene.name.as_str());
            let link =
                finding.at.first().map_or_else(|| format!("#s{place}"), |at| format!("#s{place}-{at}"));
            let _ =
                writeln!(body, "<li><a href=\"{link}\">{}</a>: {}</li>", escape(name), escape(&finding.why));
        }
        let _ = writeln!(body, "</ul>");
        for line in sourced(rule) {
            let _ = writeln!(body, "<p class=\"dim\">{}</p>", escape(&line));
        }
        if let Some(command) = outcome.failures().next().and_then(|failure| repeat(report, outcome, failure))
        {
            let _ = writeln!(body, "<pre>{}</pre>", escape(&command));
        }
        body.push_str("</section>\n");
    }
}

fn rules(report: &Report, body: &mut String) {
    body.push_str("<details><summary>All rules</summary>\n<table class=\"rules\">\n");
    for outcome in &report.rules {
        let rule = outcome.rule;
        let status = status_name(&outcome.status);
        let place = outcome.findings.first().and_then(|(place, _)| report.scenes.get(*place));
        let why = reason(&outcome.status).or(place.map(|scene| scene.name.as_str())).unwrap_or_default();
        let _ = writeln!(
            body,
            "<tr class=\"{}\"><td>{}</td><td>{}</td><td>{status}</td><td>{}</td><td>{}</td></tr>",
            status.replace(' ', "-"),
            rule.id,
            rule.marked_level(),
            escape(rule.text),
            escape(why),
        );
    }
    body.push_str("</table></details>\n");
}

fn conversation(report: &Report, number: usize, scene: &ScenarioResult, body: &mut String) {
    let marks: Vec<Mark> = report
        .rules
        .iter()
        .flat_map(|outcome| outcome.failures().map(move |(place, finding)| (outcome, *place, finding)))
        .filter(|(_, place, _)| *place == number)
        .flat_map(|(outcome, _, finding)| {
            finding.at.iter().map(|index| Mark {
                index: *index,
                rule: outcome.rule.id.to_owned(),
                why: finding.why.clone(),
                binding: outcome.rule.tier().binds(),
            })
        })
        .collect();
    let open = if marks.is_empty() { "" } else { " open" };
    let stop = scene.stop.as_ref().map(|stop| format!(" · ended early: {stop}")).unwrap_or_default();
    let count = match scene.failures {
        0 => String::new(),
        1 => " · 1 failure".to_owned(),
        count => format!(" · {count} failures"),
    };
    let _ = writeln!(
        body,
        "<details id=\"s{number}\"{open}><summary><b>{}</b> {}<span class=\"bad\">{}</span><span class=\"dim\">{}</span></summary>",
        escape(&scene.name),
        escape(&scene.about),
        escape(&count),
        escape(&stop),
    );
    body.push_str(&sequence(&scene.trace, &marks, &format!("s{number}-")));
    body.push_str("</details>\n");
}
