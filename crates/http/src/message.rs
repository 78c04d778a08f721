//! The little that both sides read of a message.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};

/// Levels of objects and arrays in a message.
pub(crate) const DEPTH: usize = 1024;

/// The usual place of the member, where nearly every program writes it.
const FIRST: &str = r#"{"sessionId":""#;

/// Returns the member `sessionId` of an object. Reads no further than that member.
pub(crate) fn session_id(json: &str) -> Option<Cow<'_, str>> {
    if let Some(rest) = json.strip_prefix(FIRST)
        && let Some(end) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\'))
        && rest.as_bytes().get(end) == Some(&b'"')
    {
        return rest.get(..end).map(Cow::Borrowed);
    }
    let mut found = None;
    let mut reader = serde_json::Deserializer::from_str(json);
    // A value that is no object, or broken JSON, has no session.
    let _ = reader.deserialize_map(Member(&mut found));
    found.map(Cow::Owned)
}

/// Finds `sessionId` among the members of an object.
struct Member<'a>(&'a mut Option<String>);

impl<'de> Visitor<'de> for Member<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            if name == "sessionId" {
                *self.0 = map.next_value::<Option<String>>()?;
                return Ok(());
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// Makes the JSON of a body one line: line ends are whitespace there, and the end of a message in a
/// link.
pub(crate) fn make_one_line(body: &mut [u8]) {
    body.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
}
