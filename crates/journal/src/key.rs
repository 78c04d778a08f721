//! Names of sessions.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};

/// Tenant and id of a session.
///
/// The tenant is part of the name, so a session of another tenant cannot be reached by its id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    tenant: Arc<str>,
    session: Arc<str>,
}

impl SessionKey {
    /// The longest tenant and the longest session id, in bytes.
    pub const MAX_BYTES: usize = 256;

    /// Creates a key.
    ///
    /// # Errors
    /// [`Error::InvalidKey`] if a part is empty, longer than [`Self::MAX_BYTES`] or contains a
    /// control character.
    pub fn new(tenant: impl AsRef<str>, session: impl AsRef<str>) -> Result<Self> {
        let (tenant, session) = (tenant.as_ref(), session.as_ref());
        check("tenant", tenant)?;
        check("session id", session)?;
        Ok(SessionKey { tenant: tenant.into(), session: session.into() })
    }

    /// The tenant.
    pub fn tenant(&self) -> &str {
        &self.tenant
    }

    /// The session's id, unique within the tenant.
    pub fn session(&self) -> &str {
        &self.session
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.session)
    }
}

fn check(part: &'static str, text: &str) -> Result<()> {
    let reason = if text.is_empty() {
        "it is empty"
    } else if text.len() > SessionKey::MAX_BYTES {
        "it is longer than 256 bytes"
    } else if text.chars().any(char::is_control) {
        "it contains a control character"
    } else {
        return Ok(());
    };
    Err(Error::InvalidKey { part, reason })
}
