//! Secrets that cannot be printed accidentally.

use std::fmt;

/// A secret: an API key or a header's value. It has no `Display`, and its `Debug` is masked.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// A secret without surrounding whitespace; `None` if nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Key(text.to_owned()))
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Masks the secret in a text: providers repeat what they were sent.
    pub fn mask(&self, text: &str) -> String {
        // A very short value would match everywhere, and is no secret.
        if self.0.len() < 6 {
            return text.to_owned();
        }
        text.replace(&self.0, "***")
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(***)")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_key_shows_in_no_text() {
        let key = Key::new(" sk-secret-value\n").unwrap();
        assert_eq!(key.reveal(), "sk-secret-value");
        assert_eq!(format!("{key:?} {:#?}", Some(&key)).matches("secret").count(), 0);
        assert_eq!(key.mask("invalid key sk-secret-value!"), "invalid key ***!");
        assert_eq!(Key::new(" \n"), None);
    }
}
