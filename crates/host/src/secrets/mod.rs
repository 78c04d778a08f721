//! What must not appear in logs: values of the environment, headers, tokens, passwords in addresses.
//!
//! Masking knows some secrets by heart (those of the environment, those that it is told), and others by where they
//! stand or how they look. It errs on the side of hiding. What it cannot find: a secret of an unknown form that no name
//! announces, one that is written in another way (base64, reversed, with blanks in it), and one that is spread over several
//! messages, unless those are the pieces of one text ([`PieceMask`]).

mod frame;
mod names;
mod pieces;

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::Arc;

pub use names::is_secret_name;
pub use pieces::PieceMask;

use names::Level;

/// Returns the variables of our own environment that programs started for an agent do not inherit: those named like
/// secrets, and those whose names are not text, except the ones in `passed`.
pub fn withheld_variables(passed: &[String]) -> Vec<OsString> {
    let is_withheld = |name: &OsString| match name.to_str() {
        Some(name) => is_secret_name(name) && !passed.iter().any(|passed| passed == name),
        None => true,
    };
    std::env::vars_os().map(|(name, _)| name).filter(is_withheld).collect()
}

/// What stands in the place of a secret.
pub const MASKED: &str = "***";

/// Hides secrets in texts.
#[derive(Clone, Default)]
pub struct Mask {
    /// The longest first, so that no part of one is left over.
    values: Arc<Vec<String>>,
}

/// A shorter value occurs by accident everywhere.
const SHORTEST: usize = 6;

impl Mask {
    /// Knows no secrets by heart.
    pub fn new() -> Self {
        Mask::default()
    }

    /// Knows the values of all variables of our own environment that are named like secrets.
    pub fn from_env() -> Self {
        let vars = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let is_secret = |name: &str| is_secret_name(name) || name.starts_with("ATTACHE_AUTH_");
        Mask::new().with(vars.filter(|(name, _)| is_secret(name)).map(|(_, value)| value))
    }

    /// Knows these too.
    #[must_use]
    pub fn with(self, secrets: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut values = self.values.to_vec();
        values.extend(secrets.into_iter().map(Into::into).filter(|value| value.len() >= SHORTEST));
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Mask { values: Arc::new(values) }
    }

    /// A text without the secrets that are known by heart. What only looks like one stays: for texts that must be read again as
    /// they were.
    pub fn known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for value in self.values.iter() {
            if text.contains(value.as_str()) {
                text = Cow::Owned(text.replace(value.as_str(), MASKED));
            }
        }
        text
    }

    /// A text without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.at(Level::Names, text)
    }

    /// A text without the secrets that are known and without what looks like one by itself. The values of names stay, so that
    /// source code that speaks of tokens and passwords can be read again as it was.
    pub fn tokens<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.at(Level::Tokens, text)
    }

    fn at<'a>(&self, level: Level, text: &'a str) -> Cow<'a, str> {
        let text = self.known(text);
        match names::mask(&text, level) {
            Some(masked) => Cow::Owned(masked),
            None => text,
        }
    }

    /// A JSON-RPC message without secrets, otherwise as it is: values in `env` and `headers`, values of members that are named
    /// like secrets, and whatever [`text`](Self::text) finds in all others. What is not JSON is a text.
    pub fn frame<'a>(&self, line: &'a str) -> Cow<'a, str> {
        frame::mask(self, Level::Names, line).unwrap_or_else(|| self.text(line))
    }

    /// A JSON text with [`tokens`](Self::tokens) applied to everything in it, otherwise as it is.
    pub fn frame_tokens<'a>(&self, json: &'a str) -> Cow<'a, str> {
        frame::mask(self, Level::Tokens, json).unwrap_or_else(|| self.tokens(json))
    }

    /// The words of a command line without secrets, also where an option and its value are two words.
    pub fn command_line(&self, words: &[String]) -> Vec<String> {
        let mut after_option = false;
        let masked = words.iter().map(|word| {
            let is_value = std::mem::take(&mut after_option) && !word.starts_with('-');
            after_option = word.starts_with('-') && is_secret_name(word.trim_start_matches('-'));
            if is_value { MASKED.to_owned() } else { self.text(word).into_owned() }
        });
        masked.collect()
    }

    /// How many bytes at the end of a text may be the beginning of a secret that is known by heart.
    fn open_tail(&self, text: &str) -> usize {
        let begins = |value: &String| {
            let longest = value.len().min(text.len() + 1) - 1;
            let mut tails = (1..=longest).rev().filter_map(|length| text.get(text.len() - length..));
            tails.find(|tail| value.starts_with(*tail)).map_or(0, str::len)
        };
        self.values.iter().map(begins).max().unwrap_or_default()
    }
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mask").field("values", &self.values.len()).finish()
    }
}
