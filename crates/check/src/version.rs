//! The versions of the protocol that the checker judges.

use std::fmt;

use serde_json::Value;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Version 1.
    #[default]
    V1,
    /// Version 2, a draft.
    V2,
}

impl Version {
    /// Both versions.
    pub const ALL: [Version; 2] = [Version::V1, Version::V2];

    /// Its number on the wire.
    pub fn number(self) -> u64 {
        match self {
            Version::V1 => 1,
            Version::V2 => 2,
        }
    }

    /// The version with that number.
    pub fn of(number: u64) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.number() == number)
    }

    /// The member that names a config option.
    pub(crate) fn option_key(self) -> &'static str {
        match self {
            Version::V1 => "id",
            Version::V2 => "configId",
        }
    }

    /// The member that names an authentication method.
    pub(crate) fn auth_key(self) -> &'static str {
        match self {
            Version::V1 => "id",
            Version::V2 => "methodId",
        }
    }

    /// The method that logs in.
    pub(crate) fn login_method(self) -> &'static str {
        match self {
            Version::V1 => "authenticate",
            Version::V2 => "auth/login",
        }
    }

    /// The method that logs out.
    pub(crate) fn logout_method(self) -> &'static str {
        match self {
            Version::V1 => "logout",
            Version::V2 => "auth/logout",
        }
    }

    /// The version that a `protocolVersion` leads to. Later ones count as version 2, everything
    /// else as version 1.
    pub(crate) fn of_json(number: &Value) -> Version {
        if number.as_u64().is_some_and(|number| number > 1) { Version::V2 } else { Version::V1 }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}
