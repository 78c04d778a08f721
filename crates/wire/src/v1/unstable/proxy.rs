//! Proxies between client and agent: `proxy/*`.

// PROXY-01 to PROXY-08

use crate::Json;
use crate::shape::*;
use crate::v1::{InitializeRequest, InitializeResponse};

transparent! {
    /// Initializes a component that has a successor.
    InitializeProxyRequest(InitializeRequest), // PROXY-01
    /// Capabilities of the component and its successors.
    InitializeProxyResponse(InitializeResponse), // PROXY-02, PROXY-03
}

object! {
    /// A request to or from the successor, in an envelope.
    pub struct ProxySuccessorRequest {
        required {
            /// The request's method.
            method "method": String [Required],
        }
        optional {
            /// The request's params; `null` is the same as none.
            params "params": Option<Json> [AnyJson], // PROXY-07
        }
    }
}

object! {
    /// A notification to or from the successor, in an envelope.
    pub struct ProxySuccessorNotification {
        required {
            /// The notification's method.
            method "method": String [Required],
        }
        optional {
            /// The notification's params; `null` is the same as none.
            params "params": Option<Json> [AnyJson], // PROXY-07
        }
    }
}

transparent! {
    /// The result of the request in the envelope, unchanged.
    ProxySuccessorResponse(Json), // PROXY-04
}

crate::methods! {
    "proxy/initialize": InitializeProxyRequest => InitializeProxyResponse,
    "proxy/successor": ProxySuccessorRequest => ProxySuccessorResponse,
}

crate::notifications! {
    "proxy/successor": ProxySuccessorNotification,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn what_is_in_the_envelope_passes_unchanged() {
        // shows PROXY-04, PROXY-07
        let text = r#"{"method":"_x/y","params":{"b":1.0e5,"a":[null]}}"#;
        let request: ProxySuccessorRequest = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&request).unwrap(), text);
        let none: ProxySuccessorNotification =
            serde_json::from_str(r#"{"method":"_x","params":null}"#).unwrap();
        assert_eq!(none.params, None);
        let text = r#"{"b": 1, "a":null}"#;
        let response: ProxySuccessorResponse = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&response).unwrap(), text);
    }

    #[test]
    fn a_proxy_is_initialized_like_an_agent() {
        // shows PROXY-01
        let text = r#"{"protocolVersion":1,"clientCapabilities":{}}"#;
        let request: InitializeProxyRequest = serde_json::from_str(text).unwrap();
        assert_eq!(request.0, serde_json::from_str(text).unwrap());
        assert!(serde_json::from_str::<InitializeProxyRequest>("{}").is_err());
    }
}
