//! Progress of a compaction. Content blocks differ between the versions.

use super::{CompactionId, CompactionStatus, ContentBlock};
use crate::shape::*;
use crate::{Meta, Patch};

object! {
    /// Progress of a compaction of the conversation. Absent members stay, `null` clears.
    pub struct CompactionUpdate { // NOTE-09
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
            error "error": Patch<String> [PatchLenient],
            /// Custom metadata of extensions (`_meta`).
            meta "_meta": Patch<Meta> [PatchMeta],
        }
        no_meta!
    }
}

object! {
    /// A piece of a compaction's summary.
    pub struct CompactionSummaryChunk { // NOTE-07
        required {
            /// The compaction.
            compaction_id "compactionId": CompactionId [Required],
            /// The piece.
            content "content": ContentBlock [Required],
        }
    }
}
