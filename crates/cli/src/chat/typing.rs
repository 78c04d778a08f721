//! Typing into a command that the agent runs in a terminal of the client.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::app::App;

impl App {
    /// Ctrl-T: the newest command of the agent gets the keys.
    pub(super) fn start_typing(&mut self) {
        match self.transcript.terminal_outputs.running() {
            Some((number, _)) => self.typing = Some(number),
            None => self.hint = Some("no command of the agent runs in a terminal of the chat".to_owned()),
        }
    }

    pub(super) fn type_key(&mut self, number: u64, key: KeyEvent) {
        if key.code == KeyCode::Char('t') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return self.stop_typing();
        }
        let bytes = bytes(key);
        if !bytes.is_empty() {
            self.type_bytes(number, &bytes);
        }
    }

    pub(super) fn type_bytes(&mut self, number: u64, bytes: &[u8]) {
        if !self.transcript.terminal_outputs.typed(number, bytes) {
            self.hint = Some("the command does not take keys now".to_owned());
        }
    }

    /// Returns the keys to the prompt when the command has ended.
    pub(super) fn check_typing(&mut self) {
        if self.typing.is_some() && self.typed_command().is_none() {
            self.stop_typing();
        }
    }

    /// The command that gets the keys.
    pub(super) fn typed_command(&self) -> Option<String> {
        let outputs = self.transcript.terminal_outputs.lock();
        let output = outputs.by_number(self.typing?)?;
        (!output.ended).then(|| output.command.clone())
    }

    fn stop_typing(&mut self) {
        self.typing = None;
        if !self.questions.is_empty() {
            self.writing = !self.editor.is_empty();
            // Keys that were meant for the command must not answer.
            self.asked = Some(Instant::now());
        }
    }
}

/// What a terminal sends for a key.
fn bytes(key: KeyEvent) -> Vec<u8> {
    let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    let sequence: &[u8] = match key.code {
        KeyCode::Char(c) => {
            let mut bytes = Vec::new();
            if key.modifiers.contains(KeyModifiers::ALT) {
                bytes.push(0x1b);
            }
            match c {
                'a'..='z' | 'A'..='Z' | '[' | '\\' | ']' | '^' | '_' if ctrl => bytes.push(c as u8 & 0x1f),
                ' ' | '@' if ctrl => bytes.push(0),
                c => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
            return bytes;
        }
        KeyCode::Enter => b"\r",
        KeyCode::Tab => b"\t",
        KeyCode::BackTab => b"\x1b[Z",
        KeyCode::Backspace => b"\x7f",
        KeyCode::Esc => b"\x1b",
        KeyCode::Up => b"\x1b[A",
        KeyCode::Down => b"\x1b[B",
        KeyCode::Right => b"\x1b[C",
        KeyCode::Left => b"\x1b[D",
        KeyCode::Home => b"\x1b[H",
        KeyCode::End => b"\x1b[F",
        KeyCode::Delete => b"\x1b[3~",
        KeyCode::Insert => b"\x1b[2~",
        KeyCode::PageUp => b"\x1b[5~",
        KeyCode::PageDown => b"\x1b[6~",
        _ => b"",
    };
    sequence.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sent_as_a_terminal_sends_them() {
        let key = |code, modifiers| bytes(KeyEvent::new(code, modifiers));
        assert_eq!(key(KeyCode::Char('é'), KeyModifiers::NONE), "é".as_bytes());
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), [3]);
        assert_eq!(key(KeyCode::Char('b'), KeyModifiers::ALT), b"\x1bb");
        assert_eq!(key(KeyCode::Enter, KeyModifiers::NONE), b"\r");
        assert_eq!(key(KeyCode::Up, KeyModifiers::SHIFT), b"\x1b[A");
        assert_eq!(key(KeyCode::F(1), KeyModifiers::NONE), b"");
    }
}
