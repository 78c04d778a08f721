//! Protocol version 1.

mod content;
mod ids;

pub use content::*;
pub use ids::*;
