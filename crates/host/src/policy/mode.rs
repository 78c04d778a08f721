//! Modes: what happens to effects that no rule decides.

use std::fmt;
use std::path::PathBuf;

use super::{Confined, Effect};

/// The decision of a mode for one effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stance {
    /// It is allowed.
    Allow,
    /// A person is asked.
    Ask,
    /// It is denied, with this reason.
    Deny(&'static str),
}

/// What a mode decides for each kind of effect, for clients and for agents alike.
///
/// Writes to protected files are never allowed by a mode: they are asked about, or denied.
#[derive(Clone, Copy, Debug)]
pub struct Mode {
    /// The name in flags and files.
    pub name: &'static str,
    /// Reading inside the session's directories, where the agent asks for it.
    pub read: Stance,
    /// Reading inside the session's directories through this side, without a permission request.
    pub read_direct: Stance,
    /// Reading elsewhere.
    pub read_outside: Stance,
    /// Writing inside the session's directories.
    pub write: Stance,
    /// Deleting and moving inside the session's directories.
    pub delete: Stance,
    /// Changing files elsewhere.
    pub write_outside: Stance,
    /// Running a command with a read-only view and no network.
    pub run_read_only: Stance,
    /// Running a command that is confined to the session's directories.
    pub run_confined: Stance,
    /// Running a command that is not confined, inside the session's directories.
    pub run: Stance,
    /// Running a command elsewhere.
    pub run_outside: Stance,
    /// Connecting to a host of the Internet.
    pub connect: Stance,
    /// Connecting to this machine or its local networks.
    pub connect_near: Stance,
    /// Calling a tool that only the agent knows.
    pub tool: Stance,
    /// Leaving a mode that allows less.
    pub switch_mode: Stance,
}

const DENIED: Stance = Stance::Deny("the mode is deny-all");

impl Mode {
    /// Everything is denied.
    pub const DENY_ALL: Mode = Mode { name: "deny-all", ..Mode::all(DENIED) };
    /// A person is asked about everything, except for reads that an agent makes through this side.
    pub const ASK: Mode = Mode {
        // PERM-05
        name: "ask",
        read_direct: Stance::Allow,
        run_read_only: Stance::Allow,
        ..Mode::all(Stance::Ask)
    };
    /// Reading inside the session's directories is approved, also by commands that can only read.
    pub const APPROVE_READS: Mode = Mode { name: "approve-reads", read: Stance::Allow, ..Mode::ASK };
    /// Everything is approved, except for writes to protected files.
    pub const APPROVE_ALL: Mode = Mode { name: "approve-all", ..Mode::all(Stance::Allow) };

    /// The modes of a client, the stricter first.
    pub const CLIENT: [Mode; 4] = [Mode::DENY_ALL, Mode::ASK, Mode::APPROVE_READS, Mode::APPROVE_ALL];

    /// The same for every effect.
    pub const fn all(stance: Stance) -> Mode {
        Mode {
            name: "",
            read: stance,
            read_direct: stance,
            read_outside: stance,
            write: stance,
            delete: stance,
            write_outside: stance,
            run_read_only: stance,
            run_confined: stance,
            run: stance,
            run_outside: stance,
            connect: stance,
            connect_near: stance,
            tool: stance,
            switch_mode: stance,
        }
    }

    /// The place among the modes of a client; the stricter is the smaller.
    fn rank(&self) -> usize {
        Mode::CLIENT.iter().position(|mode| mode.name == self.name).unwrap_or_default()
    }

    /// The stricter of two modes of a client.
    #[must_use]
    pub fn stricter(self, other: Mode) -> Mode {
        if self.rank() <= other.rank() { self } else { other }
    }

    /// The decision for an effect. `direct`: the agent acts without a permission request.
    pub(super) fn stance(&self, effect: &Effect, direct: bool, roots: &[PathBuf]) -> Stance {
        let inside = effect.is_inside(roots);
        let stance = match effect {
            Effect::Read(_) if inside && direct => self.read_direct,
            Effect::Read(_) if inside => self.read,
            Effect::Read(_) => self.read_outside,
            Effect::Write { .. } | Effect::Keep(_) if inside => self.write,
            Effect::Delete(_) | Effect::Rename { .. } if inside => self.delete,
            Effect::Write { .. } | Effect::Keep(_) | Effect::Delete(_) | Effect::Rename { .. } => {
                self.write_outside
            }
            // Nothing is known but the name: it may be changed.
            Effect::Touch(_) if inside => self.write.max(self.tool),
            Effect::Touch(_) => self.write_outside,
            Effect::Run(run) => match run.confined {
                Confined::ReadOnly => self.run_read_only,
                _ if !roots.is_empty() && !run.cwd.is_inside(roots) => self.run_outside,
                Confined::Workspace => self.run_confined,
                Confined::No => self.run,
            },
            Effect::Connect(to) if to.is_near => self.connect_near,
            Effect::Connect(_) => self.connect,
            Effect::Tool(_) => self.tool,
            Effect::SwitchMode(_) => self.switch_mode,
        };
        if effect.is_protected() { stance.max(Stance::Ask) } else { stance }
    }
}

impl Default for Mode {
    fn default() -> Self {
        Mode::ASK
    }
}

impl PartialEq for Mode {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Mode {}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.replace('_', "-");
        let mode = Mode::CLIENT.into_iter().find(|mode| mode.name == name);
        mode.ok_or_else(|| {
            format!("no mode \"{text}\"; available: {}", Mode::CLIENT.map(|mode| mode.name).join(", "))
        })
    }
}
