//! Why a scenario ends early.

use std::fmt;

/// The result of a step of a scenario.
pub type Step = Result<(), Stop>;

/// Why a scenario ends early. Rules of the scenario without a finding are then not exercised, for
/// this reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The peer closed the connection.
    PeerGone,
    /// A timeout, with the thing that was waited for.
    Deadline(String),
    /// The scenario does not apply to this peer.
    NotApplicable(String),
    /// The peer did not do what the scenario builds on.
    NotExercised(String),
    /// The conversation cannot continue: the peer's last message is unusable.
    Broken(String),
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::PeerGone => f.write_str("the peer closed the connection"),
            Stop::Deadline(what) => write!(f, "{what} did not come in time"),
            Stop::NotApplicable(why) | Stop::NotExercised(why) | Stop::Broken(why) => f.write_str(why),
        }
    }
}
