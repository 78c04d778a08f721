//! "Did you mean": the nearest of a list of words.

/// The word that is nearest to `typed`, if one is near enough to be meant.
pub(crate) fn nearest<'a>(typed: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = typed.chars().count() / 3 + 1;
    words
        .into_iter()
        .map(|word| (distance(typed, word), word))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// How many letters have to be inserted, deleted or replaced.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(&b) {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = *cell;
            left = replaced.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typo_is_corrected_and_another_word_is_not() {
        let words = ["format", "timeout", "approve-all"];
        assert_eq!(nearest("formt", words), Some("format"));
        assert_eq!(nearest("aprove-all", words), Some("approve-all"));
        assert_eq!(nearest("zzz", words), None);
    }
}
