//! Notices and compactions.

pub use crate::v1::{CompactionStatus, Notice, NoticeSeverity};

use crate::shape::*;
use crate::v2::{CompactionId, ContentBlock};
use crate::{Meta, Patch};

object! {
    // V2-17
    /// Progress of a compaction of the conversation. Absent members stay, `null` clears.
    pub struct CompactionUpdate {
        required {
            /// The compaction.
            compaction_id "compactionId": CompactionId [Required],
            /// The status.
            status "status": CompactionStatus [Required],
        }
        optional {
            /// The summary that replaces the conversation.
            summary "summary": Patch<Vec<ContentBlock>> [PatchSkipInvalid],
            /// The error message.
            error "error": Patch<String> [PatchText],
            // V2-18
            /// Custom metadata of extensions (`_meta`), patched by key.
            meta "_meta": Patch<Meta> [PatchMeta],
        }
        no_meta!
    }
}

object! {
    /// A piece of a compaction's summary.
    pub struct CompactionSummaryChunk {
        required {
            /// The compaction.
            compaction_id "compactionId": CompactionId [Required],
            /// The piece.
            content "content": ContentBlock [Required],
        }
    }
}
