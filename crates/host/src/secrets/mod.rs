//! Masking of secrets in logs: values of the environment, headers, tokens, passwords in URLs.
//!
//! A [`Mask`] knows the values of some secrets, and recognises others by the name before them or by
//! their form. In doubt it masks. It cannot find a secret of unknown form without a telling name,
//! an encoded one (base64, reversed, with blanks in it), or one that is spread over several
//! messages, unless those are the chunks of one text ([`StreamMask`]).

mod frame;
mod names;
mod pieces;

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::Arc;

pub use names::is_secret_name;
pub use pieces::StreamMask;

use names::Level;

/// Returns the variables of our own environment that programs started for an agent do not inherit:
/// those named like secrets, and those whose names are not text, except the ones in `passed`.
pub fn withheld_variables(passed: &[String]) -> Vec<OsString> {
    let is_withheld = |name: &OsString| match name.to_str() {
        Some(name) => is_secret_name(name) && !passed.iter().any(|passed| passed == name),
        None => true,
    };
    std::env::vars_os().map(|(name, _)| name).filter(is_withheld).collect()
}

/// Replacement for a secret.
pub const MASKED: &str = "***";

/// Replaces secrets in texts.
#[derive(Clone, Default)]
pub struct Mask {
    /// Longest first, so that no part of a longer one is left.
    values: Arc<Vec<String>>,
}

/// A shorter value occurs by accident everywhere.
const SHORTEST: usize = 6;

impl Mask {
    /// Creates a mask that knows no values.
    pub fn new() -> Self {
        Mask::default()
    }

    /// Creates a mask that knows the values of all environment variables that are named like
    /// secrets.
    pub fn from_env() -> Self {
        let vars = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let is_secret = |name: &str| is_secret_name(name) || name.starts_with("ATTACHE_AUTH_");
        Mask::new().with(vars.filter(|(name, _)| is_secret(name)).map(|(_, value)| value))
    }

    /// Adds values.
    #[must_use]
    pub fn with(self, secrets: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut values = self.values.to_vec();
        values.extend(secrets.into_iter().map(Into::into).filter(|value| value.len() >= SHORTEST));
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Mask { values: Arc::new(values) }
    }

    /// Replaces known values only, for texts that must stay readable by programs.
    pub fn known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for value in self.values.iter() {
            if text.contains(value.as_str()) {
                text = Cow::Owned(text.replace(value.as_str(), MASKED));
            }
        }
        text
    }

    /// Replaces all secrets in a text.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.at(Level::Names, text)
    }

    /// Replaces known values and texts that have the form of a secret, but not values after a
    /// telling name, so that source code about tokens and passwords stays intact.
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

    /// Replaces secrets in a JSON-RPC message: values in `env` and `headers`, values of members
    /// that are named like secrets, and the secrets that [`text`](Self::text) finds in all others.
    /// A line that is not JSON is masked as text.
    pub fn frame<'a>(&self, line: &'a str) -> Cow<'a, str> {
        frame::mask(self, Level::Names, line).unwrap_or_else(|| self.text(line))
    }

    /// Applies [`tokens`](Self::tokens) to all strings of a JSON text.
    pub fn frame_tokens<'a>(&self, json: &'a str) -> Cow<'a, str> {
        frame::mask(self, Level::Tokens, json).unwrap_or_else(|| self.tokens(json))
    }

    /// Replaces secrets in the words of a command line, also where an option and its value are two
    /// words.
    pub fn command_line(&self, words: &[String]) -> Vec<String> {
        let mut after_option = false;
        let masked = words.iter().map(|word| {
            let is_value = std::mem::take(&mut after_option) && !word.starts_with('-');
            after_option = word.starts_with('-') && is_secret_name(word.trim_start_matches('-'));
            if is_value { MASKED.to_owned() } else { self.text(word).into_owned() }
        });
        masked.collect()
    }

    /// The number of bytes at the end of a text that may be the beginning of a known value.
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
