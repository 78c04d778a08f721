//! Children on a pseudo terminal, for programs that behave differently there.

use std::fs::File;
use std::io::{self, Write};
use std::process::{ExitStatus, Stdio};

use super::guard::OutputSink;
use super::unix::{self, Source};
use super::{ChildGuard, Command};
use crate::sys::pty;

impl Command {
    /// Starts the program with a new pseudo terminal as its stdin, stdout and stderr, leader of a
    /// session of its own. Needs no runtime.
    ///
    /// `on_event` gets what the program and its descendants print, as it comes, and last of all how
    /// the program ended, on the thread that watches the child: while it runs, nothing is read, and
    /// a program that prints more has to wait. All of that has happened when [`ChildGuard::wait`]
    /// returns. Line feeds are not turned into CR LF.
    ///
    /// There is no end of input on a terminal that would ask the program to leave, so
    /// [`grace`](Command::grace) is time lost; set it to zero, unless the caller writes to the
    /// [`Pty`].
    ///
    /// # Errors
    /// As [`spawn`](Command::spawn), except that there may be no runtime.
    ///
    /// ```
    /// use attache_conn::process::{Command, PtyEvent};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let (send, receive) = std::sync::mpsc::channel();
    /// let child = Command::new("echo").arg("hello").spawn_pty(80, 24, move |event| {
    ///     if let PtyEvent::Output(bytes) = event {
    ///         let _ = send.send(bytes.to_vec());
    ///     }
    /// })?;
    /// // The sender is dropped with the thread that watches the child.
    /// let output: Vec<u8> = receive.iter().flatten().collect();
    /// assert_eq!(output, b"hello\n");
    /// # drop(child);
    /// # Ok(())
    /// # }
    /// ```
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
        let sink = OutputSink::of_terminal(Box::new(on_event));
        let output = Some(master.try_clone()?);
        let guard = unix::spawn_guarded(self, Source { output, terminal: Some(slave), sink })?;
        Ok(PtyChild { pty: Pty(master), guard })
    }
}

/// An event of a child's terminal.
///
/// Example: [`Command::spawn_pty`](super::Command::spawn_pty).
#[derive(Clone, Copy, Debug)]
pub enum PtyEvent<'a> {
    /// Output, which may begin and end within a character.
    Output(&'a [u8]),
    /// The program and all its descendants have ended.
    Ended(ExitStatus),
}

/// A program on a terminal.
///
/// Example: [`Command::spawn_pty`](super::Command::spawn_pty).
#[derive(Debug)]
pub struct PtyChild {
    /// The terminal.
    pub pty: Pty,
    /// Keeps the child alive: dropping this ends it.
    pub guard: ChildGuard,
}

/// Our end of a child's terminal.
///
/// Example: [`Command::spawn_pty`](super::Command::spawn_pty).
#[derive(Debug)]
pub struct Pty(File);

impl Pty {
    /// Writes input and returns the number of bytes taken; [`io::ErrorKind::WouldBlock`] if the
    /// program does not read and the buffer is full.
    ///
    /// # Errors
    /// When there is no room, or the program has ended.
    pub fn input(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.0).write(bytes)
    }

    /// Changes the size; programs on the terminal get `SIGWINCH`.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn resize(&self, columns: u16, rows: u16) -> io::Result<()> {
        pty::set_size(&self.0, columns, rows)
    }
}
