//! Readers of the types of `attache-wire` by their names in the catalogue.

use attache_wire::{Request, v1, v2};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::catalogue::Catalogue;

/// Reads a text as a type and writes it again; the error says why it was refused.
pub type Reader = fn(&str) -> Result<String, String>;

/// Reads a text as `T` and writes the value.
///
/// # Panics
/// The reader of the usual form does not agree with `serde_json`.
pub fn read_and_write<T: Serialize + DeserializeOwned>(text: &str) -> Result<String, String> {
    let read = written(serde_json::from_str::<T>(text));
    assert_eq!(written(attache_wire::from_text::<T>(text)), read, "{text}");
    read
}

/// The types of one protocol version.
#[derive(Debug, Clone, Copy)]
pub struct Version {
    /// Every type in groups: `stable`, `unstable`, `proxy` (unstable, too) and, in version 1,
    /// `drafts`.
    pub groups: &'static [(&'static str, &'static [(&'static str, Reader)])],
    /// Types that only occur inside of a union and share its object.
    pub inner: &'static [&'static str],
    /// The types as data.
    pub catalogue: fn() -> &'static Catalogue,
}

macro_rules! readers_of_v1 {
    ($($group:ident [$($name:ident,)+])+) => {
        &[$((stringify!($group), &[$((stringify!($name), read_and_write::<v1::$name> as Reader)),+])),+]
    };
}

macro_rules! readers_of_v2 {
    ($($group:ident [$($name:ident,)+])+) => {
        &[$((stringify!($group), &[$((stringify!($name), read_and_write::<v2::$name> as Reader)),+])),+]
    };
}

/// Version 1.
pub const V1: Version = Version {
    groups: attache_wire::for_each_v1_type!(readers_of_v1),
    inner: &["ElicitationFormMode", "ElicitationUrlMode"],
    catalogue: Catalogue::v1,
};

/// Version 2.
pub const V2: Version = Version {
    groups: attache_wire::for_each_v2_type!(readers_of_v2),
    inner: &["ElicitationFormMode", "ElicitationUrlMode"],
    catalogue: Catalogue::v2,
};

impl Version {
    /// The version by its number.
    pub fn of(number: u64) -> Option<Version> {
        match number {
            1 => Some(V1),
            2 => Some(V2),
            _ => None,
        }
    }

    /// Every type.
    pub fn readers(self) -> impl Iterator<Item = (&'static str, Reader)> {
        self.groups.iter().flat_map(|(_, readers)| readers.iter().copied())
    }

    /// The reader of a type by its name in the catalogue.
    pub fn reader(self, name: &str) -> Option<Reader> {
        self.readers().find(|(known, _)| *known == name).map(|(_, reader)| reader)
    }
}

/// Returns the tolerant reader for the params of a method, if there is one.
pub fn tolerant(method: &str) -> Option<Reader> {
    macro_rules! by_method {
        ($($request:ident),+ $(,)?) => {
            match method {
                $(<v1::$request as Request>::METHOD => Some(repaired::<v1::$request> as Reader),)+
                _ => None,
            }
        };
    }
    by_method![
        DisableProviderRequest,
        InitializeRequest,
        LoadSessionRequest,
        NewSessionRequest,
        PromptRequest,
        SetProviderRequest,
        SetSessionConfigOptionRequest,
        SetSessionModeRequest,
    ]
}

/// Returns the tolerant reader for the result of a method, if there is one.
pub fn tolerant_result(method: &str) -> Option<Reader> {
    fn providers(text: &str) -> Result<String, String> {
        written(v1::decode_tolerant_result::<v1::ListProvidersResponse>("providers/list", Some(&raw(text)?)))
    }
    (method == "providers/list").then_some(providers as Reader)
}

fn repaired<R: Request>(text: &str) -> Result<String, String> {
    written(v1::decode_tolerant::<R>(R::METHOD, Some(&raw(text)?)))
}

fn raw(text: &str) -> Result<Box<RawValue>, String> {
    RawValue::from_string(text.to_owned()).map_err(|error| error.to_string())
}

fn written<T: Serialize>(read: serde_json::Result<T>) -> Result<String, String> {
    let value = read.map_err(|error| error.to_string())?;
    serde_json::to_string(&value).map_err(|error| format!("cannot be written: {error}"))
}
