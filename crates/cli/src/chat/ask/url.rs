//! A page that the agent wants the user to visit. It is opened only after the user agrees.

use attache::client::{ElicitationAsk, RequestedInput};
use attache::wire::v1::ElicitationId;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::view::Canvas;
use super::{QuestionView, Step};
use attache_term::render::style::{Colour, Line, Style};
use attache_term::render::text::{Look, clean, reveal, wrap, wrap_hard};

#[derive(Debug)]
pub(crate) struct Page {
    ask: Option<ElicitationAsk>,
    /// The agent that asks.
    // ELIC-07
    agent: String,
    url: String,
}

impl Page {
    pub(crate) fn new(ask: ElicitationAsk, agent: &str) -> Page {
        let url = match ask.requested() {
            Some(RequestedInput::Url { url, .. }) => url.to_owned(),
            _ => String::new(),
        };
        Page { ask: Some(ask), agent: agent.to_owned(), url }
    }

    pub(crate) fn is(&self, wanted: &ElicitationId) -> bool {
        let ask = self.ask.as_ref().and_then(ElicitationAsk::requested);
        matches!(ask, Some(RequestedInput::Url { id, .. }) if id == wanted)
    }

    /// Shows the whole address. Highlights the host and warns about oddities.
    // ELIC-29, ELIC-30
    pub(crate) fn intro(&self, canvas: &Canvas) -> Vec<Line> {
        let look = canvas.look;
        let message = self.ask.as_ref().map_or("", ElicitationAsk::message);
        let head = Line::styled("? ", Style::BOLD.colour(Colour::Yellow))
            .with(format!("{} asks you to visit a page", clean(&self.agent, look)), Style::BOLD);
        let mut lines = wrap(&head, canvas.columns, &Line::new(), &Line::from("  "));
        let prefix = Line::from("  ");
        for line in clean(message, look).lines() {
            lines.extend(wrap(&Line::from(line), canvas.columns, &prefix, &prefix));
        }
        let (before, host, after) = parts(&self.url);
        let address = Line::styled(reveal(before, look), Style::DIM)
            .with(reveal(host, look), Style::BOLD.underline().colour(Colour::Cyan))
            .with(reveal(after, look), Style::DIM);
        lines.extend(wrap_hard(&address, canvas.columns, &prefix, &prefix));
        for warning in warnings(&self.url, look) {
            let line = Line::styled(warning, Style::of(Colour::Yellow));
            lines.extend(wrap(
                &line,
                canvas.columns,
                &Line::styled("! ", Style::of(Colour::Yellow)),
                &prefix,
            ));
        }
        lines
    }

    pub(crate) fn view(&self, canvas: &Canvas, ready: bool) -> QuestionView {
        let (_, host, _) = parts(&self.url);
        let head = format!("Open {} in a browser?", reveal(host, canvas.look));
        let mut lines =
            wrap(&Line::styled(head, Style::BOLD), canvas.columns, &Line::new(), &Line::from("  "));
        let open = is_web(&self.url).then_some(("y", "Yes, open it", Colour::Green));
        for (key, text, colour) in open.into_iter().chain([
            ("m", "I will open it myself", Colour::Green),
            ("n", "No (decline)", Colour::Red),
            ("Esc", "Not now (cancel)", Colour::Red),
        ]) {
            let key = if ready { key } else { "" };
            lines.push(
                Line::styled(format!("  {key:4}"), Style::BOLD.colour(colour)).with(text, Style::PLAIN),
            );
        }
        QuestionView { lines, cursor: None }
    }

    pub(crate) fn key(&mut self, key: KeyEvent, canvas: &Canvas) -> Step {
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Step::Nothing;
        }
        let said =
            |text: &str| vec![Line::styled(format!("{} {text}", canvas.look.pick("·", "*")), Style::DIM)];
        match key.code {
            KeyCode::Char('y') if is_web(&self.url) => {
                self.agree();
                Step::Open(self.url.clone(), said("the page is being opened"))
            }
            KeyCode::Char('m') => {
                self.agree();
                Step::Done(said("agreed; open the page yourself"))
            }
            KeyCode::Char('n') => {
                if let Some(ask) = self.ask.take() {
                    ask.decline();
                }
                Step::Done(said("declined"))
            }
            KeyCode::Esc => {
                self.ask = None;
                Step::Done(said("cancelled"))
            }
            _ => Step::Nothing,
        }
    }

    /// Agrees to opening the page, nothing else.
    // ELIC-17
    fn agree(&mut self) {
        if let Some(ask) = self.ask.take() {
            // A page has no form to validate.
            let _ = ask.agree();
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.ask.as_ref().is_some_and(ElicitationAsk::is_open)
    }

    pub(crate) async fn withdrawn(&mut self) {
        if let Some(ask) = &self.ask {
            ask.withdrawn().await;
        }
    }
}

/// Returns whether it is a web address: other schemes may start any program.
fn is_web(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")
}

/// Splits an address at its host. Backslashes and tabs end the host, as in browsers.
fn parts(url: &str) -> (&str, &str, &str) {
    let start = url.find("://").map_or(0, |at| at + 3);
    let (_, rest) = url.split_at(start);
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or_default();
    let user = authority.rfind('@').map_or(0, |at| at + 1);
    let host = authority.get(user..).unwrap_or_default();
    let host_start = start + user;
    let host_end = host_start + host.len();
    (url.get(..host_start).unwrap_or_default(), host, url.get(host_end..).unwrap_or_default())
}

fn warnings(url: &str, look: Look) -> Vec<String> {
    let (before, host, _) = parts(url);
    let scheme = url.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let bare = host.rsplit_once(':').map_or(host, |(bare, _)| bare);
    let local = matches!(bare, "localhost" | "127.0.0.1" | "[::1]");
    let mut warnings = Vec::new();
    if scheme == "http" && !local {
        warnings.push("the address is not encrypted (http)".to_owned());
    } else if scheme != "http" && scheme != "https" {
        warnings.push(format!("this is not a web address but `{}:`", reveal(&scheme, look)));
    }
    if host.split('.').any(|label| label.to_ascii_lowercase().starts_with("xn--")) || !host.is_ascii() {
        warnings.push("the host name has characters that look like others (punycode): check it".to_owned());
    }
    if before.contains('@') {
        warnings
            .push(format!("the text before the @ is not the host; the page is on {}", reveal(host, look)));
    }
    if bare.parse::<std::net::IpAddr>().is_ok() && !local {
        warnings.push("the host is a number, not a name".to_owned());
    }
    if url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        warnings.push("the address has invisible characters".to_owned());
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Look = Look { colours: true, unicode: true };

    #[test]
    fn the_host_is_found() {
        for (url, host) in [
            ("https://example.org/a?b#c", "example.org"),
            ("https://user:pw@evil.org:8080/x", "evil.org:8080"),
            ("https://good.org@evil.org", "evil.org"),
            ("https://evil.org\\@good.org/", "evil.org"),
            ("mailto:x@y.z", "y.z"),
            ("", ""),
        ] {
            assert_eq!(parts(url).1, host, "{url}");
        }
    }

    #[test]
    fn oddities_are_named() {
        // shows ELIC-30
        let count = |url: &str| warnings(url, FULL).len();
        assert_eq!(count("https://example.org/login"), 0);
        assert_eq!(count("http://localhost:8080/"), 0);
        assert_eq!(count("http://example.org/"), 1);
        assert_eq!(count("https://xn--pypal-4ve.com/"), 1);
        assert_eq!(count("https://p\u{430}ypal.com/"), 1);
        assert_eq!(count("https://good.org@evil.org/"), 1);
        assert_eq!(count("https://192.168.0.7/"), 1);
        assert_eq!(count("javascript:alert(1)"), 1);
        assert_eq!(count("https://a.org/\u{1b}[2J"), 1);
    }
}
