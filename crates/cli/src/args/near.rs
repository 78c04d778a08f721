//! "Did you mean": the nearest of a list of words.

/// The word that is nearest to `typed`, if one is near enough to be meant.
pub(crate) fn nearest<'a>(typed: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = typed.chars().count() / 3 + 1;
    words
        .into_iter()
        .map(|word| (strsim::osa_distance(typed, word), word))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
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
