//! The reader of updates in their usual form agrees with `serde_json`.

use attache_testkit::registry::{V1, V2, Version};
use attache_testkit::sample::{Rng, shuffled};
use attache_wire::{v1, v2};
use serde_json::Value;

const VALUES: u64 = 2_000;
/// Broken variants of each value.
const VARIANTS: usize = 30;

/// Session id and update, written again.
type Read = Option<(String, String)>;

struct Readers {
    usual: fn(&str) -> Read,
    any: fn(&str) -> Read,
}

const READERS_V1: Readers = Readers {
    usual: |text| {
        let (id, update) = v1::SessionUpdate::read_params(text)?;
        Some((id.into_owned(), serde_json::to_string(&update).unwrap()))
    },
    any: |text| {
        let params: v1::SessionNotification = serde_json::from_str(text).ok()?;
        Some((params.session_id.to_string(), serde_json::to_string(&params.update).unwrap()))
    },
};

const READERS_V2: Readers = Readers {
    usual: |text| {
        let (id, update) = v2::SessionUpdate::read_params(text)?;
        Some((id.into_owned(), serde_json::to_string(&update).unwrap()))
    },
    any: |text| {
        let params: v2::UpdateSessionNotification = serde_json::from_str(text).ok()?;
        Some((params.session_id.to_string(), serde_json::to_string(&params.update).unwrap()))
    },
};

/// Params with the session id and the tag first.
fn params(version: Version, rng: &mut Rng) -> String {
    let mut update = (version.catalogue)().random("SessionUpdate", rng);
    let members = update.as_object_mut().unwrap();
    let kind = members.remove("sessionUpdate").unwrap();
    let rest = shuffled(&update, rng);
    let rest = rest.strip_prefix('{').unwrap();
    let comma = if rest == "}" { "" } else { "," };
    let session_id = Value::from(*rng.pick(&["s-1", "a \"quoted\" id", "日本", ""]));
    let tail = rng.pick(&["", r#","_meta":{"a":[1.5e3,null]}"#]);
    format!(r#"{{"sessionId":{session_id},"update":{{"sessionUpdate":{kind}{comma}{rest}{tail}}}"#)
}

/// Replaces, removes or inserts one character.
fn broken(text: &str, rng: &mut Rng) -> String {
    const CHARACTERS: &[char] =
        &['"', '\\', '{', '}', '[', ']', ':', ',', ' ', '\n', '\u{1}', '0', '-', '.', 'e', 'n', 'u', 'é'];
    let mut characters: Vec<char> = text.chars().collect();
    let at = rng.below(characters.len());
    let character = *rng.pick(CHARACTERS);
    match rng.below(3) {
        0 => characters[at] = character,
        1 => drop(characters.remove(at)),
        _ => characters.insert(at, character),
    }
    characters.into_iter().collect()
}

fn readers_agree(version: Version, readers: &Readers) {
    let mut usual = 0;
    for seed in 0..VALUES {
        let mut rng = Rng::new(seed);
        let text = params(version, &mut rng);
        let expected = (readers.any)(&text);
        assert!(expected.is_some(), "{text}");
        if let Some(read) = (readers.usual)(&text) {
            usual += 1;
            assert_eq!(Some(read), expected, "{text}");
        }
        for _ in 0..VARIANTS {
            let text = broken(&text, &mut rng);
            if let Some(read) = (readers.usual)(&text) {
                assert_eq!(Some(read), (readers.any)(&text), "{text}");
            }
        }
    }
    assert!(usual * 10 > VALUES * 7, "only {usual} of {VALUES} were read in their usual form");
}

#[test]
fn readers_of_version_1_agree() {
    readers_agree(V1, &READERS_V1);
}

#[test]
fn readers_of_version_2_agree() {
    readers_agree(V2, &READERS_V2);
}

#[test]
fn other_forms_are_left_to_the_general_reader() {
    let update =
        r#"{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"a\nb"}}"#;
    let usual = format!(r#"{{"sessionId":"s","update":{update}}}"#);
    let (id, read) = v2::SessionUpdate::read_params(&usual).unwrap();
    assert_eq!((&*id, read), ("s", v2::SessionUpdate::agent_message("m", "a\nb")));
    for other in [
        format!(r#"{{"update":{update},"sessionId":"s"}}"#),
        format!(r#"{{"sessionId":"s","update":{update},"sessionId":"t"}}"#),
        format!(r#"{{"sessionId":"s", "update":{update}}}"#),
        format!(r#"{{"sessionId":"s","update":{update}}} "#),
        format!(r#"{{"sessionId":"s","update":{update}}}{{}}"#),
        format!(r#"{{"sessionId":"s","update":{update}"#),
        format!(r#"{{"sessionId":5,"update":{update}}}"#),
        usual.replace("a\\n", "a\\x"),
        usual.replace("a\\n", "\u{1}"),
        usual.replace("\"messageId\":\"m\",", ""),
    ] {
        assert!(v2::SessionUpdate::read_params(&other).is_none(), "{other}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| {
        let value = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        format!(r#"{{"sessionId":"s","update":{{"sessionUpdate":"_x","a":{value}}}}}"#)
    };
    assert!(v2::SessionUpdate::read_params(&nested(100)).is_some());
    assert!(v2::SessionUpdate::read_params(&nested(100_000)).is_none());
}

#[test]
fn strings_of_every_length_and_with_every_escape_are_read_alike() {
    const PIECES: &[&str] = &[
        "a",
        "plain words, ",
        "é",
        "日本",
        "{[",
        r"\n",
        r#"\""#,
        r"\\",
        r"\/",
        r"\t\r\b\f",
        r"\u00e9",
        r"\ud83d\ude00",
        r"\ud83d",
        r"\x",
        "\"",
        "\\",
        "\u{1}",
    ];
    let mut accepted = 0;
    for seed in 0..VALUES {
        let mut rng = Rng::new(seed);
        // The last pieces are errors, which most strings should not have.
        let pieces = if seed % 4 == 0 { PIECES } else { &PIECES[..12] };
        let mut text = String::from("\"");
        text.push_str(&"x".repeat(rng.below(200)));
        for _ in 0..rng.below(12) {
            let piece: &&str = rng.pick(pieces);
            text.push_str(piece);
            text.push_str(&"y".repeat(rng.below(4) * rng.below(70)));
        }
        text.push('"');
        let expected = serde_json::from_str::<String>(&text).ok();
        accepted += u64::from(expected.is_some());
        assert_eq!(attache_wire::from_text::<String>(&text).ok(), expected, "{text}");
    }
    assert!(accepted * 10 > VALUES * 7, "only {accepted} of {VALUES} strings are JSON");
}

/// Lists leave out entries that do not fit. A number that the reader leaves to `serde_json` is no
/// such case.
#[test]
fn an_entry_with_an_unusual_number_stays() {
    for number in ["1.5", "1e3", "12345678901234567890", "-0", "1.0"] {
        let link = format!(r#"{{"type":"resource_link","uri":"file:///a","name":"a","size":{number}}}"#);
        let call = format!(
            r#"{{"sessionId":"s","update":{{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","content":[{{"type":"content","content":{link}}}]}}}}"#
        );
        let expected = (READERS_V1.any)(&call);
        assert!(
            expected.as_ref().is_some_and(|(_, update)| update.contains("resource_link")),
            "{expected:?}"
        );
        if let Some(usual) = (READERS_V1.usual)(&call) {
            assert_eq!(Some(usual), expected, "{number}");
        }
        let read = attache_wire::from_text::<v1::SessionNotification>(&call).unwrap();
        assert_eq!(serde_json::to_string(&read.update).ok(), expected.map(|(_, update)| update), "{number}");
    }
}

/// A type of another crate that takes any error for an absent value.
#[derive(Debug, PartialEq)]
struct Forgiving(Option<u64>);

impl<'de> serde::Deserialize<'de> for Forgiving {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Forgiving(
            Value::deserialize(deserializer).ok().and_then(|value| value.as_f64()).map(|value| value as u64),
        ))
    }
}

#[test]
fn types_that_go_on_after_an_error_are_read_like_by_serde_json() {
    for text in ["[1,2]", "[1,2.5]", "[2.5,1]", "[1e2]", "[123456789012345678901]", "[-0,5]", r#"["x",1.5]"#]
    {
        let expected: Vec<Forgiving> = serde_json::from_str(text).unwrap();
        assert_eq!(attache_wire::from_text::<Vec<Forgiving>>(text).unwrap(), expected, "{text}");
    }
}
