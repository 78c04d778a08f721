//! The variants of the client, one per line of `variants.txt`.

use std::sync::LazyLock;

use crate::Variant;

/// Every variant, in the order of the rules.
pub fn variants() -> &'static [Variant] {
    static VARIANTS: LazyLock<Vec<Variant>> = LazyLock::new(|| Variant::table(include_str!("variants.txt")));
    &VARIANTS
}

/// Every variant in version 2, in the order of the rules.
pub fn variants_v2() -> &'static [Variant] {
    static VARIANTS: LazyLock<Vec<Variant>> =
        LazyLock::new(|| Variant::table(include_str!("variants_v2.txt")));
    &VARIANTS
}
