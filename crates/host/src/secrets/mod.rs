//! What must not appear in logs: values of the environment, headers, tokens, passwords in addresses.
//!
//! Masking knows some secrets by heart (those of the environment, those that it is told), and others by where they
//! stand or how they look. It errs on the side of hiding.

mod frame;
mod names;

use std::borrow::Cow;
use std::ffi::OsString;
use std::sync::Arc;

pub use names::is_secret_name;

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
        Mask::new().with(vars.filter(|(name, _)| is_secret_name(name)).map(|(_, value)| value))
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
        let text = self.known(text);
        match names::mask(&text) {
            Some(masked) => Cow::Owned(masked),
            None => text,
        }
    }

    /// A JSON-RPC message without secrets, otherwise as it is: values in `env` and `headers`, values of members that are named
    /// like secrets, and whatever [`text`](Self::text) finds in all others. What is not JSON is a text.
    pub fn frame<'a>(&self, line: &'a str) -> Cow<'a, str> {
        frame::mask(self, line).unwrap_or_else(|| self.text(line))
    }
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mask").field("values", &self.values.len()).finish()
    }
}
