//! One binary for all integration tests of the crate.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod encoding;
mod machine;
mod parsing;
mod shapes;
mod two_peers;
