//! Macros for users: extension methods without a derive, and the name of the user's package.

use std::path::Path;

use attache_wire::v1::Implementation;

/// Defines requests of an extension with their params and results, without a derive.
///
/// The name of a method starts with an underscore and a domain. Members have the names of the
/// fields; a member of type `Option` may be absent. For other shapes, implement
/// [`Request`](crate::Request) for types that implement serde's traits.
///
/// ```
/// attache::extension! {
///     /// Indexes a directory again.
///     pub request Reindex("_acme.dev/reindex") { path: String, depth: Option<u32> } -> Reindexed { files: u64 }
/// }
///
/// # async fn run(agent: attache::client::AgentHandle) -> attache::Result<()> {
/// let done: Reindexed = agent.request(&Reindex { path: "/work".into(), depth: None }).await?;
/// println!("{} files", done.files);
/// # Ok(())
/// # }
/// ```
///
/// [`examples/extension.rs`](https://github.com/attache-acp/attache/blob/main/crates/sdk/examples/extension.rs)
/// serves and calls one.
#[macro_export]
macro_rules! extension {
    ($(
        $(#[$attribute:meta])*
        $vis:vis request $name:ident($method:literal) { $($field:ident: $type:ty),* $(,)? }
            -> $response:ident { $($result:ident: $result_type:ty),* $(,)? }
    )+) => {
        $(
            $(#[$attribute])*
            $vis struct $name {
                $(#[allow(missing_docs)] $vis $field: $type,)*
            }
            #[doc = concat!("Result of [`", stringify!($name), "`].")]
            $vis struct $response {
                $(#[allow(missing_docs)] $vis $result: $result_type,)*
            }
            $crate::__object!($name { $($field),* });
            $crate::__object!($response { $($result),* });
            impl $crate::Request for $name {
                const METHOD: &'static str = $method;
                type Response = $response;
            }
        )+
    };
}

/// Reads and writes a struct as a JSON object.
#[doc(hidden)]
#[macro_export]
macro_rules! __object {
    ($name:ident { $($field:ident),* }) => {
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($name))$(.field(stringify!($field), &self.$field))*.finish()
            }
        }
        impl $crate::__private::Serialize for $name {
            fn serialize<S: $crate::__private::Serializer>(
                &self,
                serializer: S,
            ) -> ::std::result::Result<S::Ok, S::Error> {
                #[allow(unused_mut)]
                let mut members = $crate::__private::Members::new();
                $(members.write::<_, S::Error>(stringify!($field), &self.$field)?;)*
                $crate::__private::Serialize::serialize(&members, serializer)
            }
        }
        impl<'de> $crate::__private::Deserialize<'de> for $name {
            fn deserialize<D: $crate::__private::Deserializer<'de>>(
                deserializer: D,
            ) -> ::std::result::Result<Self, D::Error> {
                #[allow(unused_variables)]
                let members: $crate::__private::Members = $crate::__private::Deserialize::deserialize(deserializer)?;
                Ok($name { $($field: members.read(stringify!($field))?,)* })
            }
        }
    };
}

/// The name and version of the package that calls this macro, for
/// [`Agent::implementation`](crate::agent::Agent::implementation) and
/// [`Client::implementation`](crate::client::Client::implementation).
///
/// ```
/// let client = attache::client::Client::new().implementation(attache::package_info!());
/// ```
#[macro_export]
macro_rules! package_info {
    () => {
        $crate::wire::v1::Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    };
}

/// The name of the running program, for peers whose author set none. Its version is not known.
pub(crate) fn program_info() -> Implementation {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(Path::file_stem).map(|name| name.to_string_lossy().into_owned());
    Implementation::new(name.unwrap_or_else(|| "unknown".to_owned()), "0")
}

/// Parts of the macros.
#[doc(hidden)]
pub mod __private {
    use std::collections::BTreeMap;

    use attache_wire::Json;
    pub use serde::de::DeserializeOwned;
    pub use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// The members of an object.
    pub struct Members(BTreeMap<String, Json>);

    impl Members {
        #[allow(clippy::new_without_default, missing_docs)]
        pub fn new() -> Self {
            Members(BTreeMap::new())
        }

        #[allow(missing_docs)]
        pub fn write<T: Serialize, E: serde::ser::Error>(&mut self, name: &str, value: &T) -> Result<(), E> {
            let value = serde_json::value::to_raw_value(value).map_err(E::custom)?;
            self.0.insert(name.to_owned(), Json::from(value));
            Ok(())
        }

        #[allow(missing_docs)]
        pub fn read<T: DeserializeOwned, E: serde::de::Error>(&self, name: &str) -> Result<T, E> {
            let text = self.0.get(name).map(Json::get);
            // An absent member reads like `null`, so that an `Option` may be left out.
            serde_json::from_str(text.unwrap_or("null")).map_err(|error| match text {
                Some(_) => E::custom(format_args!("in `{name}`: {error}")),
                None => E::custom(format_args!("missing member `{name}`")),
            })
        }
    }

    impl Serialize for Members {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for Members {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            BTreeMap::deserialize(deserializer).map(Members)
        }
    }
}
