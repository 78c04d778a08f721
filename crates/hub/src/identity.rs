//! Who a client is, and what it may do.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// The rights of a client. Each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// May list and follow sessions.
    Watch,
    /// May answer questions of agents.
    Answer,
    /// May create sessions, prompt, cancel and close.
    Drive,
    /// May delete sessions.
    Admin,
}

impl Role {
    /// All roles, from the least rights to the most.
    pub const ALL: [Role; 4] = [Role::Watch, Role::Answer, Role::Drive, Role::Admin];

    /// Its name in token files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Role::Watch => "watch",
            Role::Answer => "answer",
            Role::Drive => "drive",
            Role::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no [`Role`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownRole;

impl fmt::Display for UnknownRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the roles are watch, answer, drive and admin")
    }
}

impl std::error::Error for UnknownRole {}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(word: &str) -> Result<Role, UnknownRole> {
        Role::ALL.into_iter().find(|role| role.name() == word).ok_or(UnknownRole)
    }
}

/// The identity of a client. It comes from its token or its socket, never from a message.
///
/// ```
/// use attache_hub::{Identity, Role};
///
/// let phone = Identity::new("phone").tenant("home").role(Role::Answer).from("192.0.2.7:4000");
/// assert!(phone.may(Role::Watch) && !phone.may(Role::Drive));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    name: String,
    tenant: String,
    role: Role,
    from: Option<String>,
}

impl Identity {
    /// The tenant of identities without another one.
    pub const TENANT: &str = "default";

    /// An identity of the default tenant with all rights.
    pub fn new(name: impl Into<String>) -> Self {
        Identity { name: name.into(), tenant: Self::TENANT.to_owned(), role: Role::Admin, from: None }
    }

    /// Sets the tenant, whose sessions are the only ones that exist for this client.
    #[must_use]
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// Sets the rights.
    #[must_use]
    pub fn role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// Sets the address, for the record of decisions.
    #[must_use]
    pub fn from(mut self, address: impl Into<String>) -> Self {
        self.from = Some(address.into());
        self
    }

    /// Whether it has the rights of a role.
    pub fn may(&self, role: Role) -> bool {
        self.role >= role
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn tenant_name(&self) -> &str {
        &self.tenant
    }

    pub(crate) fn rights(&self) -> Role {
        self.role
    }

    /// Whether the client is on this machine, as far as its address says.
    pub(crate) fn is_local(&self) -> bool {
        let Some(address) = &self.from else { return true };
        address.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
    }

    pub(crate) fn address(&self) -> Option<&str> {
        self.from.as_deref()
    }
}
