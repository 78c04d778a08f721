//! Modes: one zero-sized type for each way in which a member is read and written.

use std::cell::Cell;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de::DeserializeOwned};

use super::compact::Attempt;
use super::raw::Raw;
use crate::{Json, Meta, Patch};

/// Reads one member of type `T` and decides whether it is written.
pub(crate) trait Mode<T> {
    /// Reads the member's value.
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error>;
    /// Returns the value of an absent member, or `None` if the member is required.
    fn absent() -> Option<T> {
        None
    }
    /// Whether the member is left out when the object is written.
    fn skip(_value: &T) -> bool {
        false
    }
}

/// Implements a mode: the function that reads, then, for members that may be absent, the value of
/// an absent member and the test that leaves it out.
macro_rules! mode {
    ($(#[doc = $doc:literal])* $(#[cfg($cfg:meta)])? $mode:ident, $($more:tt)+) => {
        $(#[doc = $doc])*
        $(#[cfg($cfg)])?
        pub(crate) struct $mode;
        $(#[cfg($cfg)])?
        mode! { for $mode, $($more)+ }
    };
    (for $mode:ident, [$($generics:tt)*] $ty:ty, |$deserializer:ident| $read:expr
     $(, absent: $absent:expr $(, skip: $skip:expr)?)?) => {
        impl<$($generics)*> Mode<$ty> for $mode {
            fn read<'de, D: Deserializer<'de>>($deserializer: D) -> Result<$ty, D::Error> {
                $read
            }
            $(fn absent() -> Option<$ty> {
                Some($absent)
            }
            $(fn skip(value: &$ty) -> bool {
                let skip: fn(&$ty) -> bool = $skip;
                skip(value)
            })?)?
        }
    };
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

mode! {
    /// `req; null ✗; bad ✗`: present and well formed.
    Required, [T: DeserializeOwned] T, |deserializer| T::deserialize(deserializer)
}

mode! {
    /// [`Required`] for a list whose constructor converts each element of an array.
    RequiredList, [T: DeserializeOwned] Vec<T>, |deserializer| Vec::deserialize(deserializer)
}

mode! {
    /// `req; null→default; bad ✗`: launch data such as a server list, where `null` is an empty
    /// list.
    NullAsDefault, [T: DeserializeOwned + Default] T,
    |deserializer| Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

mode! {
    /// `opt; null=absent; bad ✗`.
    Optional, [T: DeserializeOwned] Option<T>, |deserializer| Option::deserialize(deserializer),
    absent: None, skip: Option::is_none
}

mode! {
    /// `opt; null ✗; bad ✗`: may be absent; a value that is present must be well formed.
    StrictOrDefault, [T: DeserializeOwned + Default + PartialEq] T, |deserializer| T::deserialize(deserializer),
    absent: T::default(), skip: is_default
}

mode! {
    /// `opt; null/bad=absent`: display data.
    Lenient, [T: DeserializeOwned] Option<T>,
    |deserializer| Ok(Raw::deserialize(deserializer)?.parse::<Option<T>>().unwrap_or_default()),
    absent: None, skip: Option::is_none
}

mode! {
    /// [`Lenient`] for texts and ids, which need no detour over the raw value.
    LenientText, [T: for<'a> From<&'a str>] Option<T>,
    |deserializer| deserializer.deserialize_any(TextVisitor(PhantomData)),
    absent: None, skip: Option::is_none
}

mode! {
    /// `absent/null/bad→default`, left out while it is the default.
    OrDefault, [T: DeserializeOwned + Default + PartialEq] T,
    |deserializer| Ok(Raw::deserialize(deserializer)?.parse().unwrap_or_default()),
    absent: T::default(), skip: is_default
}

mode! {
    // INIT-11: capabilities are written even if there are none.
    /// [`OrDefault`] for a member that is always written.
    AlwaysWritten, [T: DeserializeOwned + Default + PartialEq] T, |deserializer| OrDefault::read(deserializer),
    absent: T::default()
}

mode! {
    /// A list in which malformed entries are skipped. On `Vec`: `req; null→[]; bad→[]`.
    /// On `Option<Vec>`: `opt; null/bad=absent`.
    SkipInvalid, [T: DeserializeOwned] Vec<T>,
    |deserializer| Ok(deserializer.deserialize_any(ListVisitor(PhantomData))?.unwrap_or_default())
}
mode! {
    for SkipInvalid, [T: DeserializeOwned] Option<Vec<T>>,
    |deserializer| deserializer.deserialize_any(ListVisitor(PhantomData)),
    absent: None, skip: Option::is_none
}

mode! {
    /// [`SkipInvalid`] for an optional list, where absent means empty.
    SkipInvalidOrEmpty, [T: DeserializeOwned] Vec<T>, |deserializer| SkipInvalid::read(deserializer),
    absent: Vec::new(), skip: Vec::is_empty
}

mode! {
    /// `req; null ✗; bad ✗; bad item skipped`: a list that must be one, while malformed entries are
    /// skipped.
    ListSkipInvalid, [T: DeserializeOwned] Vec<T>,
    |deserializer| {
        let list = deserializer.deserialize_any(ListVisitor(PhantomData))?;
        list.ok_or_else(|| D::Error::custom("expected a list"))
    }
}

mode! {
    /// `opt; null=absent; bad ✗`: launch data where an absent list is an empty one, left out while
    /// it is empty.
    OptionalList, [T: DeserializeOwned] Vec<T>,
    |deserializer| Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default()),
    absent: Vec::new(), skip: Vec::is_empty
}

mode! {
    /// [`Lenient`] for a number that counts from 1; 0 is the same as absent.
    LenientPositive, [] Option<u32>, |deserializer| Ok(Lenient::read(deserializer)?.filter(|number| *number != 0)),
    absent: None, skip: |number| number.is_none_or(|number| number == 0)
}

mode! {
    /// Any JSON value; `null` is the same as absent.
    AnyJson, [] Option<Json>,
    |deserializer| Ok(Some(Json::deserialize(deserializer)?).filter(|json| json.get() != "null")),
    absent: None, skip: Option::is_none
}

mode! {
    /// Any JSON object; `null` is the same as absent.
    #[cfg(feature = "unstable")]
    AnyObject, [] Option<Json>,
    |deserializer| match AnyJson::read(deserializer)? {
        Some(json) if !json.get().starts_with('{') => Err(D::Error::custom("expected an object")),
        json => Ok(json),
    },
    absent: None, skip: Option::is_none
}

mode! {
    /// Any JSON value; `null` is a value of its own.
    NullableJson, [] Option<Json>, |deserializer| Json::deserialize(deserializer).map(Some),
    absent: None, skip: Option::is_none
}

mode! {
    // EXT-01, EXT-11, EXT-12.
    /// `_meta`: an object, or absent.
    OptionalMeta, [] Option<Meta>, |deserializer| Json::deserialize(deserializer).map(Meta::from_json),
    absent: None, skip: Option::is_none
}

mode! {
    /// Three states, `null kept; bad=absent`.
    PatchLenient, [T: DeserializeOwned] Patch<T>,
    |deserializer| Ok(Raw::deserialize(deserializer)?.parse::<Option<T>>().map_or(Patch::Keep, Patch::from)),
    absent: Patch::Keep, skip: Patch::is_keep
}

mode! {
    /// Three states, `null kept; bad ✗`.
    #[cfg(feature = "unstable")]
    PatchStrict, [T: DeserializeOwned] Patch<T>,
    |deserializer| Option::<T>::deserialize(deserializer).map(Patch::from),
    absent: Patch::Keep, skip: Patch::is_keep
}

mode! {
    /// [`PatchLenient`] for texts and ids, which need no detour over the raw value.
    PatchText, [T: for<'a> From<&'a str>] Patch<T>,
    |deserializer| deserializer.deserialize_any(PatchVisitor(TextVisitor(PhantomData))),
    absent: Patch::Keep, skip: Patch::is_keep
}

mode! {
    /// Three states of any JSON: `null kept`.
    PatchJson, [] Patch<Json>,
    |deserializer| {
        let json = Json::deserialize(deserializer)?;
        Ok(if json.get() == "null" { Patch::Clear } else { Patch::Set(json) })
    },
    absent: Patch::Keep, skip: Patch::is_keep
}

mode! {
    /// Three states of a list: `null kept; bad=absent; bad item skipped`.
    PatchSkipInvalid, [T: DeserializeOwned] Patch<Vec<T>>,
    |deserializer| deserializer.deserialize_any(PatchVisitor(ListVisitor(PhantomData))),
    absent: Patch::Keep, skip: Patch::is_keep
}

mode! {
    /// Three states of `_meta`: `null` clears it, a malformed value is absent.
    PatchMeta, [] Patch<Meta>,
    |deserializer| {
        let json = Json::deserialize(deserializer)?;
        Ok(match json.get() {
            "null" => Patch::Clear,
            _ => Meta::from_json(json).map_or(Patch::Keep, Patch::Set),
        })
    },
    absent: Patch::Keep, skip: Patch::is_keep
}

/// Passes a mode to serde.
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

/// Maximum number of entries of a list, nested lists included. An entry of a few bytes can decode
/// to a few hundred, so the length of a message alone does not bound its memory.
const MAX_ENTRIES: u32 = 16_384;

thread_local! {
    /// Nesting depth of the lists being read, and the number of their entries so far.
    static ENTRIES: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// Counter of list entries; the outermost list starts it at zero.
struct EntryCount;

impl EntryCount {
    fn begin() -> Self {
        let (depth, count) = ENTRIES.get();
        ENTRIES.set((depth + 1, if depth == 0 { 0 } else { count }));
        EntryCount
    }

    /// Counts one entry; returns `false` beyond the maximum.
    fn count(&self) -> bool {
        let (depth, count) = ENTRIES.get();
        ENTRIES.set((depth, count + 1));
        count < MAX_ENTRIES
    }
}

impl Drop for EntryCount {
    fn drop(&mut self) {
        let (depth, count) = ENTRIES.get();
        ENTRIES.set((depth - 1, count));
    }
}

/// Reads a string; any other value is `None`.
struct TextVisitor<T>(PhantomData<T>);

/// Reads a list and skips malformed entries; any other value is `None`.
struct ListVisitor<T>(PhantomData<T>);

/// The methods of a visitor that turn every other kind of value into `None`.
macro_rules! other_values_are_none {
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

impl<'de, T: for<'a> From<&'a str>> Visitor<'de> for TextVisitor<T> {
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
    other_values_are_none!();
}

impl<'de, T: DeserializeOwned> Visitor<'de> for ListVisitor<T> {
    type Value = Option<Vec<T>>;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list")
    }
    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let entries = EntryCount::begin();
        let mut list = Vec::new();
        while let Some(entry) = seq.next_element_seed(Attempt::new())? {
            if !entries.count() {
                return Err(A::Error::custom(format_args!("a list of more than {MAX_ENTRIES} entries")));
            }
            list.extend(entry);
        }
        Ok(Some(list))
    }
    other_values_are_none!();
}

/// Adds the third state to a visitor: `null` clears, and a value that the visitor reads as `None`
/// is absent.
struct PatchVisitor<V>(V);

/// The methods of a visitor that ask another one.
macro_rules! ask_inner {
    ($($method:ident($ty:ty)),+) => {
        $(fn $method<E: serde::de::Error>(self, value: $ty) -> Result<Self::Value, E> {
            self.0.$method(value).map(set_or_keep)
        })+
    };
}

fn set_or_keep<T>(value: Option<T>) -> Patch<T> {
    value.map_or(Patch::Keep, Patch::Set)
}

impl<'de, T, V: Visitor<'de, Value = Option<T>>> Visitor<'de> for PatchVisitor<V> {
    type Value = Patch<T>;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.expecting(f)
    }
    ask_inner!(visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64), visit_str(&str));
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Patch::Clear)
    }
    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Patch::Clear)
    }
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        self.0.visit_seq(seq).map(set_or_keep)
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        self.0.visit_map(map).map(set_or_keep)
    }
}
