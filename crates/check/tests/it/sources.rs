//! Every rule has a source, and no rule counts for the verdict without a sentence that asks for it.

use attache_check::{Level, rules};

#[test]
fn a_rule_that_counts_quotes_its_source() {
    let without: Vec<&str> = rules::all()
        .iter()
        .filter(|rule| rule.tier().binds() && rule.sources().quotes.is_empty())
        .map(|rule| rule.id)
        .collect();
    assert!(without.is_empty(), "no sentence asks for {without:?}");
}

#[test]
fn every_rule_says_whether_it_is_asked_for() {
    for rule in rules::all() {
        let sources = rule.sources();
        assert!(sources.asked.len() > 20, "{} says {:?}", rule.id, sources.asked);
        // A rule of which one can say that the specification does not ask for it is not a MUST that
        // counts.
        let is_disputed = sources.asked.starts_with("Yes");
        assert!(!(is_disputed && rule.tier().binds()), "{}: {}", rule.id, sources.asked);
    }
}

#[test]
fn a_rule_that_counts_has_a_likely_cause() {
    for rule in rules::all().iter().filter(|rule| rule.tier().binds()) {
        let cause = rule.sources().cause.as_deref();
        assert!(cause.is_some_and(|cause| cause.len() > 20), "{}: {cause:?}", rule.id);
    }
}

#[test]
fn a_quote_names_a_revision() {
    for rule in rules::all() {
        for quote in &rule.sources().quotes {
            let is_fixed = ["/blob/b7f0005", "/1.15.1/", "jsonrpc.org/specification", "rfc6455#"];
            assert!(is_fixed.iter().any(|part| quote.url.contains(part)), "{}: {}", rule.id, quote.url);
            assert!(quote.text.len() > 10, "{}: {:?}", rule.id, quote.text);
        }
    }
}

#[test]
fn the_word_of_a_level_stands_in_the_quote() {
    // `keyword` says that the source uses the level's own word.
    let words = |level: Level| match level {
        Level::Must | Level::MustNot => "must",
        Level::Should | Level::ShouldNot => "should",
        _ => "",
    };
    let mut wrong = Vec::new();
    for rule in rules::all().iter().filter(|rule| rule.tier().binds() && rule.keyword) {
        let said = rule.sources().quotes.iter().any(|quote| {
            let text = quote.text.to_lowercase();
            text.contains(words(rule.level)) || text.contains("required")
        });
        if !said {
            wrong.push(rule.id);
        }
    }
    assert!(wrong.is_empty(), "the quotes of {wrong:?} do not have the word of their level");
}
