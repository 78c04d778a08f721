//! A coding agent that speaks ACP, small enough to read in an evening.
//!
//! Started as `attache agent`.

pub mod http;
pub mod model;
pub mod shell;
pub mod store;
