//! Children on a pseudo terminal: for programs that behave differently when a person seems to watch.

use std::fs::File;
use std::io::{self, Write};
use std::process::{ExitStatus, Stdio};

use super::guard::Notes;
use super::unix::{self, Source};
use super::{ChildGuard, Command};
use crate::sys::pty;

impl Command {
    /// Starts the program with a new pseudo terminal as its stdin, stdout and stderr, leader of a session of its own. Needs
    /// no runtime.
    ///
    /// `on_event` gets what the program and its descendants print, as it comes, and last of all how the program ended, on the
    /// thread that watches the child: while it runs, nothing is read, and a program that prints more has to wait. All
    /// of that has happened when [`ChildGuard::wait`] returns. Line feeds are not turned into CR LF.
    ///
    /// There is no end of input on a terminal that would ask the program to leave, so [`grace`](Command::grace) is time lost; set it
    /// to zero, unless somebody writes to the [`Pty`].
    ///
    /// # Errors
    /// As [`spawn`](Command::spawn), except that there may be no runtime.
    pub fn spawn_pty(
        mut self,
        columns: u16,
        rows: u16,
        on_event: impl FnMut(PtyEvent<'_>) + Send + 'static,
    ) -> io::Result<PtyChild> {
        let (master, slave) = pty::open(columns, rows)?;
        for stream in
            [std::process::Command::stdin, std::process::Command::stdout, std::process::Command::stderr]
        {
            stream(&mut self.inner, Stdio::from(slave.try_clone()?));
        }
        let notes = Notes::of_terminal(Box::new(on_event));
        let output = Some(master.try_clone()?);
        let guard = unix::spawn_guarded(self, Source { output, terminal: Some(slave), notes })?;
        Ok(PtyChild { pty: Pty(master), guard })
    }
}

/// What happens on a child's terminal.
#[derive(Clone, Copy, Debug)]
pub enum PtyEvent<'a> {
    /// Something was printed. It may begin and end within a character.
    Output(&'a [u8]),
    /// The program and everything that it started are gone, and nothing will come any more.
    Ended(ExitStatus),
}

/// A program on a terminal.
#[derive(Debug)]
pub struct PtyChild {
    /// The terminal.
    pub pty: Pty,
    /// Keeps the child alive: dropping this ends it.
    pub guard: ChildGuard,
}

/// Our end of a child's terminal.
#[derive(Debug)]
pub struct Pty(File);

impl Pty {
    /// Types something. Says how much of it was taken; [`io::ErrorKind::WouldBlock`] when the program reads nothing and there is no
    /// more room.
    ///
    /// # Errors
    /// When there is no room, or the program has ended.
    pub fn input(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    /// Changes the size; the programs on it are told by `SIGWINCH`.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn resize(&self, columns: u16, rows: u16) -> io::Result<()> {
        pty::set_size(&self.0, columns, rows)
    }
}
