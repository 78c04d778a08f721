//! Long pastes, shown as a chip while the text is edited.

/// A paste with more lines or characters becomes a chip.
const MAX_LINES: usize = 10;
const MAX_CHARS: usize = 2_000;

/// The pastes of the text, each with its chip.
#[derive(Debug, Default)]
pub(super) struct Pastes {
    /// Whether long pastes become chips.
    pub(super) fold: bool,
    kept: Vec<(String, String)>,
}

impl Pastes {
    /// Keeps a long text and returns its chip; `None` for a short one.
    pub(super) fn chip(&mut self, text: &str) -> Option<String> {
        let lines = text.lines().count();
        if !self.fold || (lines <= MAX_LINES && text.chars().nth(MAX_CHARS).is_none()) {
            return None;
        }
        let size = match lines {
            0 | 1 => format!("{} characters", text.chars().count()),
            lines => format!("{lines} lines"),
        };
        let chip = format!("[paste {}: {size}]", self.kept.len() + 1);
        self.kept.push((chip.clone(), text.to_owned()));
        Some(chip)
    }

    /// Replaces chips by their texts. Pasted text that looks like a chip stays as it is.
    pub(super) fn expand(&self, text: &str) -> String {
        let mut rest = text;
        let mut out = String::with_capacity(text.len());
        loop {
            let next = self
                .kept
                .iter()
                .filter_map(|kept| Some((rest.find(&kept.0)?, kept)))
                .min_by_key(|(at, _)| *at);
            let Some((at, (chip, full))) = next else { break };
            out.push_str(rest.get(..at).unwrap_or_default());
            out.push_str(full);
            rest = rest.get(at + chip.len()..).unwrap_or_default();
        }
        out.push_str(rest);
        out
    }

    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }
}
