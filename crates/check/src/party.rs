//! The two sides of a conversation.

use std::fmt;

/// Who says something, or who is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// The program that does the work.
    Agent,
    /// The program that a person looks at.
    Client,
}

impl Party {
    /// The one on the other side.
    pub fn other(self) -> Party {
        match self {
            Party::Agent => Party::Client,
            Party::Client => Party::Agent,
        }
    }

    /// `agent` or `client`, as recordings write it.
    pub fn name(self) -> &'static str {
        match self {
            Party::Agent => "agent",
            Party::Client => "client",
        }
    }

    /// The party of that name.
    pub fn of(name: &str) -> Option<Party> {
        match name {
            "agent" => Some(Party::Agent),
            "client" => Some(Party::Client),
            _ => None,
        }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
