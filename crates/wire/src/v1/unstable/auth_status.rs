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
    /// Whether the state is unknown. AUTH-23: unlisted values count as `unknown`.
    pub fn is_unknown(&self) -> bool {
        matches!(self, AuthState::Unknown | AuthState::Other(_))
    }
}

object! {
    /// An account. AUTH-25: for display only, not for identification.
    pub struct AuthAccount {
        required {
            /// A name to show for the account.
            label "label": String [Required],
        }
        optional {
            /// Whether it is in effect (AUTH-26).
            active "active": Option<bool> [Lenient],
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
    /// Requests the login state (AUTH-22).
    AuthStatusRequest,
}

object! {
    /// The login state.
    pub struct AuthStatusResponse {
        required {
            /// The login state.
            state "state": AuthState [Required],
        }
        optional {
            /// The accounts (AUTH-26).
            accounts "accounts": Option<Vec<AuthAccount>> [SkipInvalid],
        }
    }
}

object! {
    /// Reports a change of the login state (AUTH-24).
    pub struct AuthStatusUpdateNotification {
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
