//! The types of the official crate by name.

use attache_testkit::registry::{Reader, read_and_write};

/// The types of the official crate that the list of Attaché's names.
mod v1 {
    pub use agent_client_protocol_schema::ProtocolVersion;
    pub use agent_client_protocol_schema::v1::*;
}

macro_rules! readers {
    (stable [$($stable:ident,)+] unstable [$($unstable:ident,)+] proxy $proxy:tt drafts $drafts:tt) => {
        readers![$($stable,)+ $($unstable,)+ ElicitationFormMode, ElicitationUrlMode, IdleStateUpdate]
    };
    ($($name:ident),+) => {
        &[$((stringify!($name), read_and_write::<v1::$name> as Reader)),+]
    };
}

/// Every type that the official schema names and the crate exports. The crate exports no types for proxies.
pub const READERS: &[(&str, Reader)] = attache_wire::for_each_v1_type!(readers);

/// The reader of a type.
pub fn reader(name: &str) -> Option<Reader> {
    READERS.iter().find(|(known, _)| *known == name).map(|(_, reader)| *reader)
}
