//! `auth/status` and `auth/status_update`: the login state of the agent. Unstable.

use crate::shape::*;

empty_objects! {
    /// The agent has `auth/status` and sends `auth/status_update`.
    AuthStatusCapabilities,
}

open_enum! {
    /// The login state of the agent.
    pub enum AuthState {
        /// A user is logged in.
        Authenticated = "authenticated",
        /// No user is logged in.
        Unauthenticated = "unauthenticated",
        /// No login is needed.
        NotRequired = "not_required",
        /// The agent does not know.
        Unknown = "unknown",
    }
}

impl AuthState {
    // AUTH-23
    /// Whether the state is unknown. Unlisted values count as `unknown`.
    pub fn is_unknown(&self) -> bool {
        matches!(self, AuthState::Unknown | AuthState::Other(_))
    }
}

object! {
    /// An account. For display only, not for identification.
    pub struct AuthAccount { // AUTH-25
        required {
            /// A name to show for the account.
            label "label": String [Required],
        }
        optional {
            /// Whether it is in effect.
            active "active": Option<bool> [Lenient], // AUTH-26
            /// The user's name.
            name "name": Option<String> [LenientText],
            /// The user's mail address.
            email "email": Option<String> [LenientText],
            /// The user's organization.
            organization "organization": Option<String> [LenientText],
        }
    }
}

empty_objects! {
    [nullable]
    /// Requests the login state.
    AuthStatusRequest, // AUTH-22
}

object! {
    /// The login state.
    pub struct AuthStatusResponse {
        required {
            /// The login state.
            state "state": AuthState [Required],
        }
        optional {
            /// The accounts.
            accounts "accounts": Option<Vec<AuthAccount>> [SkipInvalid], // AUTH-26
        }
    }
}

object! {
    /// Reports a change of the login state.
    pub struct AuthStatusUpdateNotification { // AUTH-24
        required {
            /// The login state.
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
