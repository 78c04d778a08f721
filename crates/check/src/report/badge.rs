//! The result as a badge: a small picture (SVG) for a README.

use super::judged;
use crate::run::{Conclusion, Report};

/// The mean width of a character in the badge's font, in pixels. The text is stretched to the width
/// that this gives, so the badge fits whatever font there is.
const CHARACTER: usize = 7;
const PADDING: usize = 8;
const HEIGHT: usize = 20;

/// White text on these has a contrast of at least 4.5.
const GREEN: &str = "#2e7d32";
const AMBER: &str = "#8a5a00";
const RED: &str = "#b3261e";
const GREY: &str = "#5f6368";

/// The report as a badge.
///
/// It says what the verdict says: how many binding rules are broken, and of how many mandatory
/// rules something was seen.
pub fn badge(report: &Report) -> String {
    let (result, color) = result(report);
    let name = format!("ACP {} v{}", judged(report), report.version.number());
    let width = |text: &str| text.chars().count() * CHARACTER;
    let left = width(&name) + 2 * PADDING;
    let whole = left + width(&result) + 2 * PADDING;
    let text = |x: usize, text: &str| {
        format!(
            "    <text x=\"{x}\" y=\"14\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\">{text}</text>\n",
            width(text)
        )
    };
    let (first, second) = (text(PADDING, &name), text(left + PADDING, &result));
    let right = whole - left;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{whole}\" height=\"{HEIGHT}\" role=\"img\" aria-label=\"{name}: {result}\">
  <title>{name}: {result}</title>
  <clipPath id=\"corners\"><rect width=\"{whole}\" height=\"{HEIGHT}\" rx=\"3\"/></clipPath>
  <g clip-path=\"url(#corners)\">
    <rect width=\"{left}\" height=\"{HEIGHT}\" fill=\"#3c4043\"/>
    <rect x=\"{left}\" width=\"{right}\" height=\"{HEIGHT}\" fill=\"{color}\"/>
  </g>
  <g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">
{first}{second}  </g>
</svg>
"
    )
}

/// What the badge says, and its colour.
fn result(report: &Report) -> (String, &'static str) {
    if let Conclusion::CouldNotRun(_) = &report.conclusion {
        return ("could not run".to_owned(), GREY);
    }
    if report.interrupted.is_some() {
        return ("not finished".to_owned(), GREY);
    }
    let broken = report.broken().count();
    let known = report.broken().filter(|outcome| outcome.known).count();
    let rules = |count: usize| if count == 1 { "1 rule".to_owned() } else { format!("{count} rules") };
    let seen = report.mandatory();
    match broken {
        0 if seen.total == 0 => ("nothing broken".to_owned(), GREEN),
        0 => (format!("nothing broken, {} of {} seen", seen.seen, seen.total), GREEN),
        _ if broken == known => (format!("{} broken, known", rules(broken)), AMBER),
        _ => (format!("{} broken", rules(broken)), RED),
    }
}
