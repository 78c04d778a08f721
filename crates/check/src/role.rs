//! The two roles of the protocol.

use std::fmt;

/// A role of the protocol: the sender of a message, or the peer under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The program that does the work.
    Agent,
    /// The program that the user sees.
    Client,
}

impl Role {
    /// Both roles.
    pub const ALL: [Role; 2] = [Role::Agent, Role::Client];

    /// The opposite role.
    pub fn other(self) -> Role {
        match self {
            Role::Agent => Role::Client,
            Role::Client => Role::Agent,
        }
    }

    /// `agent` or `client`, as in recordings.
    pub fn name(self) -> &'static str {
        match self {
            Role::Agent => "agent",
            Role::Client => "client",
        }
    }

    /// The role with that name.
    pub fn of(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
