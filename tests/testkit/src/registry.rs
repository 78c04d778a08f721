//! Readers of the types of `attache-wire` by their names in the catalogue.

use attache_wire::{Request, v1};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Reads a text as a type and writes it again; the error says why it was refused.
pub type Reader = fn(&str) -> Result<String, String>;

/// Reads a text as `T` and writes the value.
pub fn read_and_write<T: Serialize + DeserializeOwned>(text: &str) -> Result<String, String> {
    written(serde_json::from_str::<T>(text))
}

macro_rules! readers {
    ($($group:ident [$($name:ident,)+])+) => {
        &[$((stringify!($group), &[$((stringify!($name), read_and_write::<v1::$name> as Reader)),+])),+]
    };
}

/// Every type of version 1 in groups: `stable`, `unstable`, `proxy` (unstable, too) and `drafts`.
pub const GROUPS: &[(&str, &[(&str, Reader)])] = attache_wire::for_each_v1_type!(readers);

/// Every type of version 1.
pub fn readers() -> impl Iterator<Item = (&'static str, Reader)> {
    GROUPS.iter().flat_map(|(_, readers)| readers.iter().copied())
}

/// Types that only occur inside of a union and share its object.
pub const INNER: &[&str] = &["ElicitationFormMode", "ElicitationUrlMode", "IdleStateUpdate"];

/// The reader of a type by its name in the catalogue.
pub fn reader(name: &str) -> Option<Reader> {
    readers().find(|(known, _)| *known == name).map(|(_, reader)| reader)
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
