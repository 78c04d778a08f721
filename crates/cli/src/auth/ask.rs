//! Asks in a plain terminal: a line, a secret, a choice.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use attache_term::device;
use attache_term::dialog::{self, DialogKeys};
use attache_term::picker::{Picker, Row};
use attache_term::render::style::Line;

use crate::error::{Context as _, Failure, Kind, Result};

/// Whether a user can be asked. Questions go to stderr, so that stdout has only results.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Reads a line without its end; `None` at the end of the input.
pub(crate) async fn line(question: &str) -> Result<Option<String>> {
    let question = question.to_owned();
    let read = move || {
        prompt(&question)?;
        let mut text = String::new();
        match io::stdin().lock().read_line(&mut text)? {
            0 => Ok(None),
            _ => Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned())),
        }
    };
    blocking(read).await
}

/// A line that is not shown.
pub(crate) async fn secret(question: &str) -> Result<Option<String>> {
    let question = question.to_owned();
    blocking(move || {
        // Hidden before the question is there: some answer quickly.
        let hidden = Hidden::begin()?;
        prompt(&question)?;
        let read = read_hidden(&mut io::stdin().lock());
        drop(hidden);
        let _ = writeln!(io::stderr().lock());
        read
    })
    .await
}

/// Asks a yes-or-no question; anything but yes is no.
pub(crate) async fn yes(question: &str) -> Result<bool> {
    let answer = line(&format!("{question} [y/N] ")).await?.unwrap_or_default();
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// The number of one of several, which have been listed; `None` for none.
pub(crate) async fn choice(count: usize) -> Result<Option<usize>> {
    loop {
        let Some(answer) = line(&format!("Which one? [1-{count}, empty to cancel] ")).await? else {
            return Ok(None);
        };
        let answer = answer.trim();
        if answer.is_empty() {
            return Ok(None);
        }
        if let Some(at) = answer.parse::<usize>().ok().filter(|at| (1..=count).contains(at)) {
            return Ok(Some(at - 1));
        }
    }
}

/// Lets the user choose from a list with a search, below lines that explain it. `None` for none.
pub(crate) async fn pick<T: Clone>(title: &str, intro: &[Line], rows: Vec<Row<T>>) -> Result<Option<T>> {
    let mut picker = Picker::new(title, rows);
    dialog::pick(&mut DialogKeys::default(), intro, &mut picker, device::look()).await.context("the terminal")
}

fn prompt(question: &str) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()
}

/// Reading a terminal cannot be given up: the thread stays, and ends with the process.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await.context("the terminal")? {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            Err(Failure::new(Kind::Interrupted, "interrupted"))
        }
        answer => answer.context("the terminal"),
    }
}

/// Turns the echo of the terminal off until it is dropped.
struct Hidden;

impl Hidden {
    fn begin() -> io::Result<Hidden> {
        crossterm::terminal::enable_raw_mode()?;
        Ok(Hidden)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

/// Reads keys as they come, since the terminal does no editing now.
fn read_hidden(from: &mut impl io::Read) -> io::Result<Option<String>> {
    let mut text = Vec::new();
    // Bytes come as they are typed; standard input is buffered.
    loop {
        let mut byte = [0];
        if from.read(&mut byte)? == 0 {
            return Ok(None);
        }
        match byte[0] {
            b'\r' | b'\n' => return Ok(Some(String::from_utf8_lossy(&text).into_owned())),
            3 => return Err(io::ErrorKind::Interrupted.into()),
            4 if text.is_empty() => return Ok(None),
            // A letter of several bytes goes as a whole.
            8 | 127 => while text.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            21 => text.clear(),
            byte if byte >= b' ' => text.push(byte),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn keys_of_a_hidden_line() {
        let read = |keys: &[u8]| read_hidden(&mut &*keys);
        assert_eq!(read(b"abc\r").unwrap().as_deref(), Some("abc"));
        assert_eq!(read("x\u{e9}\u{7f}y\r".as_bytes()).unwrap().as_deref(), Some("xy"));
        assert_eq!(read(b"wrong\x15right\n").unwrap().as_deref(), Some("right"));
        assert_eq!(read(b"\x04").unwrap(), None);
        assert_eq!(read(b"ab\x03").unwrap_err().kind(), io::ErrorKind::Interrupted);
    }
}
