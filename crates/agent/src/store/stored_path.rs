//! Paths in the database: text if possible, else bytes, because a file must be restored under its
//! exact name.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path for lists of paths; other types use this module with `#[serde(with)]`.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredPath(#[serde(with = "self")] pub(super) PathBuf);

pub(super) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => text.serialize(serializer),
        None => path.as_os_str().as_bytes().serialize(serializer),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum TextOrBytes {
        Text(String),
        Bytes(Vec<u8>),
    }
    Ok(match TextOrBytes::deserialize(deserializer)? {
        TextOrBytes::Text(text) => text.into(),
        TextOrBytes::Bytes(bytes) => OsString::from_vec(bytes).into(),
    })
}

/// A list of paths as JSON.
pub(super) fn list_to_json(paths: &[PathBuf]) -> String {
    let paths: Vec<StoredPath> = paths.iter().cloned().map(StoredPath).collect();
    serde_json::to_string(&paths).unwrap_or_default()
}

/// Reads a list of paths; empty if it is damaged.
pub(super) fn list_from_json(text: &str) -> Vec<PathBuf> {
    let paths: Vec<StoredPath> = serde_json::from_str(text).unwrap_or_default();
    paths.into_iter().map(|path| path.0).collect()
}
