//! Patterns for paths, against a matcher that is slow and plain.

use std::path::{Path, PathBuf};

use attache_host::policy::Glob;
use proptest::prelude::*;

fn matches(pattern: &str, path: &str) -> bool {
    Glob::new(pattern).unwrap().matches(Path::new(path), &[PathBuf::from("/p")])
}

#[test]
fn patterns_mean_what_they_say() {
    let cases: &[(&str, &str, bool)] = &[
        ("src/*.rs", "/p/src/a.rs", true),
        ("src/*.rs", "/p/src/deep/a.rs", false),
        ("src/**", "/p/src/deep/a.rs", true),
        ("src/**/*.rs", "/p/src/a.rs", true),
        ("src/**/*.rs", "/p/src/x/y/a.rs", true),
        ("src/", "/p/src/x/y", true),
        ("src/**", "/p/srcs/a", false),
        ("**/x/**/y", "/p/a/x/b/c/y", true),
        ("*.env", "/p/deep/down/.env", true),
        (".env", "/p/deep/.env", true),
        (".env", "/p/.env.local", false),
        (".env*", "/p/.env.local", true),
        ("?.txt", "/p/a.txt", true),
        ("?.txt", "/p/ab.txt", false),
        ("[a-c]x", "/p/bx", true),
        ("[!a-c]x", "/p/bx", false),
        ("[]]x", "/p/]x", true),
        ("*.{rs,toml}", "/p/Cargo.toml", true),
        ("{src,{tests,benches}/it}/*.rs", "/p/benches/it/a.rs", true),
        ("/etc/**", "/etc/passwd", true),
        ("/etc/**", "/p/etc/passwd", false),
        ("src/**", "/elsewhere/src/a", false),
        ("src/a", "/src/a", false),
        ("*", "/p/a/b", true),
        ("*/b", "/p/a/b", true),
        ("*/b", "/p/x/a/b", false),
        (r"a\*b", "/p/a*b", true),
        (r"a\*b", "/p/axb", false),
        ("é?", "/p/éx", true),
        ("a[!b]c", "/p/a/c", false),
        ("a?c", "/p/a/c", false),
        ("{*.env,src/x}", "/p/deep/b.env", true),
    ];
    for (pattern, path, expected) in cases {
        assert_eq!(matches(pattern, path), *expected, "{pattern} on {path}");
    }
}

#[test]
fn a_home_directory_is_a_place() {
    let home = std::env::var("HOME").unwrap();
    let glob = Glob::new("~/.ssh/**").unwrap();
    assert!(glob.matches(&Path::new(&home).join(".ssh/id_ed25519"), &[]));
}

#[test]
fn a_directory_covers_its_contents() {
    let roots = [PathBuf::from("/p")];
    let covers = |pattern: &str, path: &str| Glob::new(pattern).unwrap().covers(Path::new(path), &roots);
    assert!(covers("secrets", "/p/a/secrets/b/c"));
    assert!(covers("/etc", "/etc/ssh/sshd_config"));
    assert!(covers("a/*", "/p/a/b/c"));
    assert!(!covers("secrets", "/p/a/secrets2/b"));
    assert!(!covers("/etc", "/etcetera"));
    // A name at any depth is meant wherever the path is.
    assert!(covers(".env", "/elsewhere/.env"));
}

#[test]
fn mistakes_are_errors() {
    for pattern in ["", "[a", "{a,b", "a}", "x\\", "[]"] {
        assert!(Glob::new(pattern).is_err(), "{pattern}");
    }
    assert!(Glob::new(&"{a,b}".repeat(12)).is_err(), "4096 ways");
}

#[test]
fn a_hostile_pattern_takes_no_longer() {
    let pattern = "*a".repeat(30) + "b";
    let name = "/p/".to_owned() + &"a".repeat(2000);
    assert!(!matches(&pattern, &name));
    let deep = "/p".to_owned() + &"/a".repeat(500);
    assert!(!matches(&("**/a/".repeat(30) + "b"), &deep));
}

/// The slow and plain matcher: tries everything.
fn naive(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['*', rest @ ..] => (0..=text.len()).any(|n| naive(rest, &text[n..])),
        ['?', rest @ ..] => !text.is_empty() && naive(rest, &text[1..]),
        [c, rest @ ..] => text.first() == Some(c) && naive(rest, &text[1..]),
    }
}

fn naive_path(pattern: &[&str], names: &[&str]) -> bool {
    let chars = |text: &str| text.chars().collect::<Vec<_>>();
    match pattern {
        [] => names.is_empty(),
        ["**", rest @ ..] => (0..=names.len()).any(|n| naive_path(rest, &names[n..])),
        [name, rest @ ..] => names
            .first()
            .is_some_and(|first| naive(&chars(name), &chars(first)) && naive_path(rest, &names[1..])),
    }
}

proptest! {
    #[test]
    fn both_matchers_agree(
        pattern in prop::collection::vec(prop_oneof![Just("**".to_owned()), "[ab*?]{1,5}"], 2..6),
        names in prop::collection::vec("[ab]{1,5}", 1..7),
    ) {
        let (pattern, names): (Vec<&str>, Vec<&str>) =
            (pattern.iter().map(String::as_str).collect(), names.iter().map(String::as_str).collect());
        let path = format!("/p/{}", names.join("/"));
        prop_assert_eq!(matches(&pattern.join("/"), &path), naive_path(&pattern, &names));
    }

    #[test]
    fn no_pattern_makes_it_panic(pattern in r"[a-c/\*\?\[\]\{\},!\\~.-]{0,20}", path in "[a-c/]{0,12}") {
        if let Ok(glob) = Glob::new(&pattern) {
            glob.matches(Path::new(&path), &[PathBuf::from("/a")]);
            glob.covers(Path::new(&path), &[]);
        }
    }
}
