//! Secrets by their place in a text, and by their looks.

use super::MASKED;

/// The longest name that is looked at without an allocation.
const USUAL: usize = 64;

/// Whether a variable, a header or a member of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    // Credentials for agents have the name of the login method behind this, and the password of
    // MySQL has a name of its own.
    if name.starts_with("ATTACHE_AUTH_") || name == "MYSQL_PWD" {
        return true;
    }
    // `apiKey`, `API_KEY` and `x-api-key` are one name.
    let mut letters = name.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase());
    let mut usual = [0; USUAL];
    let mut length = 0;
    for (place, letter) in usual.iter_mut().zip(&mut letters) {
        *place = letter;
        length += 1;
    }
    match letters.next() {
        None => names_secret(name, &usual[..length]),
        Some(next) => {
            let long: Vec<u8> = usual.into_iter().chain([next]).chain(letters).collect();
            names_secret(name, &long)
        }
    }
}

/// `plain` are the letters and digits of the name, lower case.
fn names_secret(name: &str, plain: &[u8]) -> bool {
    // Counts of tokens are no secrets.
    let ends = [
        "token",
        "secret",
        "password",
        "passwd",
        "passphrase",
        "apikey",
        "privatekey",
        "accesskey",
        "secretkey",
    ];
    let contains = |part: &str| plain.windows(part.len()).any(|window| window == part.as_bytes());
    let parts = || name.split(|c: char| !c.is_ascii_alphanumeric());
    let is_one_of = |part: &str, words: &[&str]| words.iter().any(|word| part.eq_ignore_ascii_case(word));
    ends.iter().any(|end| plain.ends_with(end.as_bytes()))
        || ["secret", "password", "credential", "authorization", "setcookie", "apikey", "accesskey"]
            .iter()
            .any(|part| contains(part))
        || (parts().nth(1).is_some()
            && parts().next_back().is_some_and(|last| is_one_of(last, &["key", "pat", "auth", "pass"])))
        || parts().any(|part| is_one_of(part, &["cookie", "token"]))
}

/// How well-known tokens begin, and how long they are at least.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 20),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("xapp-", 16),
    ("npm_", 20),
    ("pypi-", 20),
    ("hf_", 20),
    ("gsk_", 20),
    ("xai-", 20),
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 30),
    ("ya29.", 20),
];

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.+/~%".contains(c)
}

fn is_token(word: &str) -> bool {
    let fits = |(prefix, least): &(&str, usize)| word.len() >= *least && word.starts_with(prefix);
    // A signed token has three parts; base64 of other JSON begins in the same way.
    PREFIXES.iter().any(fits)
        || (word.len() >= 40 && word.starts_with("eyJ") && word.matches('.').count() >= 2)
}

/// Whether more letters can make a token of this word, or whether it is one by now.
fn may_become_token(word: &str) -> bool {
    let begins = |prefix: &str| prefix.starts_with(word) || word.starts_with(prefix);
    begins("eyJ") || PREFIXES.iter().any(|(prefix, _)| begins(prefix))
}

/// The parts of a path or an address after its first, with their places.
fn later_segments(word: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = word.match_indices('/').map(|(slash, _)| slash + 1);
    starts.map(|start| (start, word[start..].split('/').next().unwrap_or_default()))
}

/// The place where a token begins that reaches to the end of the word: the word itself, or a
/// segment of a path.
fn token_start(word: &str) -> Option<usize> {
    if is_token(word) {
        return Some(0);
    }
    later_segments(word).find(|(_, segment)| is_token(segment)).map(|(start, _)| start)
}

/// The place from which on a word without an end may be, or become, a token.
fn open_token_start(word: &str) -> usize {
    if may_become_token(word) {
        return 0;
    }
    let may_become = |(start, segment): &(usize, &str)| match start + segment.len() == word.len() {
        true => may_become_token(segment),
        false => is_token(segment),
    };
    later_segments(word).find(may_become).map_or(word.len(), |(start, _)| start)
}

/// What counts as a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The value of whatever is named like a secret, too.
    Names,
    /// Only what looks like a secret by itself: tokens of known forms, private keys, passwords in
    /// addresses.
    Tokens,
}

/// The text without what is recognised, or `None` if there is nothing.
pub(super) fn mask(text: &str, level: Level) -> Option<String> {
    let mut out: Option<String> = None;
    // What has been copied or masked so far.
    let mut done = 0;
    Scan::new(level).run(text, false, |from, to| {
        let out = out.get_or_insert_default();
        out.push_str(&text[done..from]);
        out.push_str(MASKED);
        done = to;
    });
    let mut out = out?;
    out.push_str(&text[done..]);
    Some(out)
}

/// Looks for secrets in a text that may come in pieces.
#[derive(Debug)]
pub(super) struct Scan {
    level: Level,
    before: Before,
    /// The beginning of a word that the text so far ends with, and that cannot become a secret
    /// itself.
    open: String,
    /// The text so far ends with a colon.
    colon: bool,
    /// The text so far ends in a secret that was too long to wait for its end.
    inside: bool,
}

/// A word of a text in pieces whose end has not come is waited for up to this length, a private key
/// longer.
const LONGEST_WORD: usize = 4 << 10;
const LONGEST_KEY: usize = 64 << 10;

impl Scan {
    pub(super) fn new(level: Level) -> Scan {
        Scan { level, before: Before::default(), open: String::new(), colon: false, inside: false }
    }

    /// Calls `hide` with the places of secrets, in order. With `more` to come it stops before what
    /// that could turn into a secret, and gives back how far it got.
    pub(super) fn run(&mut self, text: &str, more: bool, mut hide: impl FnMut(usize, usize)) -> usize {
        let mut at = 0;
        if std::mem::take(&mut self.inside) {
            at = text.find(|c| !is_word_char(c)).unwrap_or(text.len());
            self.inside = more && at == text.len();
            if at > 0 {
                hide(0, at);
            }
        }
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let word: usize = rest.find(|c| !is_word_char(c)).unwrap_or(rest.len());
            let starts = self.open.is_empty();
            if word == 0 {
                if !starts {
                    let word = std::mem::take(&mut self.open);
                    self.word_ends(&word);
                }
                let gap = rest.find(is_word_char).unwrap_or(rest.len());
                // The rest of the gap may join a name and its value.
                if more && gap == rest.len() && gap < LONGEST_WORD && self.before.name {
                    break;
                }
                self.before.gap(&rest[..gap]);
                at += gap;
                continue;
            }
            if starts && more && rest.len() < LONGEST_KEY && may_become_key(rest) {
                break;
            }
            if let Some(length) = private_key(rest).filter(|_| starts) {
                hide(at, at + length);
                at += length;
                continue;
            }
            let after_colon = if at == 0 { self.colon } else { text[..at].ends_with(':') };
            if starts && more && after_colon && rest == "/" {
                break;
            }
            if let Some(address) = rest.strip_prefix("//").filter(|_| starts && after_colon) {
                if more && rest.len() < LONGEST_WORD && authority(address) == address.len() {
                    break;
                }
                if let Some(login) = login(address) {
                    hide(at + 2, at + 2 + login);
                    self.before = Before::default();
                    at += 2 + login;
                    continue;
                }
            }
            let released = self.open.len();
            let is_open = more && word == rest.len() && released + word < LONGEST_WORD;
            if is_open && self.before.is_joined() {
                break;
            }
            if is_open || !starts {
                self.open.push_str(&rest[..word]);
            }
            if is_open {
                let certain = open_token_start(&self.open).max(released);
                self.open.truncate(certain);
                at += certain - released;
                break;
            }
            let secret = match starts {
                true => self.word_ends(&rest[..word]),
                false => {
                    let whole = std::mem::take(&mut self.open);
                    self.word_ends(&whole)
                }
            };
            if let Some(start) = secret {
                hide(at + start.saturating_sub(released), at + word);
                self.inside = more && word == rest.len();
            }
            at += word;
        }
        if at > 0 {
            self.colon = text[..at].ends_with(':');
        }
        at
    }

    /// The place in a word where a secret begins that reaches to its end.
    fn word_ends(&mut self, word: &str) -> Option<usize> {
        if is_scheme(word) && !self.before.is_none() && self.level == Level::Names {
            self.before = Before { name: true, joined: true, ..Before::default() };
            return None;
        }
        let secret = if self.before.wants(word) { Some(0) } else { token_start(word) };
        self.before = match secret {
            Some(_) => Before::default(),
            None => Before::word(word, self.level),
        };
        secret
    }
}

/// `Bearer` and its like, after which a secret comes.
fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "digest"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// What came just before a word.
#[derive(Debug, Default)]
struct Before {
    /// A word that names a secret.
    name: bool,
    /// It was an option such as `--token`, whose value may follow after a blank.
    option: bool,
    /// There was a `=`, a `:` or the like in between.
    joined: bool,
    any: bool,
}

impl Before {
    fn word(word: &str, level: Level) -> Self {
        if level == Level::Tokens {
            return Before { any: true, ..Before::default() };
        }
        let name = is_secret_name(word.trim_start_matches('-'));
        Before { name, option: word.starts_with("--"), joined: is_scheme(word), any: true }
    }

    fn is_none(&self) -> bool {
        !self.any
    }

    /// Whether the next word is the value of a secret.
    fn is_joined(&self) -> bool {
        self.name && self.joined
    }

    fn gap(&mut self, gap: &str) {
        let only = |set: &str| gap.chars().all(|c| set.contains(c));
        if self.is_joined() && only("\"' \t") {
            return;
        }
        if self.name && only("\"'=: \t\\") && gap.contains(['=', ':']) {
            self.joined = true;
        } else if !(self.name && self.option && only(" \t\"'")) {
            let any = self.any;
            *self = Before { any, ..Before::default() };
        } else {
            self.joined = true;
        }
    }

    /// Whether this word is the value of a secret. Small numbers and the words of JSON are not.
    fn wants(&self, word: &str) -> bool {
        let is_small = word.len() < super::SHORTEST && word.parse::<f64>().is_ok();
        self.is_joined() && !matches!(word, "true" | "false" | "null") && !is_small
    }
}

/// The length of the part of an address that names the host.
fn authority(rest: &str) -> usize {
    rest.find(|c: char| c.is_whitespace() || "/?#\"'<>".contains(c)).unwrap_or(rest.len())
}

/// The length of a name and password in front of a host.
fn login(rest: &str) -> Option<usize> {
    rest[..authority(rest)].rfind('@').filter(|at| *at > 0)
}

const BEGIN: &str = "-----BEGIN ";
const END: &str = "PRIVATE KEY-----";

/// Whether more text can make a private key of this, or of more of it.
fn may_become_key(rest: &str) -> bool {
    let Some(head) = rest.strip_prefix(BEGIN) else { return BEGIN.starts_with(rest) };
    match head.split_once("-----") {
        None => head.len() < USUAL && !head.contains('\n'),
        Some((kind, body)) => kind.ends_with("PRIVATE KEY") && !body.contains(END),
    }
}

/// The length of a private key that begins here.
fn private_key(rest: &str) -> Option<usize> {
    let head = rest.strip_prefix(BEGIN)?;
    head.split("-----").next().filter(|kind| kind.ends_with("PRIVATE KEY"))?;
    let body = rest.find(END)? + END.len();
    Some(rest[body..].find(END).map_or(rest.len(), |end| body + end + END.len()))
}
