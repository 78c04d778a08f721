//! The parts that the peers in `bin/` share: files and terminals of clients, extension messages.

pub mod host;

/// Defines extension messages whose params are any JSON: `Name "method" request` or `notification`.
#[macro_export]
macro_rules! extensions {
    ($($name:ident $method:literal $kind:ident),+ $(,)?) => {$(
        pub(crate) struct $name(pub(crate) attache::Json);

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                self.0.serialize(serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                attache::Json::deserialize(deserializer).map($name)
            }
        }

        $crate::extensions!(@$kind $name $method);
    )+};
    (@request $name:ident $method:literal) => {
        impl attache::Request for $name {
            const METHOD: &'static str = $method;
            type Response = serde_json::Value;
        }
    };
    (@notification $name:ident $method:literal) => {
        impl attache::Notification for $name {
            const METHOD: &'static str = $method;
        }
    };
}
