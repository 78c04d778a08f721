//! Bytes of remote transports: requests, responses, event streams and frames as they are.
//!
//! The checker writes these itself, because a library would not send wrong ones. Nothing here
//! judges but the listener for clients under test, which sees each request and frame.

mod behaviour;
mod endpoint;
mod frames;
pub(crate) mod http1;
mod listener;
mod observations;
mod request;
pub(crate) mod socket;

pub(crate) use behaviour::{Behaviour, CUT_AT, FAULT_METHOD};
pub use endpoint::Endpoint;
pub(crate) use listener::Listener;
pub use observations::Observations;
