//! Fuzzy search: the letters of the query in order, with gaps.

/// Returns the indices of the best matches, the best first. An empty query keeps the order.
pub fn best(query: &str, texts: impl IntoIterator<Item = impl AsRef<str>>, most: usize) -> Vec<usize> {
    let wanted: Vec<char> =
        query.chars().flat_map(char::to_lowercase).filter(|c| !c.is_whitespace()).collect();
    let scored =
        texts.into_iter().enumerate().filter_map(|(at, text)| Some((score(&wanted, text.as_ref())?, at)));
    if wanted.is_empty() {
        return scored.map(|(_, at)| at).take(most).collect();
    }
    let mut scored: Vec<(i64, usize)> = scored.collect();
    scored.sort_by_key(|(score, at)| (-score, *at));
    scored.into_iter().map(|(_, at)| at).take(most).collect()
}

/// Rates a match: letters in a row, at the start of words and in the last part of a path count
/// more; length counts against it.
fn score(wanted: &[char], text: &str) -> Option<i64> {
    if wanted.is_empty() {
        return Some(0);
    }
    let name = text.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1);
    // A match in the name alone is the better one, if there is one.
    let in_name = walk(wanted, text.get(name..)?).map(|score| score + 40);
    let anywhere = walk(wanted, text);
    let length = i64::try_from(text.len()).unwrap_or(i64::MAX) / 4;
    Some(in_name.max(anywhere)? - length)
}

fn walk(wanted: &[char], text: &str) -> Option<i64> {
    let mut left = wanted.iter().peekable();
    let (mut total, mut run, mut last) = (0, 0, None::<char>);
    for c in text.chars() {
        let Some(next) = left.peek() else { break };
        if c.to_lowercase().eq(std::iter::once(**next)) {
            left.next();
            run += 1;
            let starts =
                last.is_none_or(|last| !last.is_alphanumeric() || (last.is_lowercase() && c.is_uppercase()));
            total += 4 + 6 * (run - 1) + if starts { 10 } else { 0 };
        } else {
            run = 0;
        }
        last = Some(c);
    }
    left.peek().is_none().then_some(total)
}

#[cfg(test)]
mod tests {
    use super::best;

    #[test]
    fn names_come_before_paths_and_rows_before_gaps() {
        let files =
            ["docs/maintenance/old.rs", "src/main.rs", "src/my_admin.rs", "README.md", "src/Domain.rs"];
        let found = |query: &str| best(query, files, 3).into_iter().map(|at| files[at]).collect::<Vec<_>>();
        assert_eq!(found("main"), ["src/main.rs", "src/Domain.rs", "src/my_admin.rs"]);
        assert_eq!(found("srcmain")[0], "src/main.rs");
        assert_eq!(found("readme"), ["README.md"]);
        assert_eq!(found("zz"), [""; 0]);
        assert_eq!(found("").len(), 3);
    }
}
