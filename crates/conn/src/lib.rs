//! The tokio driver of Attaché.

pub mod process;
mod sys;
