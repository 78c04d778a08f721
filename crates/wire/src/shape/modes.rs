//! The modes in which a member is read, one zero-sized type each.

use std::cell::Cell;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de::DeserializeOwned};

use super::raw::Raw;
use crate::{Json, Meta, Patch};

/// How one member of type `T` is read and when it is left out.
pub(crate) trait Mode<T> {
    /// Reads the member's value.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error>;
    /// What stands for an absent member; `None` refuses the object.
    fn absent() -> Option<T>;
    /// Whether the member is left out when written.
    fn skip(_value: &T) -> bool {
        false
    }
}

/// Passes a mode through serde as a seed.
pub(crate) struct Seed<M, T>(PhantomData<(M, T)>);

impl<M, T> Seed<M, T> {
    pub(crate) fn new() -> Self {
        Seed(PhantomData)
    }
}

impl<'de, T, M: Mode<T>> DeserializeSeed<'de> for Seed<M, T> {
    type Value = T;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        M::read(deserializer)
    }
}

/// `req; null ✗; bad ✗`: must be there and well formed.
pub(crate) struct Required;
impl<T: DeserializeOwned> Mode<T> for Required {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
    fn absent() -> Option<T> {
        None
    }
}

/// [`Required`] for a list whose constructor converts each element of an array.
pub(crate) struct RequiredList;
impl<T: DeserializeOwned> Mode<Vec<T>> for RequiredList {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        Vec::deserialize(deserializer)
    }
    fn absent() -> Option<Vec<T>> {
        None
    }
}

/// `req; null→default; bad ✗`: launch data such as a server list, where `null` is an empty list.
pub(crate) struct NullDefault;
impl<T: DeserializeOwned + Default> Mode<T> for NullDefault {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
    }
    fn absent() -> Option<T> {
        None
    }
}

/// `opt; null=absent; bad ✗`.
pub(crate) struct Optional;
impl<T: DeserializeOwned> Mode<Option<T>> for Optional {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
        Option::<T>::deserialize(deserializer)
    }
    fn absent() -> Option<Option<T>> {
        Some(None)
    }
    fn skip(value: &Option<T>) -> bool {
        value.is_none()
    }
}

/// `opt; null ✗; bad ✗`: may be absent, but what is there must be right.
pub(crate) struct Strict;
impl<T: DeserializeOwned + Default + PartialEq> Mode<T> for Strict {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }
    fn absent() -> Option<T> {
        Some(T::default())
    }
    fn skip(value: &T) -> bool {
        *value == T::default()
    }
}

/// `opt; null/bad=absent`: display data.
pub(crate) struct Lenient;
impl<T: DeserializeOwned> Mode<Option<T>> for Lenient {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
        Ok(Raw::deserialize(deserializer)?.parse::<Option<T>>().unwrap_or_default())
    }
    fn absent() -> Option<Option<T>> {
        Some(None)
    }
    fn skip(value: &Option<T>) -> bool {
        value.is_none()
    }
}

/// [`Lenient`] for texts and ids, without the detour over the raw value.
pub(crate) struct Text;
impl<T: for<'a> From<&'a str>> Mode<Option<T>> for Text {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
        deserializer.deserialize_any(LooseText(PhantomData))
    }
    fn absent() -> Option<Option<T>> {
        Some(None)
    }
    fn skip(value: &Option<T>) -> bool {
        value.is_none()
    }
}

/// `absent/null/bad→default`, left out while it is the default.
pub(crate) struct OrDefault;
impl<T: DeserializeOwned + Default + PartialEq> Mode<T> for OrDefault {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        Ok(Raw::deserialize(deserializer)?.parse().unwrap_or_default())
    }
    fn absent() -> Option<T> {
        Some(T::default())
    }
    fn skip(value: &T) -> bool {
        *value == T::default()
    }
}

/// [`OrDefault`] for what must be said even when it is the default (INIT-11).
pub(crate) struct Stated;
impl<T: DeserializeOwned + Default + PartialEq> Mode<T> for Stated {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        OrDefault::read(deserializer)
    }
    fn absent() -> Option<T> {
        Some(T::default())
    }
}

/// [`OrDefault`] for a list in which a malformed entry is skipped.
pub(crate) struct LossyOrEmpty;
impl<T: DeserializeOwned> Mode<Vec<T>> for LossyOrEmpty {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        Lossy::read(deserializer)
    }
    fn absent() -> Option<Vec<T>> {
        Some(Vec::new())
    }
    fn skip(value: &Vec<T>) -> bool {
        value.is_empty()
    }
}

/// A list in which a malformed entry is skipped. On `Vec`: `req; null→[]; bad→[]`.
/// On `Option<Vec>`: `opt; null/bad=absent`.
pub(crate) struct Lossy;
impl<T: DeserializeOwned> Mode<Vec<T>> for Lossy {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        Ok(deserializer.deserialize_any(LooseList(PhantomData))?.unwrap_or_default())
    }
    fn absent() -> Option<Vec<T>> {
        None
    }
}
impl<T: DeserializeOwned> Mode<Option<Vec<T>>> for Lossy {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<T>>, D::Error> {
        deserializer.deserialize_any(LooseList(PhantomData))
    }
    fn absent() -> Option<Option<Vec<T>>> {
        Some(None)
    }
    fn skip(value: &Option<Vec<T>>) -> bool {
        value.is_none()
    }
}

/// Free JSON: any value, where `null` is the same as absent.
pub(crate) struct Free;
impl Mode<Option<Json>> for Free {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
        let json = Json::deserialize(deserializer)?;
        Ok(Some(json).filter(|json| json.get() != "null"))
    }
    fn absent() -> Option<Option<Json>> {
        Some(None)
    }
    fn skip(value: &Option<Json>) -> bool {
        value.is_none()
    }
}

/// Free JSON that must be an object, where `null` is the same as absent.
pub(crate) struct FreeObject;
impl Mode<Option<Json>> for FreeObject {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
        let json: Option<Json> = Free::read(deserializer)?;
        match json {
            Some(json) if !json.get().starts_with('{') => Err(D::Error::custom("expected an object")),
            json => Ok(json),
        }
    }
    fn absent() -> Option<Option<Json>> {
        Some(None)
    }
    fn skip(value: &Option<Json>) -> bool {
        value.is_none()
    }
}

/// Free JSON in which `null` is a value of its own.
pub(crate) struct KeepNull;
impl Mode<Option<Json>> for KeepNull {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
        Json::deserialize(deserializer).map(Some)
    }
    fn absent() -> Option<Option<Json>> {
        Some(None)
    }
    fn skip(value: &Option<Json>) -> bool {
        value.is_none()
    }
}

/// `_meta` everywhere: an object, or absent (EXT-01, EXT-11, EXT-12).
impl Mode<Option<Meta>> for Free {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Meta>, D::Error> {
        Json::deserialize(deserializer).map(Meta::from_json)
    }
    fn absent() -> Option<Option<Meta>> {
        Some(None)
    }
    fn skip(value: &Option<Meta>) -> bool {
        value.is_none()
    }
}

/// Three states, `null kept; bad=absent`.
pub(crate) struct PatchLenient;
impl<T: DeserializeOwned> Mode<Patch<T>> for PatchLenient {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Patch<T>, D::Error> {
        Ok(match Raw::deserialize(deserializer)?.parse::<Option<T>>() {
            Ok(Some(value)) => Patch::Set(value),
            Ok(None) => Patch::Clear,
            Err(_) => Patch::Keep,
        })
    }
    fn absent() -> Option<Patch<T>> {
        Some(Patch::Keep)
    }
    fn skip(value: &Patch<T>) -> bool {
        value.is_keep()
    }
}

/// Three states, `null kept; bad ✗`.
pub(crate) struct PatchStrict;
impl<T: DeserializeOwned> Mode<Patch<T>> for PatchStrict {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Patch<T>, D::Error> {
        Option::<T>::deserialize(deserializer).map(Patch::from)
    }
    fn absent() -> Option<Patch<T>> {
        Some(Patch::Keep)
    }
    fn skip(value: &Patch<T>) -> bool {
        value.is_keep()
    }
}

/// Three states over a list: `null kept; bad=absent; bad item skipped`.
pub(crate) struct PatchLossy;
impl<T: DeserializeOwned> Mode<Patch<Vec<T>>> for PatchLossy {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Patch<Vec<T>>, D::Error> {
        let raw = Raw::deserialize(deserializer)?;
        if raw.is_null() {
            return Ok(Patch::Clear);
        }
        let list = serde_json::Deserializer::from_str(raw.get()).deserialize_any(LooseList(PhantomData));
        Ok(list.unwrap_or_default().map_or(Patch::Keep, Patch::Set))
    }
    fn absent() -> Option<Patch<Vec<T>>> {
        Some(Patch::Keep)
    }
    fn skip(value: &Patch<Vec<T>>) -> bool {
        value.is_keep()
    }
}

/// A `_meta` that is patched: `null` clears it, a malformed one is absent.
pub(crate) struct PatchMeta;
impl Mode<Patch<Meta>> for PatchMeta {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Patch<Meta>, D::Error> {
        let json = Json::deserialize(deserializer)?;
        Ok(if json.get() == "null" {
            Patch::Clear
        } else {
            Meta::from_json(json).map_or(Patch::Keep, Patch::Set)
        })
    }
    fn absent() -> Option<Patch<Meta>> {
        Some(Patch::Keep)
    }
    fn skip(value: &Patch<Meta>) -> bool {
        value.is_keep()
    }
}

/// How many entries a list may have, those of lists inside of it included. A few bytes of text become a value of a few
/// hundred, so that the length of a message does not bound what reading it costs.
const MAX_ENTRIES: u32 = 16_384;

thread_local! {
    /// How many lists are being read inside of each other, and how many entries they had so far.
    static ENTRIES: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// Counts the entries of a list while it is read.
struct Entries;

impl Entries {
    fn begin() -> Self {
        let (depth, count) = ENTRIES.get();
        ENTRIES.set((depth + 1, if depth == 0 { 0 } else { count }));
        Entries
    }

    /// Counts one more; `false` if it is one too many.
    fn count(&self) -> bool {
        let (depth, count) = ENTRIES.get();
        ENTRIES.set((depth, count + 1));
        count < MAX_ENTRIES
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        let (depth, count) = ENTRIES.get();
        ENTRIES.set((depth - 1, count));
    }
}

/// Takes a string and lets anything else pass as nothing.
struct LooseText<T>(PhantomData<T>);

/// Takes a list, entry by entry, and lets anything else pass as nothing.
struct LooseList<T>(PhantomData<T>);

/// The arms of a visitor that lets every other kind of value pass as nothing.
macro_rules! nothing_else {
    () => {
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_none<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
            deserializer.deserialize_any(self)
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(None)
        }
    };
}

impl<'de, T: for<'a> From<&'a str>> Visitor<'de> for LooseText<T> {
    type Value = Option<T>;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string")
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.into()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }
    nothing_else!();
}

impl<'de, T: DeserializeOwned> Visitor<'de> for LooseList<T> {
    type Value = Option<Vec<T>>;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list")
    }
    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let entries = Entries::begin();
        let mut list = Vec::new();
        while let Some(raw) = seq.next_element::<Raw<'de>>()? {
            if !entries.count() {
                return Err(A::Error::custom(format_args!("a list of more than {MAX_ENTRIES} entries")));
            }
            list.extend(raw.parse::<T>().ok());
        }
        Ok(Some(list))
    }
    nothing_else!();
}

#[cfg(test)]
mod tests {
    use crate::v1::{SessionUpdate, ToolCallUpdate};

    fn locations(count: usize) -> String {
        let list = vec![r#"{"path":"/"}"#; count].join(",");
        format!(r#"{{"toolCallId":"c","locations":[{list}],"content":[]}}"#)
    }

    #[test]
    fn lists_are_bounded_and_each_starts_anew() {
        let read = |count| serde_json::from_str::<ToolCallUpdate>(&locations(count));
        for _ in 0..3 {
            assert!(read(16_384).is_ok_and(|call| call.locations.is_some_and(|list| list.len() == 16_384)));
            assert!(read(16_385).is_err_and(|error| error.to_string().contains("more than 16384 entries")));
        }
    }

    #[test]
    fn lists_inside_of_lists_count_together() {
        let option = |choices: usize| {
            let choices = vec![r#"{"value":"v","name":"n"}"#; choices].join(",");
            let group = format!(r#"{{"group":"g","name":"g","options":[{choices}]}}"#);
            format!(r#"{{"id":"o","name":"o","type":"select","currentValue":"v","options":[{group}]}}"#)
        };
        let update = |options: usize, choices: usize| {
            let options = vec![option(choices); options].join(",");
            let update = format!(r#"{{"sessionUpdate":"config_option_update","configOptions":[{options}]}}"#);
            serde_json::from_str::<SessionUpdate>(&update)
        };
        let count = |update: SessionUpdate| match update {
            SessionUpdate::ConfigOptionUpdate(update) => update.config_options.len(),
            other => panic!("{other:?}"),
        };
        assert!(update(100, 100).is_ok_and(|update| count(update) == 100));
        assert!(update(100, 1_000).is_err_and(|error| error.to_string().contains("more than 16384 entries")));
    }

    #[test]
    fn a_tag_behind_very_many_members_is_not_waited_for() {
        let update = |before: usize| {
            let members = vec![r#""x":1,"#; before].concat();
            let text = format!(r#"{{{members}"sessionUpdate":"current_mode_update","currentModeId":"m"}}"#);
            serde_json::from_str::<SessionUpdate>(&text)
        };
        assert!(update(256).is_ok());
        assert!(update(257).is_err_and(|error| error.to_string().contains("more than 256 members")));
    }
}
