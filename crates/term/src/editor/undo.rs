//! Undo of the line.

use std::collections::VecDeque;

/// Bounds by number and bytes; the oldest states are dropped.
const MAX_STATES: usize = 200;
const MAX_BYTES: usize = 4 << 20;

/// A text and its cursor.
type State = (String, usize);

/// States before each change. Letters typed in a row are one change.
#[derive(Debug, Default)]
pub(super) struct Undo {
    states: VecDeque<State>,
    bytes: usize,
    typing: bool,
}

impl Undo {
    /// Keeps the state before a change. `typed`: a letter of a word was typed.
    pub(super) fn changed(&mut self, before: State, typed: bool) {
        let continued = std::mem::replace(&mut self.typing, typed) && typed;
        if continued && !self.states.is_empty() {
            return;
        }
        self.bytes += before.0.len();
        self.states.push_back(before);
        while self.states.len() > MAX_STATES || (self.bytes > MAX_BYTES && self.states.len() > 1) {
            self.bytes -= self.states.pop_front().map_or(0, |(text, _)| text.len());
        }
    }

    /// Returns the state before the last change.
    pub(super) fn take_back(&mut self) -> Option<State> {
        self.typing = false;
        let state = self.states.pop_back()?;
        self.bytes -= state.0.len();
        Some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded() {
        let mut undo = Undo::default();
        for number in 0..1_000 {
            undo.changed(("x".repeat(100_000), number), false);
        }
        assert!(undo.bytes <= MAX_BYTES && undo.states.len() <= MAX_STATES);
        assert_eq!(undo.take_back().map(|(_, at)| at), Some(999));
        while undo.take_back().is_some() {}
        assert_eq!(undo.bytes, 0);
    }
}
