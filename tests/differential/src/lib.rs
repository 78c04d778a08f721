//! Attaché's wire types against the crate `agent-client-protocol-schema`, over random values made
//! from its JSON Schema.
//!
//! - [`schema`]: the schema as a generator and as a validator.
//! - [`official`]: the crate's types by name.
//! - [`mutation`]: values with one thing wrong.
//! - [`differences`]: where Attaché reads otherwise on purpose, with the rule that asks for it.

pub mod differences;
pub mod mutation;
pub mod official;
pub mod schema;
