//! Protocol version 1.

mod content;

pub use content::*;
