//! `transparent!`: a newtype that is written as the value it holds.

/// Declares newtypes with a public value.
macro_rules! transparent {
    ($($(#[$attribute:meta])* $name:ident($inner:ty)),+ $(,)?) => {
        $($(#[$attribute])*
        #[derive(Debug, Clone, PartialEq)]
        #[allow(clippy::exhaustive_structs, reason = "a newtype holds one value")]
        pub struct $name(pub $inner);

        impl From<$inner> for $name {
            fn from(inner: $inner) -> Self {
                $name(inner)
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                <$inner>::deserialize(deserializer).map($name)
            }
        })+
    };
}

pub(crate) use transparent;
