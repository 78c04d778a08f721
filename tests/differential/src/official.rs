//! The types of the official crate by name.

use attache_testkit::registry::Reader;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The types of the official crate that the list of Attaché's names.
mod v1 {
    pub use agent_client_protocol_schema::ProtocolVersion;
    pub use agent_client_protocol_schema::v1::*;
}

/// The same of version 2.
mod v2 {
    pub use agent_client_protocol_schema::ProtocolVersion;
    pub use agent_client_protocol_schema::v2::*;
}

/// Reads a text as a type of the crate and writes the value.
///
/// # Panics
/// The reader of the usual form does not agree with `serde_json`.
fn read_and_write<T: Serialize + DeserializeOwned>(text: &str) -> Result<String, String> {
    let value: T = serde_json::from_str(text).map_err(|error| error.to_string())?;
    // Some types have maps without an order, so the values are compared and not the texts.
    let usual = attache_wire::from_text::<T>(text).map(|value| serde_json::to_value(value).ok());
    assert_eq!(usual.ok(), Some(serde_json::to_value(&value).ok()), "{text}");
    serde_json::to_string(&value).map_err(|error| format!("cannot be written: {error}"))
}

macro_rules! readers {
    ($version:ident: $($name:ident),+) => {
        &[$((stringify!($name), read_and_write::<$version::$name> as Reader)),+]
    };
}

macro_rules! readers_of_v1 {
    (stable [$($stable:ident,)+] unstable [$($unstable:ident,)+] proxy $proxy:tt drafts $drafts:tt) => {
        readers![v1: $($stable,)+ $($unstable,)+ ElicitationFormMode, ElicitationUrlMode]
    };
}

macro_rules! readers_of_v2 {
    (stable [$($stable:ident,)+] unstable [$($unstable:ident,)+] proxy $proxy:tt) => {
        readers![v2: $($stable,)+ $($unstable,)+ ElicitationFormMode, ElicitationUrlMode]
    };
}

/// Every type of version 1 that the official schema names and the crate exports. The crate exports
/// no types for proxies.
pub const V1: &[(&str, Reader)] = attache_wire::for_each_v1_type!(readers_of_v1);

/// Every type of version 2.
pub const V2: &[(&str, Reader)] = attache_wire::for_each_v2_type!(readers_of_v2);
