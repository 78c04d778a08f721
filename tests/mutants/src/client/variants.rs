//! The variants of the client, one per line of `variants.txt`.

use std::sync::LazyLock;

use crate::Variant;

/// Every variant, in the order of the rules.
pub fn variants() -> &'static [Variant] {
    static VARIANTS: LazyLock<Vec<Variant>> = LazyLock::new(|| Variant::table(include_str!("variants.txt")));
    &VARIANTS
}
