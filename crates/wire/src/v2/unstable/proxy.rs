//! Proxies between client and agent: `proxy/*`. Unstable.

pub use crate::v1::{ProxySuccessorNotification, ProxySuccessorRequest, ProxySuccessorResponse};

use crate::shape::*;
use crate::v2::{InitializeRequest, InitializeResponse};

transparent! {
    /// Initializes a component that has a successor.
    InitializeProxyRequest(InitializeRequest),
    /// Capabilities of the component and its successors.
    InitializeProxyResponse(InitializeResponse),
}

crate::methods! {
    "proxy/initialize": InitializeProxyRequest => InitializeProxyResponse,
}
