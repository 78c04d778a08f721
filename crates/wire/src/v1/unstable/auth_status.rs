//! `auth/status` and `auth/status_update`: the login state of the agent. Unstable.

use crate::shape::*;

markers! {
    /// The agent has `auth/status` and sends `auth/status_update`.
    AuthStatusCapabilities,
}

open_enum! {
    /// Whether somebody is logged in. Unstable.
    pub enum AuthState {
        /// Somebody is.
        Authenticated = "authenticated",
        /// Nobody is.
        Unauthenticated = "unauthenticated",
        /// Nobody has to be.
        NotRequired = "not_required",
        /// The agent cannot tell.
        Unknown = "unknown",
    }
}

impl AuthState {
    /// Whether the state tells nothing. AUTH-23: values that are not listed count as `unknown`.
    pub fn is_unknown(&self) -> bool {
        matches!(self, AuthState::Unknown | AuthState::Other(_))
    }
}

object! {
    /// An account. AUTH-25: for display only, never to identify anybody. Unstable.
    pub struct AuthAccount {
        required {
            /// A name to show for the account.
            label "label": String [Required],
        }
        optional {
            /// Whether it is in effect (AUTH-26).
            active "active": Option<bool> [Lenient],
            /// The person's name.
            name "name": Option<String> [LenientText],
            /// The person's mail address.
            email "email": Option<String> [LenientText],
            /// The person's organization.
            organization "organization": Option<String> [LenientText],
        }
    }
}

object! {
    /// Asks who is logged in (AUTH-22). Unstable.
    pub struct AuthStatusRequest [nullable] {}
}

object! {
    /// Says who is logged in. Unstable.
    pub struct AuthStatusResponse {
        required {
            /// Whether somebody is.
            state "state": AuthState [Required],
        }
        optional {
            /// The accounts (AUTH-26).
            accounts "accounts": Option<Vec<AuthAccount>> [SkipInvalid],
        }
    }
}

object! {
    /// Says that [`AuthStatusResponse`] would be another one now (AUTH-24). Unstable.
    pub struct AuthStatusUpdateNotification {
        required {
            /// Whether somebody is logged in.
            state "state": AuthState [Required],
        }
        optional {
            /// The accounts.
            accounts "accounts": Option<Vec<AuthAccount>> [SkipInvalid],
        }
    }
}

crate::methods! {
    "auth/status": AuthStatusRequest => AuthStatusResponse,
}

crate::notifications! {
    "auth/status_update": AuthStatusUpdateNotification,
}
