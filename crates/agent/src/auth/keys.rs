//! Keys that logins store.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use attache_conn::private;
use serde::{Deserialize, Serialize};

use super::Keyring;
use crate::model::Key;

/// Keys that logins store, by provider: `{"version": 1, "keys": {"anthropic": {"in": "keyring"},
/// "openai": {"key": "…"}}}`.
///
/// The file lists the providers with a key, so the keyring, which may ask its user to unlock it, is
/// used only if it has one.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    /// `None` if keys cannot be stored.
    file: Option<PathBuf>,
    keyring: Option<Keyring>,
}

#[derive(Serialize, Deserialize)]
struct KeyFile {
    version: u32,
    keys: Entries,
}

type Entries = BTreeMap<String, Entry>;

/// One stored key.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Entry {
    File { key: String },
    Keyring { r#in: String },
}

impl Keys {
    /// The keys in this directory and in this system's keyring.
    pub fn new(dir: &Path) -> Self {
        Keys { file: Some(dir.join("agent-keys.json")), keyring: Keyring::find() }
    }

    /// No keys, and no storage for any.
    pub fn none() -> Self {
        Keys::default()
    }

    /// With another keyring, or without any.
    #[must_use]
    pub fn with_keyring(mut self, keyring: Option<Keyring>) -> Self {
        self.keyring = keyring;
        self
    }

    /// Checks that the file is usable: only its owner may read it.
    ///
    /// # Errors
    /// The problem, and how to fix it.
    pub fn check(&self) -> Result<(), String> {
        self.load().map(drop)
    }

    /// The key of a provider, if one is stored and the file is usable.
    pub fn get(&self, provider: &str) -> Option<Key> {
        match self.load().ok()?.get(provider)? {
            Entry::File { key } => Key::new(key),
            Entry::Keyring { .. } => self.keyring.as_ref()?.get(provider),
        }
    }

    /// Stores a key. Returns where.
    pub fn set(&self, provider: &str, key: &Key) -> Result<String, String> {
        let file = self.file.as_ref().ok_or("there is no directory for keys; set a variable instead")?;
        let mut entries = self.load()?;
        let in_keyring = self.keyring.as_ref().is_some_and(|keyring| keyring.set(provider, key));
        let entry = match in_keyring {
            true => Entry::Keyring { r#in: "keyring".to_owned() },
            false => Entry::File { key: key.reveal().to_owned() },
        };
        entries.insert(provider.to_owned(), entry);
        self.save(entries)?;
        Ok(if in_keyring { "the system's keyring".to_owned() } else { file.display().to_string() })
    }

    /// Forgets the key of a provider. Returns whether there was one.
    pub fn remove(&self, provider: &str) -> Result<bool, String> {
        let mut entries = self.load()?;
        let Some(entry) = entries.remove(provider) else { return Ok(false) };
        if matches!(entry, Entry::Keyring { .. })
            && let Some(keyring) = &self.keyring
            && !keyring.remove(provider)
        {
            return Err(format!("the keyring did not remove the key of {provider}; unlock it and try again"));
        }
        self.save(entries)?;
        Ok(true)
    }

    fn load(&self) -> Result<Entries, String> {
        let Some(file) = &self.file else { return Ok(Entries::new()) };
        let text = private::read_secret(file).map_err(|error| error.to_string())?;
        let Some(text) = text else { return Ok(Entries::new()) };
        // The error leaves out the file's text, which contains keys.
        let file: KeyFile = serde_json::from_str(&text)
            .map_err(|_| format!("{} is damaged; delete it and log in again", file.display()))?;
        Ok(file.keys)
    }

    /// Replaces the file atomically.
    fn save(&self, keys: Entries) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        if keys.is_empty() {
            return match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(format!("{}: {error}", file.display()))
                }
                _ => Ok(()),
            };
        }
        let text =
            serde_json::to_string_pretty(&KeyFile { version: 1, keys }).map_err(|error| error.to_string())?;
        let dir = file.parent().unwrap_or(Path::new("."));
        private::create_directory(dir)
            .and_then(|()| private::replace(file, format!("{text}\n").as_bytes()))
            .map_err(|error| error.to_string())
    }
}
