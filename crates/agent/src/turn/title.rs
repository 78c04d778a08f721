//! The title of a session, from its first prompt.

use attache::{Prompt, Result};

use crate::state::SessionState;

/// The longest generated title, in characters.
const LONGEST: usize = 60;

/// Gives a session without a title one from its first prompt.
pub(super) async fn generate(session: &SessionState, prompt: &Prompt) -> Result<()> {
    let row = session.store().row(session.id())?;
    let Some(title) = title_of(&prompt.text()).filter(|_| row.title.is_none()) else { return Ok(()) };
    // SSTAT-09: the store keeps a title that the client gave.
    if session.store().set_title(session.id(), Some(&title), false)? {
        session.handle.set_title(Some(title)).await?;
    }
    Ok(())
}

/// The first line with words, cut between words.
fn title_of(text: &str) -> Option<String> {
    let line = text
        .lines()
        .map(|line| line.trim_start_matches(['#', '>', '-', '*', ' ', '/']))
        .find(|line| !line.trim().is_empty())?;
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((end, _)) = line.char_indices().nth(LONGEST) else { return Some(line) };
    let cut = &line[..end];
    let words = cut.rsplit_once(' ').map_or(cut, |(words, _)| words);
    Some(format!("{}…", words.trim_end_matches([',', '.', ':', ';'])))
}

#[cfg(test)]
mod tests {
    use super::title_of;

    #[test]
    fn a_title_is_the_first_line_with_words() {
        assert_eq!(title_of("\n\n# Fix   the build\nmore").as_deref(), Some("Fix the build"));
        assert_eq!(title_of("   \n"), None);
        let long = title_of(&"many words, ".repeat(20)).unwrap_or_default();
        assert!(long.ends_with("words…") && long.chars().count() <= 61, "{long}");
        assert_eq!(title_of(&"ä".repeat(100)).map(|title| title.chars().count()), Some(61));
    }
}
