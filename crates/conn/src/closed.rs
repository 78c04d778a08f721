//! The end of a connection.

use crate::Side;
use std::fmt;
use std::ops::Deref;
use std::process::ExitStatus;
use std::sync::Arc;

/// The end of a connection, cheap to clone. Derefs to [`Ending`], which has the details.
///
/// ```
/// use attache_conn::{Closed, Reason};
///
/// fn report(closed: &Closed) {
///     match &closed.reason {
///         Reason::Eof => println!("exit status {:?}, stderr: {}", closed.exit, closed.stderr_tail),
///         reason => println!("{reason:?}"),
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Closed(Arc<Ending>);

/// Details about the end of a connection.
///
/// Example: [`Closed`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Ending {
    /// The cause.
    pub reason: Reason,
    /// The exit status of the peer, if it was our child and has exited.
    pub exit: Option<ExitStatus>,
    /// The last lines of our child's stderr.
    pub stderr_tail: String,
    /// Lines that the peer wrote to its stdout and that are no messages, if they were recorded.
    pub stdout: String,
    /// Which end we are.
    pub side: Side,
}

/// Cause of the end of a connection.
///
/// Example: [`Closed`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The peer closed its end after a complete line.
    Eof,
    /// The peer closed its end within a line, whose beginning this is.
    HalfLine(String),
    /// Reading or writing failed.
    Io(String),
    /// We closed it.
    LocalClose,
    /// The driver was dropped before the end.
    Dropped,
}

impl Closed {
    pub(crate) fn new(side: Side, reason: Reason) -> Self {
        Closed(Arc::new(Ending {
            reason,
            exit: None,
            stderr_tail: String::new(),
            stdout: String::new(),
            side,
        }))
    }

    pub(crate) fn with_child(&self, exit: Option<ExitStatus>, stderr_tail: String) -> Self {
        let (reason, stdout) = (self.reason.clone(), self.stdout.clone());
        Closed(Arc::new(Ending { reason, exit, stderr_tail, stdout, side: self.side }))
    }

    /// Adds lines that the peer wrote to its stdout and that are no messages.
    pub fn with_stdout(&self, stdout: String) -> Self {
        let (reason, stderr_tail) = (self.reason.clone(), self.stderr_tail.clone());
        Closed(Arc::new(Ending { reason, exit: self.exit, stderr_tail, stdout, side: self.side }))
    }
}

impl Deref for Closed {
    type Target = Ending;

    fn deref(&self) -> &Ending {
        &self.0
    }
}

impl Ending {
    /// Displays the cause without the stderr of the child.
    pub fn cause(&self) -> impl fmt::Display + '_ {
        Cause(self)
    }

    /// Whether we closed the connection, so that no explanation is needed.
    fn is_ours(&self) -> bool {
        matches!(self.reason, Reason::LocalClose | Reason::Dropped)
    }
}

struct Cause<'a>(&'a Ending);

impl Deref for Cause<'_> {
    type Target = Ending;

    fn deref(&self) -> &Ending {
        self.0
    }
}

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peer = self.side.peer();
        match (&self.reason, self.exit) {
            (Reason::LocalClose, _) => f.write_str("the connection was closed on this side")?,
            (Reason::Dropped, _) => f.write_str("the connection was dropped on this side")?,
            (Reason::Io(error), None) => write!(f, "the connection to the {peer} failed: {error}")?,
            (_, None) => write!(f, "the {peer} closed the connection")?,
            (_, Some(exit)) => match exit.code() {
                Some(code) => write!(f, "the {peer} ended (exit code {code})")?,
                None => write!(f, "the {peer} ended ({exit})")?,
            },
        }
        if let Reason::HalfLine(line) = &self.reason {
            write!(f, " in the middle of a line: {line:?}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause())?;
        if self.is_ours() {
            return Ok(());
        }
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr_tail)] {
            if !text.trim().is_empty() {
                write!(f, "; {name}: {}", text.trim())?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Closed {}
