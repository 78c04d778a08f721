//! The types of the official crate by name.

use attache_testkit::registry::{Reader, read_and_write};

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

/// Every type of version 1 that the official schema names and the crate exports. The crate exports no types for
/// proxies.
pub const V1: &[(&str, Reader)] = attache_wire::for_each_v1_type!(readers_of_v1);

/// Every type of version 2.
pub const V2: &[(&str, Reader)] = attache_wire::for_each_v2_type!(readers_of_v2);
