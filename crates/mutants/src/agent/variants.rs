//! Every variant of the agent.

use crate::Variant;

/// Every variant, by the order of the rules.
pub fn variants() -> &'static [Variant] {
    &VARIANTS
}

const fn alone(name: &'static str) -> Variant {
    Variant { name, also: &[] }
}

const fn with(name: &'static str, also: &'static [&'static str]) -> Variant {
    Variant { name, also }
}

static VARIANTS: [Variant; 1] = [alone("RPC-01")];
