//! Requests that change a config option. Its values and options differ between the versions.

use super::{
    SessionConfigId, SessionConfigOptionValue, SessionConfigValueId, SessionId,
    SetSessionConfigOptionResponse,
};
use crate::shape::*;

flattened! {
    /// Changes an option, at any time.
    pub struct SetSessionConfigOptionRequest { // CONF-14, CONF-17
        required {
            /// The session.
            session_id "sessionId": SessionId [Required],
            /// The option.
            config_id "configId": SessionConfigId [Required],
        }
        unions {
            /// Its new value; the type of a switch is a member of the request.
            value: SessionConfigOptionValue,
        }
    }
}

impl From<bool> for SessionConfigOptionValue {
    fn from(value: bool) -> Self {
        SessionConfigOptionValue::Boolean(value)
    }
}

impl From<&str> for SessionConfigOptionValue {
    fn from(value: &str) -> Self {
        SessionConfigValueId::from(value).into()
    }
}

crate::methods! {
    "session/set_config_option": SetSessionConfigOptionRequest => SetSessionConfigOptionResponse,
}
