//! Authentication by environment variables. Only in an older draft.

use crate::shape::*;
use crate::v1::AuthMethodId;

object! {
    /// A way to authenticate by variables of the environment.
    pub struct AuthMethodEnvVar {
        required {
            /// Id of the method.
            id "id": AuthMethodId [Required],
            /// A name to show.
            name "name": String [Required],
            /// The variables to set.
            vars "vars": Vec<AuthEnvVar> [Required],
        }
        optional {
            /// A description to show.
            description "description": Option<String> [LenientText],
            /// Where to get the values.
            link "link": Option<String> [LenientText],
        }
    }
}

object! {
    /// A variable of an [`AuthMethodEnvVar`].
    pub struct AuthEnvVar {
        required {
            /// The variable's name.
            name "name": String [Required],
        }
        optional {
            /// A name to show.
            label "label": Option<String> [LenientText],
            /// Whether it may be left out.
            optional "optional": bool [OrDefault],
            /// Whether the value is to be hidden; see [`is_secret`](AuthEnvVar::is_secret).
            secret "secret": Option<bool> [Lenient],
        }
    }
}

impl AuthEnvVar {
    /// Whether the value is to be hidden; the default is yes.
    pub fn is_secret(&self) -> bool {
        self.secret.unwrap_or(true)
    }
}
