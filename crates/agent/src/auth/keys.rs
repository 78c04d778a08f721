//! Keys that a login keeps.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use attache_conn::private;
use serde_json::{Map, Value, json};

use super::Keyring;
use crate::model::Key;

/// Keys that a login keeps, by provider: `{"version": 1, "keys": {"anthropic": {"in": "keyring"}, "openai": {"key": "…"}}}`.
///
/// The file says for which providers there is a key. So the keyring, which may ask its user to unlock it, is asked only
/// when it has one.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    /// `None` if there is no place to keep anything.
    file: Option<PathBuf>,
    keyring: Option<Keyring>,
}

impl Keys {
    /// The keys that are kept in this directory and in this system's keyring.
    pub fn new(dir: &Path) -> Self {
        Keys { file: Some(dir.join("agent-keys.json")), keyring: Keyring::find() }
    }

    /// No keys, and no place for any.
    pub fn nowhere() -> Self {
        Keys::default()
    }

    /// With another keyring, or without any.
    #[must_use]
    pub fn with_keyring(mut self, keyring: Option<Keyring>) -> Self {
        self.keyring = keyring;
        self
    }

    /// Whether the file can be used. One that other users can read is not.
    ///
    /// # Errors
    /// Why not, and what to do.
    pub fn check(&self) -> Result<(), String> {
        self.load().map(drop)
    }

    /// The key of a provider, if one is kept and the file can be used.
    pub fn get(&self, provider: &str) -> Option<Key> {
        let kept = self.load().ok()?;
        let entry = kept.get(provider)?;
        match entry.get("key").and_then(Value::as_str) {
            Some(key) => Key::new(key),
            None => self.keyring.as_ref()?.get(provider),
        }
    }

    /// Keeps a key, and says where.
    pub fn set(&self, provider: &str, key: &Key) -> Result<String, String> {
        let file =
            self.file.as_ref().ok_or("there is no directory to keep keys in; set a variable instead")?;
        let mut kept = self.load()?;
        let in_keyring = self.keyring.as_ref().is_some_and(|keyring| keyring.set(provider, key));
        let entry = if in_keyring { json!({ "in": "keyring" }) } else { json!({ "key": key.reveal() }) };
        kept.insert(provider.to_owned(), entry);
        self.save(&kept)?;
        Ok(if in_keyring { "the system's keyring".to_owned() } else { file.display().to_string() })
    }

    /// Forgets the key of a provider; whether there was one.
    pub fn remove(&self, provider: &str) -> Result<bool, String> {
        let mut kept = self.load()?;
        let Some(entry) = kept.remove(provider) else { return Ok(false) };
        if entry.get("key").is_none()
            && let Some(keyring) = &self.keyring
            && !keyring.remove(provider)
        {
            return Err(format!("the keyring did not forget the key of {provider}; unlock it and try again"));
        }
        self.save(&kept)?;
        Ok(true)
    }

    fn load(&self) -> Result<Map<String, Value>, String> {
        let Some(file) = &self.file else { return Ok(Map::new()) };
        let text = private::read_secret(file).map_err(|error| error.to_string())?;
        let Some(text) = text else { return Ok(Map::new()) };
        // What is wrong with it is told without its text, which holds keys.
        let damaged = || format!("{} is damaged; delete it and log in again", file.display());
        let value: Value = serde_json::from_str(&text).map_err(|_| damaged())?;
        value.get("keys").and_then(Value::as_object).cloned().ok_or_else(damaged)
    }

    /// Replaces the file in one step.
    fn save(&self, kept: &Map<String, Value>) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        let failed = |error: io::Error| format!("{}: {error}", file.display());
        if kept.is_empty() {
            return match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
                _ => Ok(()),
            };
        }
        let text = format!("{:#}\n", json!({ "version": 1, "keys": kept }));
        let dir = file.parent().unwrap_or(Path::new("."));
        private::directory(dir)
            .and_then(|()| private::replace(file, text.as_bytes()))
            .map_err(|error| error.to_string())
    }
}
