//! The four modes of a session. Each selects the tools for the model and a mode of the permission
//! engine ([`attache_host::policy`]).

use std::fmt;

use attache::wire::v1::{SessionMode, SessionModeState};
use attache_host::policy::{self, Stance};

/// How much the agent may do without a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Asks before every change and every command.
    #[default]
    Ask,
    /// Only reads, and makes a plan.
    Plan,
    /// Edits files of the project without asking; asks for commands.
    Code,
    /// Asks only before effects outside of the project.
    Auto,
}

impl Mode {
    /// All modes, in display order.
    pub const ALL: [Mode; 4] = [Mode::Ask, Mode::Plan, Mode::Code, Mode::Auto];

    /// The id on the wire, in flags and in files.
    pub const fn id(self) -> &'static str {
        match self {
            Mode::Ask => "ask",
            Mode::Plan => "plan",
            Mode::Code => "code",
            Mode::Auto => "auto",
        }
    }

    /// The mode of this id.
    pub fn from_id(id: &str) -> Option<Self> {
        Mode::ALL.into_iter().find(|mode| mode.id() == id)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Mode::Ask => "Ask",
            Mode::Plan => "Plan",
            Mode::Code => "Code",
            Mode::Auto => "Auto-approve",
        }
    }

    pub(crate) const fn about(self) -> &'static str {
        match self {
            Mode::Ask => "Asks before every change and every command",
            Mode::Plan => "Reads and searches only, and makes a plan",
            Mode::Code => "Edits the project's files without asking; asks before commands",
            Mode::Auto => "Works without asking inside the project; asks before it leaves it",
        }
    }

    /// The mode of the permission engine.
    pub(crate) const fn policy(self) -> policy::Mode {
        const ASK: policy::Mode = policy::Mode { name: "ask", read: Stance::Allow, ..policy::Mode::ASK };
        const PLAN_ONLY: Stance = Stance::Deny(
            "not possible in plan mode, which only reads; describe it in the plan instead, or call `leave_plan_mode` to ask the user for \
             another mode",
        );
        match self {
            Mode::Ask => ASK,
            Mode::Plan => policy::Mode {
                name: "plan",
                write: PLAN_ONLY,
                delete: PLAN_ONLY,
                write_outside: PLAN_ONLY,
                run_confined: PLAN_ONLY,
                run: PLAN_ONLY,
                run_outside: PLAN_ONLY,
                ..ASK
            },
            Mode::Code => policy::Mode { name: "code", write: Stance::Allow, ..ASK },
            Mode::Auto => policy::Mode {
                name: "auto",
                write: Stance::Allow,
                delete: Stance::Allow,
                run_confined: Stance::Allow,
                tool: Stance::Allow,
                ..ASK
            },
        }
    }

    /// What the session offers.
    // MODE-01
    pub(crate) fn state(self) -> SessionModeState {
        let mode = |mode: Mode| SessionMode::new(mode.id(), mode.name()).description(mode.about().to_owned());
        SessionModeState::new(self.id(), Mode::ALL.map(mode).to_vec())
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Mode::from_id(text).ok_or_else(|| format!("no mode \"{text}\"; available: ask, plan, code, auto"))
    }
}
