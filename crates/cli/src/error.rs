//! Why a command failed: what happened, where to look, what to do, and the exit code that scripts read.

use std::fmt;

/// The result of everything in this program.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// What kind of failure, as scripts tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The command line or a file of settings is wrong.
    Usage,
    /// The agent, the protocol, the system.
    Runtime,
    /// A time limit ran out.
    Timeout,
    /// There is no such session.
    NoSession,
    /// Everything that the agent asked for was denied.
    PermissionDenied,
    /// Somebody would have to be asked and nobody can be.
    PromptUnavailable,
    /// SIGINT or SIGTERM.
    Interrupted,
}

impl Kind {
    /// The exit code of the program.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Kind::Runtime => 1,
            Kind::Usage => 2,
            Kind::Timeout => 3,
            Kind::NoSession => 4,
            Kind::PermissionDenied | Kind::PromptUnavailable => 5,
            Kind::Interrupted => 130,
        }
    }

    /// The name in JSON and in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Usage => "USAGE",
            Kind::Runtime => "RUNTIME",
            Kind::Timeout => "TIMEOUT",
            Kind::NoSession => "NO_SESSION",
            Kind::PermissionDenied => "PERMISSION_DENIED",
            Kind::PromptUnavailable => "PERMISSION_PROMPT_UNAVAILABLE",
            Kind::Interrupted => "INTERRUPTED",
        }
    }

    pub(crate) fn from_name(name: &str) -> Kind {
        const ALL: [Kind; 6] = [
            Kind::Usage,
            Kind::Timeout,
            Kind::NoSession,
            Kind::PermissionDenied,
            Kind::PromptUnavailable,
            Kind::Interrupted,
        ];
        ALL.into_iter().find(|kind| kind.name() == name).unwrap_or(Kind::Runtime)
    }

    /// The code of the JSON-RPC error that `--format json` prints.
    pub(crate) fn json_code(self) -> i32 {
        match self {
            Kind::NoSession => -32002,
            Kind::Timeout => -32070,
            Kind::PermissionDenied => -32071,
            Kind::PromptUnavailable => -32072,
            Kind::Usage => -32602,
            Kind::Runtime => -32603,
            Kind::Interrupted => -32800,
        }
    }
}

/// A failure, as it is shown.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    /// A finer name for scripts, for example `AGENT_SPAWN_ENOENT`.
    pub(crate) detail: Option<String>,
    pub(crate) message: String,
    /// What to do about it, a line each.
    pub(crate) hints: Vec<String>,
    /// The error that the agent answered with, if it was one.
    pub(crate) answered: Option<attache::ErrorObject>,
    /// Whether the user has seen it already, as a message of the agent.
    pub(crate) shown: bool,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Failure {
            kind,
            detail: None,
            message: message.to_string(),
            hints: Vec::new(),
            answered: None,
            shown: false,
        }
    }

    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Failure::new(Kind::Usage, message)
    }

    pub(crate) fn runtime(message: impl fmt::Display) -> Self {
        Failure::new(Kind::Runtime, message)
    }

    pub(crate) fn interrupted() -> Self {
        Failure::new(Kind::Interrupted, "interrupted")
    }

    /// The output cannot be written. Whoever closed it knows, anything else is told.
    pub(crate) fn unwritten(error: &std::io::Error) -> Self {
        let mut failure =
            Failure::runtime(format_args!("cannot write the output: {error}")).detail("OUTPUT_CLOSED");
        failure.shown = error.kind() == std::io::ErrorKind::BrokenPipe;
        failure
    }

    /// Whether it is about the output itself.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.detail.as_deref() == Some("OUTPUT_CLOSED")
    }

    #[must_use]
    pub(crate) fn detail(mut self, detail: &str) -> Self {
        self.detail = Some(detail.to_owned());
        self
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Says where something went wrong.
    #[must_use]
    pub(crate) fn context(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<attache::Error> for Failure {
    fn from(error: attache::Error) -> Self {
        let mut failure = Failure::runtime(&error);
        match error {
            attache::Error::Refused(answer) => {
                if answer.code == attache::code::AUTH_REQUIRED {
                    failure.detail = Some("AUTH_REQUIRED".to_owned());
                }
                failure.message = answer.message.clone();
                failure.answered = Some(answer);
            }
            attache::Error::Closed(_) => failure.detail = Some("AGENT_DISCONNECTED".to_owned()),
            attache::Error::Cancelled => failure = Failure::interrupted(),
            _ => {}
        }
        failure
    }
}

/// Errors of the system, with what was being done.
pub(crate) trait Context<T> {
    fn context(self, what: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Failure::runtime(format_args!("{what}: {error}")))
    }
}
