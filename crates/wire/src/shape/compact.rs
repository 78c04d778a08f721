//! Reader for JSON without whitespace between its tokens, the form in which nearly every program
//! writes messages.
//!
//! It takes fewer instructions than `serde_json`, because it looks for no whitespace and explains
//! no errors. Text in another form, numbers other than small integers, and values that do not fit
//! are refused without a reason: the caller reads the text again with `serde_json`, which decides.
//! A type may take an error for a value that does not fit and go on (lists that leave out such
//! entries do); a refusal is remembered, so that it goes to `serde_json` all the same. The two
//! never disagree about accepted text.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{BorrowedStrDeserializer, CowStrDeserializer};
use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, Error, IgnoredAny, IntoDeserializer,
    MapAccess, SeqAccess, Visitor,
};

use super::raw::{self, Raw};
use super::tagged::Tagged;

/// Levels of objects and lists, as in `serde_json`.
const MAX_DEPTH: usize = 127;
/// Digits of the integers that are read. They fit into 64 bits.
const MAX_DIGITS: usize = 18;

/// Reads a value from JSON text, fastest from text without whitespace.
///
/// # Errors
/// The text is not the JSON of a `T`.
pub fn from_text<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    match read_compact(text, PhantomData) {
        Some(value) => Ok(value),
        None => serde_json::from_str(text),
    }
}

/// Reads all of `text` by a seed. `None` says that `serde_json` has to read it.
pub(crate) fn read_compact<'de, S: DeserializeSeed<'de>>(text: &'de str, seed: S) -> Option<S::Value> {
    let mut reader = Reader::new(text);
    let value = seed.deserialize(&mut reader).ok()?;
    (reader.at == text.len() && !reader.has_refused).then_some(value)
}

/// Params of `session/update` whose first members are the session id and the update, and whose
/// update begins with its tag: `{"sessionId":"…","update":{"sessionUpdate":"…",…},…}`. They are
/// read up to the value of the tag.
#[doc(hidden)]
#[derive(Debug)]
pub struct UpdateParams<'de> {
    session_id: Cow<'de, str>,
    kind: Cow<'de, str>,
    /// Where the update begins.
    start: usize,
    /// Behind the tag.
    reader: Reader<'de>,
}

impl<'de> UpdateParams<'de> {
    /// `None` says that the params have another form.
    pub fn open(text: &'de str) -> Option<Self> {
        let mut reader = Reader::new(text);
        let (session_id, start, kind) = reader.update_head().ok()?;
        Some(UpdateParams { session_id, kind, start, reader })
    }

    /// The session.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// The kind of the update, as on the wire.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Finds a text member of the update, and the text of the whole update. All of it is proven to
    /// be JSON, but not decoded.
    pub fn find_member(&self, name: &str) -> Option<(Cow<'de, str>, &'de str)> {
        let mut reader = self.reader;
        let mut found = None;
        while reader.peek() == Some(b',') {
            reader.at += 1;
            let is_member = reader.string().ok()? == name;
            reader.expect(b':').ok()?;
            match is_member {
                true => found = Some(reader.string().ok()?),
                false => reader.skip().ok()?,
            }
        }
        reader.expect(b'}').ok()?;
        let update = reader.slice(self.start, reader.at).ok()?;
        reader.update_tail().ok()?;
        Some((found?, update))
    }

    /// Reads the update. `None` says that `serde_json` has to read the params.
    pub(crate) fn read<U: Tagged>(self) -> Option<(Cow<'de, str>, U)> {
        let UpdateParams { session_id, kind, mut reader, .. } = self;
        reader.depth = 2;
        let update = U::from_tag(&kind, Entries { reader: &mut reader, close: b'}', first: false }).ok()?;
        reader.expect(b'}').ok()?;
        reader.update_tail().ok()?;
        (!reader.has_refused).then_some((session_id, update))
    }
}

/// The text is not for this reader.
#[derive(Debug)]
struct Irregular;

impl fmt::Display for Irregular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("irregular JSON")
    }
}

impl std::error::Error for Irregular {}

impl Error for Irregular {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Irregular
    }
}

type Read<T> = Result<T, Irregular>;

#[derive(Debug, Clone, Copy)]
struct Reader<'de> {
    text: &'de str,
    at: usize,
    depth: usize,
    /// Whether a value came that `serde_json` has to read.
    has_refused: bool,
}

impl<'de> Reader<'de> {
    fn new(text: &'de str) -> Self {
        Reader { text, at: 0, depth: 0, has_refused: false }
    }

    /// Leaves the text to `serde_json`, also if the type goes on after an error.
    #[cold]
    fn leave<T>(&mut self) -> Read<T> {
        self.has_refused = true;
        Err(Irregular)
    }

    /// Reads up to the tag of the update. Returns the session id, the place of the update and its
    /// tag.
    fn update_head(&mut self) -> Read<(Cow<'de, str>, usize, Cow<'de, str>)> {
        self.literal(r#"{"sessionId":"#)?;
        let session_id = self.string()?;
        self.literal(r#","update":"#)?;
        let start = self.at;
        self.literal(r#"{"sessionUpdate":"#)?;
        Ok((session_id, start, self.string()?))
    }

    /// Reads the members after the update and the end of the text.
    fn update_tail(&mut self) -> Read<()> {
        while self.peek() == Some(b',') {
            self.at += 1;
            // The last of several equal members would count.
            if matches!(&*self.string()?, "sessionId" | "update") {
                return Err(Irregular);
            }
            self.expect(b':')?;
            self.skip()?;
        }
        self.expect(b'}')?;
        (self.at == self.text.len()).then_some(()).ok_or(Irregular)
    }

    fn rest(&self) -> &'de [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Read<()> {
        if self.peek() != Some(byte) {
            return Err(Irregular);
        }
        self.at += 1;
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Read<()> {
        if !self.rest().starts_with(word.as_bytes()) {
            return Err(Irregular);
        }
        self.at += word.len();
        Ok(())
    }

    fn slice(&self, start: usize, end: usize) -> Read<&'de str> {
        self.text.get(start..end).ok_or(Irregular)
    }

    fn string(&mut self) -> Read<Cow<'de, str>> {
        self.expect(b'"')?;
        let start = self.at;
        let end = start + plain_length(self.rest());
        self.at = end + 1;
        match self.text.as_bytes().get(end) {
            Some(b'"') => self.slice(start, end).map(Cow::Borrowed),
            Some(b'\\') => self.escaped_string(start, end),
            _ => Err(Irregular),
        }
    }

    /// Reads a string whose content begins at `start` and has its first escape at `at`. A string
    /// becomes large only after its first part, so that few are copied twice.
    #[cold]
    fn escaped_string(&mut self, start: usize, mut at: usize) -> Read<Cow<'de, str>> {
        let bytes = self.text.as_bytes();
        let mut content = self.slice(start, at)?.to_owned();
        loop {
            match (bytes.get(at), bytes.get(at + 1)) {
                (Some(b'"'), _) => break,
                (Some(b'\\'), Some(escape)) => match unescape(*escape) {
                    Some(char) => content.push(char),
                    None => return self.irregular_string(start, at),
                },
                _ => return Err(Irregular),
            }
            at += 2;
            let end = at + plain_length(bytes.get(at..).ok_or(Irregular)?);
            content.push_str(self.slice(at, end)?);
            at = end;
        }
        self.at = at + 1;
        Ok(Cow::Owned(content))
    }

    /// Reads a string whose content begins at `start` and has an escape at `at` that `serde_json`
    /// has to read.
    fn irregular_string(&mut self, start: usize, at: usize) -> Read<Cow<'de, str>> {
        let bytes = self.text.as_bytes();
        let mut end = at;
        while bytes.get(end) == Some(&b'\\') {
            // A quote or backslash after a backslash is content.
            end += 2;
            end += plain_length(bytes.get(end..).ok_or(Irregular)?);
        }
        self.at = end + 1;
        let quoted = self.slice(start - 1, self.at)?;
        serde_json::from_str(quoted).map(Cow::Owned).or_else(|_| self.leave())
    }

    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Read<V::Value> {
        let negative = self.peek() == Some(b'-');
        self.at += usize::from(negative);
        let digits = self.rest();
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = digits.get(..count).unwrap_or_default();
        self.at += count;
        // A zero before other digits is not JSON, and minus zero is no integer.
        let leads_with_zero = digits.first() == Some(&b'0') && (count > 1 || negative);
        let goes_on = matches!(self.peek(), Some(b'.' | b'e' | b'E'));
        if count == 0 {
            return Err(Irregular);
        }
        if count > MAX_DIGITS || leads_with_zero || goes_on {
            return self.leave();
        }
        let value = digits.iter().fold(0i64, |value, digit| value * 10 + i64::from(digit - b'0'));
        if negative { visitor.visit_i64(-value) } else { visitor.visit_u64(value.unsigned_abs()) }
    }

    fn boolean<V: Visitor<'de>>(&mut self, visitor: V) -> Read<V::Value> {
        let value = self.peek() == Some(b't');
        self.literal(if value { "true" } else { "false" })?;
        visitor.visit_bool(value)
    }

    fn null<V: Visitor<'de>>(&mut self, visitor: V) -> Read<V::Value> {
        self.literal("null")?;
        visitor.visit_unit()
    }

    fn refuse<V: Visitor<'de>>(&mut self, _: V) -> Read<V::Value> {
        self.leave()
    }

    /// Skips a value and returns its text.
    fn raw(&mut self) -> Read<&'de str> {
        let start = self.at;
        self.skip()?;
        self.slice(start, self.at)
    }

    fn skip(&mut self) -> Read<()> {
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return self.deserialize_any(IgnoredAny).map(drop);
        }
        let is_part = |byte: &&u8| matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E' | b'0'..=b'9');
        let end = self.at + self.rest().iter().take_while(is_part).count();
        let number = self.slice(self.at, end)?;
        self.at = end;
        serde_json::from_str::<IgnoredAny>(number).map(drop).map_err(|_| Irregular)
    }

    /// Reads an object or a list.
    fn nested<T>(&mut self, open: u8, close: u8, read: impl FnOnce(Entries<'_, 'de>) -> Read<T>) -> Read<T> {
        self.expect(open)?;
        if self.depth == MAX_DEPTH {
            return self.leave();
        }
        self.depth += 1;
        let value = read(Entries { reader: self, close, first: true })?;
        self.depth -= 1;
        // Fails if the visitor left entries unread.
        self.expect(close)?;
        Ok(value)
    }

    fn map<V: Visitor<'de>>(&mut self, visitor: V) -> Read<V::Value> {
        self.nested(b'{', b'}', |entries| visitor.visit_map(entries))
    }

    fn seq<V: Visitor<'de>>(&mut self, visitor: V) -> Read<V::Value> {
        self.nested(b'[', b']', |entries| visitor.visit_seq(entries))
    }

    fn text<V: Visitor<'de>>(&mut self, visitor: V) -> Read<V::Value> {
        match self.string()? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }
}

/// The character of an escape that names one.
fn unescape(escape: u8) -> Option<char> {
    Some(match escape {
        b'"' | b'\\' | b'/' => char::from(escape),
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        _ => return None,
    })
}

/// Bytes before the first quote, backslash or control character.
fn plain_length(bytes: &[u8]) -> usize {
    // Most strings are short. For a long one the compiler turns the minimum of a block into vector
    // instructions.
    let (head, rest) = bytes.split_at(bytes.len().min(64));
    let in_head = plain_words(head);
    if in_head < head.len() {
        return in_head;
    }
    let (blocks, _) = rest.as_chunks::<256>();
    // The difference is zero for control characters only.
    let is_plain = |block: &&[u8; 256]| {
        let least = |least: u8, byte: &u8| {
            least.min(byte ^ b'"').min(byte ^ b'\\').min(byte.saturating_sub(b' ' - 1))
        };
        block.iter().fold(u8::MAX, least) > 0
    };
    let plain = head.len() + blocks.iter().take_while(is_plain).count() * 256;
    plain + plain_words(bytes.get(plain..).unwrap_or_default())
}

/// [`plain_length`], eight bytes at a time.
fn plain_words(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (words, tail) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let (quote, backslash) = (word ^ (ONES * u64::from(b'"')), word ^ (ONES * u64::from(b'\\')));
        // These mark bytes by their highest bit. Only bytes after the first marked one may be
        // marked wrongly.
        let zero = (quote.wrapping_sub(ONES) & !quote) | (backslash.wrapping_sub(ONES) & !backslash);
        let control = word.wrapping_sub(ONES * u64::from(b' ')) & !word;
        let found = (zero | control) & HIGH;
        if found != 0 {
            return number * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let plain = tail.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..b' ')).count();
    words.len() * 8 + plain
}

/// Declares methods of the deserializer that read any value of one kind, or none.
macro_rules! hints {
    ($($read:ident: $($method:ident)+;)+) => {
        $($(fn $method<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
            self.$read(visitor)
        })+)+
    };
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Irregular;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.peek() {
            Some(b'"') => self.text(visitor),
            Some(b'{') => self.map(visitor),
            Some(b'[') => self.seq(visitor),
            Some(b't' | b'f') => self.boolean(visitor),
            Some(b'n') => self.null(visitor),
            _ => self.number(visitor),
        }
    }

    hints! {
        text: deserialize_str deserialize_string deserialize_identifier;
        map: deserialize_map;
        seq: deserialize_seq;
        boolean: deserialize_bool;
        null: deserialize_unit;
        number: deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_i8 deserialize_i16
            deserialize_i32 deserialize_i64 deserialize_f32 deserialize_f64;
        refuse: deserialize_char deserialize_bytes deserialize_byte_buf;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        if self.peek() == Some(b'n') {
            self.literal("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Read<V::Value> {
        match name {
            raw::TOKEN => return visitor.visit_map(RawMember(Some(self.raw()?))),
            Attempt::<()>::TOKEN => return visitor.visit_map(AttemptAccess(self)),
            _ => {}
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        self.skip()?;
        visitor.visit_unit()
    }

    // Derived types are left to `serde_json`.

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        self.refuse(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        self.refuse(visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Read<V::Value> {
        self.refuse(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Read<V::Value> {
        self.refuse(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Read<V::Value> {
        self.refuse(visitor)
    }
}

/// The entries of an object or a list.
struct Entries<'r, 'de> {
    reader: &'r mut Reader<'de>,
    close: u8,
    first: bool,
}

impl Entries<'_, '_> {
    /// Moves to the next entry. The end is left for [`Reader::nested`].
    fn advance(&mut self) -> Read<bool> {
        if self.reader.peek() == Some(self.close) {
            return Ok(false);
        }
        if !std::mem::take(&mut self.first) {
            self.reader.expect(b',')?;
        }
        Ok(true)
    }
}

impl<'de> MapAccess<'de> for Entries<'_, 'de> {
    type Error = Irregular;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Read<Option<K::Value>> {
        if !self.advance()? {
            return Ok(None);
        }
        match self.reader.string()? {
            Cow::Borrowed(key) => seed.deserialize(BorrowedStrDeserializer::new(key)),
            Cow::Owned(key) => {
                let key: CowStrDeserializer<'_, Irregular> = Cow::<str>::Owned(key).into_deserializer();
                seed.deserialize(key)
            }
        }
        .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Read<V::Value> {
        self.reader.expect(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

impl<'de> SeqAccess<'de> for Entries<'_, 'de> {
    type Error = Irregular;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Read<Option<T::Value>> {
        if !self.advance()? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

/// Reads a value, or `None` if it does not fit. The text must be JSON all the same.
///
/// This reader goes back and skips a value that does not fit; others need its raw text first.
pub(super) struct Attempt<T>(PhantomData<T>);

impl<T> Attempt<T> {
    const TOKEN: &'static str = "$attache::Attempt";

    pub(super) fn new() -> Self {
        Attempt(PhantomData)
    }
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for Attempt<T> {
    type Value = Option<T>;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        deserializer.deserialize_newtype_struct(Self::TOKEN, self)
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for Attempt<T> {
    type Value = Option<T>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        Ok(Raw::deserialize(deserializer)?.parse().ok())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
        match map.next_value() {
            Ok(value) => Ok(Some(value)),
            Err(_) => map.next_key::<IgnoredAny>().map(|_| None),
        }
    }
}

/// A value that is read as a member, and skipped as a name after that has failed.
struct AttemptAccess<'r, 'de>(&'r mut Reader<'de>);

impl<'de> MapAccess<'de> for AttemptAccess<'_, 'de> {
    type Error = Irregular;

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Read<V::Value> {
        let (at, depth) = (self.0.at, self.0.depth);
        let read = seed.deserialize(&mut *self.0);
        if read.is_err() {
            (self.0.at, self.0.depth) = (at, depth);
        }
        read
    }

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, _: K) -> Read<Option<K::Value>> {
        self.0.skip().map(|()| None)
    }
}

/// Raw text in the form in which `serde_json` passes it: an object with one member.
struct RawMember<'de>(Option<&'de str>);

impl<'de> MapAccess<'de> for RawMember<'de> {
    type Error = Irregular;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Read<Option<K::Value>> {
        match self.0 {
            Some(_) => seed.deserialize(BorrowedStrDeserializer::new(raw::TOKEN)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Read<V::Value> {
        let text = self.0.take().ok_or(Irregular)?;
        seed.deserialize(BorrowedStrDeserializer::new(text))
    }
}
