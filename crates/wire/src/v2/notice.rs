//! Notices and compactions.

pub use crate::v1::{CompactionStatus, Notice, NoticeSeverity};

use crate::v2::{CompactionId, ContentBlock};

#[path = "../both/notice.rs"]
mod both;
pub use both::*;
