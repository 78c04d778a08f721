//! Hyperlinks (OSC 8): addresses that styles carry, for terminals that say they support them.
//!
//! A style is copied with every character, so it holds the number of an address, not the address.
//! The table of addresses is bounded; text whose address was forgotten is shown without a link.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The longest address, as in common terminals.
const LONGEST: usize = 2_083;
/// Addresses that are kept.
const KEPT: usize = 1_024;

/// The number of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link(u32);

/// The newest addresses in the order of their numbers.
#[derive(Debug)]
struct Table {
    next: u32,
    kept: VecDeque<(u32, String)>,
}

static TABLE: Mutex<Table> = Mutex::new(Table::new());

impl Table {
    const fn new() -> Table {
        Table { next: 0, kept: VecDeque::new() }
    }

    /// Returns the number of an address, which is added if it is new.
    fn number(&mut self, address: String) -> u32 {
        if let Some((number, _)) = self.kept.iter().rev().find(|(_, known)| *known == address) {
            return *number;
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        if self.kept.len() >= KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((number, address));
        number
    }

    fn address(&self, number: u32) -> Option<&str> {
        self.kept.iter().rev().find(|(known, _)| *known == number).map(|(_, address)| address.as_str())
    }
}

impl Link {
    /// A link to a page that a text names. `None` if the terminal has no links, or the address is
    /// not one of the web or of mail.
    pub fn to_page(address: &str) -> Option<Link> {
        if !is_supported()
            || !["http://", "https://", "mailto:"].iter().any(|scheme| has_scheme(address, scheme))
        {
            return None;
        }
        Link::new(escaped(address)?)
    }

    /// A link to a file of this machine. `None` if the terminal has no links, or the path is not
    /// absolute.
    pub fn to_file(path: &str) -> Option<Link> {
        if !is_supported() || !Path::new(path).is_absolute() {
            return None;
        }
        let mut address = "file://".to_owned();
        for byte in path.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                    address.push(char::from(byte));
                }
                byte => drop(write!(address, "%{byte:02X}")),
            }
        }
        Link::new(address)
    }

    fn new(address: String) -> Option<Link> {
        if address.len() > LONGEST {
            return None;
        }
        Some(Link(TABLE.lock().unwrap_or_else(PoisonError::into_inner).number(address)))
    }

    /// Returns the number and the address; `None` if it was forgotten.
    pub(super) fn target(self) -> Option<(u32, String)> {
        let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
        table.address(self.0).map(|address| (self.0, address.to_owned()))
    }
}

fn has_scheme(address: &str, scheme: &str) -> bool {
    address.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

/// Returns the address in visible ASCII: other characters are percent-encoded, so that none can end
/// the sequence. `None` if there are control characters, which no address has.
fn escaped(address: &str) -> Option<String> {
    let mut out = String::new();
    for c in address.chars() {
        match c {
            c if c.is_control() => return None,
            '!'..='~' => out.push(c),
            c => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(out, "%{byte:02X}");
                }
            }
        }
    }
    Some(out)
}

/// Whether the terminal says that it supports links.
fn is_supported() -> bool {
    static SUPPORTED: OnceLock<bool> = OnceLock::new();
    *SUPPORTED.get_or_init(|| says_so(|name| std::env::var(name).ok().filter(|value| !value.is_empty())))
}

/// Whether the variables are those of a terminal with links. `FORCE_HYPERLINK` decides it if it is
/// set.
fn says_so(var: impl Fn(&str) -> Option<String>) -> bool {
    if let Some(forced) = var("FORCE_HYPERLINK") {
        return forced != "0";
    }
    let term = var("TERM").unwrap_or_default();
    // Multiplexers pass links on only in recent versions, with a setting.
    if ["TMUX", "STY"].iter().any(|name| var(name).is_some()) || ["dumb", "linux"].contains(&term.as_str()) {
        return false;
    }
    let program = var("TERM_PROGRAM").unwrap_or_default();
    let programs = ["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"];
    let terms = ["xterm-kitty", "xterm-ghostty", "wezterm", "foot", "alacritty", "contour"];
    programs.contains(&program.as_str())
        || terms.iter().any(|known| term.starts_with(known))
        || ["KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM"]
            .iter()
            .any(|name| var(name).is_some())
        || var("VTE_VERSION")
            .and_then(|version| version.parse::<u32>().ok())
            .is_some_and(|version| version >= 5_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(vars: &[(&str, &str)]) -> bool {
        says_so(|name| vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn only_terminals_that_say_so_get_links() {
        assert!(!says(&[]));
        assert!(!says(&[("TERM", "xterm-256color")]));
        assert!(says(&[("TERM", "xterm-kitty")]));
        assert!(says(&[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")]));
        assert!(!says(&[("VTE_VERSION", "4800")]));
        assert!(says(&[("TERM_PROGRAM", "WezTerm")]));
        assert!(!says(&[("TERM_PROGRAM", "WezTerm"), ("TMUX", "/tmp/x")]));
        assert!(says(&[("TMUX", "/tmp/x"), ("FORCE_HYPERLINK", "1")]));
        assert!(!says(&[("TERM", "xterm-kitty"), ("FORCE_HYPERLINK", "0")]));
    }

    #[test]
    fn an_address_cannot_end_its_sequence() {
        assert_eq!(escaped("https://a.b/ü c?d=1#e").as_deref(), Some("https://a.b/%C3%BC%20c?d=1#e"));
        assert_eq!(escaped("https://a\x1b\\"), None);
        assert_eq!(escaped("https://a\u{9c}"), None);
        let target = Link::new("https://a.b".to_owned()).and_then(Link::target);
        assert_eq!(target.map(|(_, address)| address).as_deref(), Some("https://a.b"));
        assert_eq!(Link::new("x".repeat(LONGEST + 1)), None);
    }

    #[test]
    fn the_table_is_bounded_and_an_address_has_one_number() {
        let mut table = Table::new();
        let first = table.number("https://first".to_owned());
        assert_eq!(table.number("https://first".to_owned()), first);
        assert_eq!(table.address(first), Some("https://first"));
        for number in 0..KEPT {
            table.number(format!("https://{number}"));
        }
        assert_eq!((table.address(first), table.kept.len()), (None, KEPT));
    }
}
