//! Messages of both sides: cancelled requests, errors, extensions.

use crate::Json;
use crate::shape::*;
use crate::v1::RequestId;

object! {
    /// Cancels a request that the sender made.
    pub struct CancelRequestNotification { // CANCEL-13, CANCEL-21
        required {
            /// The request.
            request_id "requestId": RequestId [Required],
        }
    }
}

crate::notifications! {
    "$/cancel_request": CancelRequestNotification,
}

transparent! {
    /// The code of an error. Codes without a name here are valid too.
    #[derive(Copy, Eq, Hash)]
    ErrorCode(i32), // RPC-15, RPC-16
}

impl ErrorCode {
    /// The text is not JSON.
    pub const PARSE_ERROR: ErrorCode = ErrorCode(-32700);
    /// The JSON is not a valid message.
    pub const INVALID_REQUEST: ErrorCode = ErrorCode(-32600);
    /// The method does not exist.
    pub const METHOD_NOT_FOUND: ErrorCode = ErrorCode(-32601);
    /// The params are invalid.
    pub const INVALID_PARAMS: ErrorCode = ErrorCode(-32602);
    /// Any other error.
    pub const INTERNAL_ERROR: ErrorCode = ErrorCode(-32603);
    /// The request was cancelled.
    pub const REQUEST_CANCELLED: ErrorCode = ErrorCode(-32800);
    /// Authentication is required.
    pub const AUTH_REQUIRED: ErrorCode = ErrorCode(-32000);
    /// A session, file or terminal does not exist.
    pub const RESOURCE_NOT_FOUND: ErrorCode = ErrorCode(-32002);
    /// The protocol version that was asked for is not supported (version 2).
    pub const UNSUPPORTED_PROTOCOL_VERSION: ErrorCode = ErrorCode(-32022);
}

object! {
    /// An error, where a message carries one.
    pub struct Error { // RPC-03
        required {
            /// The code of the error.
            code "code": ErrorCode [Required],
            /// A short message.
            message "message": String [Required], // RPC-17
        }
        optional {
            /// Details of the error.
            data "data": Option<Json> [AnyJson],
        }
        no_meta!
    }
}

transparent! {
    /// The params of an extension request, whose method begins with `_`.
    ExtRequest(Json), // EXT-05, EXT-06
    /// The result of an extension request.
    ExtResponse(Json), // EXT-07
    /// The params of an extension notification.
    ExtNotification(Json), // EXT-08
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_cancel_names_a_request() {
        // shows CANCEL-13, CANCEL-20
        let read = serde_json::from_str::<CancelRequestNotification>;
        assert_eq!(read(r#"{"requestId":5}"#).unwrap().request_id, RequestId::Number(5));
        assert_eq!(read(r#"{"requestId":"5"}"#).unwrap().request_id, RequestId::Str("5".into()));
        assert_eq!(read(r#"{"requestId":null}"#).unwrap().request_id, RequestId::Null);
        assert!(read("{}").is_err());
    }

    #[test]
    fn error_codes_are_open() {
        // shows RPC-16
        let text = r#"{"code":-31999,"message":"x","data":[1]}"#;
        let error: Error = serde_json::from_str(text).unwrap();
        assert_eq!(error.code, ErrorCode(-31999));
        assert_eq!(serde_json::to_string(&error).unwrap(), text);
        assert!(serde_json::from_str::<Error>(r#"{"code":-3199900000,"message":"x"}"#).is_err());
    }
}
