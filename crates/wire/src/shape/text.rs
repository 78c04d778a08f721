//! `ids!`, `closed_enum!`, `open_enum!`: types that are strings on the wire.

/// Declares opaque strings, which are compared and never parsed. Clones are cheap.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)+) => {
        $($(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&*self.0, f)
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                $name(text.into())
            }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self {
                $name(text.into())
            }
        }
        $crate::into_field::into_fields! {
            [] &str => $name: |text| text.into();
            [] String => $name: |text| text.into();
            [] &$name => $name: |id| id.clone();
        }
        impl From<&$name> for $name {
            fn from(id: &$name) -> Self {
                id.clone()
            }
        }
        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }
        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::DeserializeSeed;
                $crate::shape::tagged::AnyStr.deserialize(deserializer).map(|text| $name((&*text).into()))
            }
        })+
    };
}

/// Declares a string enum. An unlisted value is refused, or read as `Variant` with `else Variant`.
macro_rules! closed_enum {
    ($(#[$doc:meta])* pub enum $name:ident {
        $($(#[$vdoc:meta])* $variant:ident = $value:literal),+ $(,)?
    } $(else $fallback:ident)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vdoc])* $variant,)+
        }

        impl $name {
            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $value,)+
                }
            }
            /// Every value, in the order of the specification.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::{DeserializeSeed, Error};
                let text = $crate::shape::tagged::AnyStr.deserialize(deserializer)?;
                match &*text {
                    $($value => Ok($name::$variant),)+
                    $(_ => { let _ = D::Error::custom::<&str>; Ok($name::$fallback) })?
                    #[allow(unreachable_patterns, reason = "only enums without a fallback get here")]
                    other => Err(D::Error::unknown_variant(other, &[$($value),+])),
                }
            }
        }
    };
}

/// Declares a string enum that keeps unlisted values in `Other`, or in `Variant` with `other
/// Variant`.
macro_rules! open_enum {
    ($(#[$doc:meta])* pub enum $name:ident { $($values:tt)+ }) => {
        $crate::shape::open_enum! { $(#[$doc])* pub enum $name { $($values)+ } other Other }
    };
    ($(#[$doc:meta])* pub enum $name:ident {
        $($(#[$vdoc:meta])* $variant:ident = $value:literal),+ $(,)?
    } other $unlisted:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vdoc])* $variant,)+
            /// An unlisted value, kept unchanged.
            $unlisted(String),
        }

        impl $name {
            /// The name on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $($name::$variant => $value,)+
                    $name::$unlisted(other) => other,
                }
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    $($value => $name::$variant,)+
                    other => $name::$unlisted(other.to_owned()),
                }
            }
        }
        impl From<String> for $name {
            fn from(text: String) -> Self {
                $name::from(text.as_str())
            }
        }
        $crate::into_field::into_fields! {
            [] &str => $name: |text| text.into();
            [] String => $name: |text| text.into();
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::DeserializeSeed;
                $crate::shape::tagged::AnyStr.deserialize(deserializer).map(|text| $name::from(&*text))
            }
        }
    };
}

pub(crate) use {closed_enum, ids, open_enum};
