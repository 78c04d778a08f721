//! Messages of both sides: cancelled requests, errors, extensions.

pub use crate::v1::{Error, ErrorCode, ExtNotification, ExtRequest, ExtResponse, SessionNotFoundErrorData};

use crate::shape::*;
use crate::v1::ProtocolVersion;
use crate::v2::RequestId;

object! {
    /// Cancels a request that the sender made. Ignored if the request is unknown or answered.
    pub struct CancelRequestNotification {
        required {
            /// The request.
            request_id "requestId": RequestId [Required],
        }
    }
}

crate::notifications! {
    "$/cancel_request": CancelRequestNotification,
}

object! {
    /// The `data` of error -32022: the agent does not speak the version that was asked for.
    pub struct UnsupportedProtocolVersionErrorData {
        required {
            /// The version that was asked for.
            requested "requested": ProtocolVersion [Required],
            /// The versions that the agent speaks.
            supported "supported": Vec<ProtocolVersion> [RequiredList],
        }
    }
}
