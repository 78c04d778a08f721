//! Secrets by their place in a text, and by their looks.

use super::MASKED;

/// Whether a variable, a header or a member of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    // Credentials for agents have the name of the login method behind this, and the password of MySQL has a name of its own.
    if name.starts_with("ATTACHE_AUTH_") || name == "MYSQL_PWD" {
        return true;
    }
    // `apiKey`, `API_KEY` and `x-api-key` are one name.
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let parts: Vec<String> =
        name.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase).collect();
    let has = |part: &str| parts.iter().any(|name| name == part);
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
    ends.iter().any(|end| plain.ends_with(end))
        || ["secret", "password", "credential", "authorization", "setcookie", "apikey", "accesskey"]
            .iter()
            .any(|part| plain.contains(part))
        || (parts.len() > 1
            && parts.last().is_some_and(|last| matches!(last.as_str(), "key" | "pat" | "auth" | "pass")))
        || has("cookie")
        || has("token")
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
    ("eyJ", 40),
];

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-.+/~%".contains(c)
}

fn looks_secret(word: &str) -> bool {
    PREFIXES.iter().any(|(prefix, least)| word.len() >= *least && word.starts_with(prefix))
        // Part of an address or of a path, where the token is only the last piece.
        || word.rsplit_once('/').is_some_and(|(_, last)| last != word && looks_secret(last))
}

/// The text without what is recognised, or `None` if there is nothing.
pub(super) fn mask(text: &str) -> Option<String> {
    let mut out: Option<String> = None;
    // What has been copied or masked so far.
    let mut done = 0;
    let mut hide = |from: usize, to: usize| {
        if from >= done {
            let out = out.get_or_insert_default();
            out.push_str(&text[done..from]);
            out.push_str(MASKED);
            done = to;
        }
    };
    let mut before = Before::default();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(length) = private_key(rest) {
            hide(at, at + length);
            at += length;
            continue;
        }
        let word: usize = rest.find(|c| !is_word_char(c)).unwrap_or(rest.len());
        if word == 0 {
            let gap = rest.find(is_word_char).unwrap_or(rest.len());
            before.gap(&rest[..gap]);
            at += gap;
            continue;
        }
        if let Some(address) = rest.strip_prefix("//").filter(|_| text[..at].ends_with(':'))
            && let Some(login) = login(address)
        {
            hide(at + 2, at + 2 + login);
            before = Before::default();
            at += 2 + login;
            continue;
        }
        let this = &rest[..word];
        if is_scheme(this) && !before.is_none() {
            before = Before { name: true, joined: true, ..Before::default() };
        } else if looks_secret(this) || before.wants(this) {
            hide(at, at + word);
            before = Before::default();
        } else {
            before = Before::word(this);
        }
        at += word;
    }
    let mut out = out?;
    out.push_str(&text[done..]);
    Some(out)
}

/// `Bearer` and its like, after which a secret comes.
fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "digest"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// What came just before a word.
#[derive(Default)]
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
    fn word(word: &str) -> Self {
        let name = is_secret_name(word.trim_start_matches('-'));
        Before { name, option: word.starts_with("--"), joined: is_scheme(word), any: true }
    }

    fn is_none(&self) -> bool {
        !self.any
    }

    fn gap(&mut self, gap: &str) {
        let only = |set: &str| gap.chars().all(|c| set.contains(c));
        if self.name && self.joined && only("\"' \t") {
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
        self.name && self.joined && !matches!(word, "true" | "false" | "null") && !is_small
    }
}

/// The length of a name and password in front of a host.
fn login(rest: &str) -> Option<usize> {
    let end = rest.find(|c: char| c.is_whitespace() || "/?#\"'<>".contains(c)).unwrap_or(rest.len());
    rest[..end].rfind('@').filter(|at| *at > 0)
}

/// The length of a private key that begins here.
fn private_key(rest: &str) -> Option<usize> {
    let head = rest.strip_prefix("-----BEGIN ")?;
    head.split("-----").next().filter(|kind| kind.ends_with("PRIVATE KEY"))?;
    const END: &str = "PRIVATE KEY-----";
    let body = rest.find(END)? + END.len();
    Some(rest[body..].find(END).map_or(rest.len(), |end| body + end + END.len()))
}
