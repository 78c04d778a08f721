//! Notices and compactions: what the agent tells beside the conversation (NOTE-01 to NOTE-12).

use crate::shape::*;
use crate::v1::{CompactionId, ContentBlock};
use crate::{Meta, Patch};

open_enum! {
    /// How much a notice matters. NOTE-03: values that are not listed get a plain presentation.
    pub enum NoticeSeverity {
        /// Good to know.
        Info = "info",
        /// Something may be wrong.
        Warning = "warning",
        /// Something is wrong.
        Error = "error",
    }
}

object! {
    /// Something to show once; nothing depends on its being seen (NOTE-02, NOTE-04).
    pub struct Notice {
        required {
            /// How much it matters.
            severity "severity": NoticeSeverity [Required],
            /// What it says; never empty.
            title "title": String [Required],
        }
        optional {
            /// What there is to add.
            description "description": Option<String> [LenientText],
        }
    }
}

open_enum! {
    /// How far a compaction is (NOTE-08).
    pub enum CompactionStatus {
        /// Running.
        InProgress = "in_progress",
        /// Ended well.
        Completed = "completed",
        /// Ended badly.
        Failed = "failed",
        /// Given up.
        Cancelled = "cancelled",
    }
}

object! {
    /// A compaction of the conversation begins, goes on or ends. NOTE-09: what is absent stays, `null` clears.
    pub struct CompactionUpdate {
        required {
            /// The compaction.
            compaction_id "compactionId": CompactionId [Required],
            /// How far it is.
            status "status": CompactionStatus [Required],
        }
        optional {
            /// What stands for the conversation from now on.
            summary "summary": Patch<Vec<ContentBlock>> [PatchSkipInvalid],
            /// What went wrong.
            error "error": Patch<String> [PatchLenient],
            /// What extensions attach (`_meta`).
            meta "_meta": Patch<Meta> [PatchMeta],
        }
        no_meta!
    }
}

object! {
    /// A piece of a compaction's summary (NOTE-07).
    pub struct CompactionSummaryChunk {
        required {
            /// The compaction.
            compaction_id "compactionId": CompactionId [Required],
            /// The piece.
            content "content": ContentBlock [Required],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn unknown_severities_and_statuses_are_kept() {
        // shows NOTE-03
        let text = r#"{"severity":"_loud","title":"x"}"#;
        let notice: Notice = serde_json::from_str(text).unwrap();
        assert_eq!(notice.severity, NoticeSeverity::Other("_loud".into()));
        assert_eq!(serde_json::to_string(&notice).unwrap(), text);
        assert!(serde_json::from_str::<Notice>(r#"{"severity":1,"title":"x"}"#).is_err());
    }

    #[test]
    fn a_compaction_has_three_states_per_member() {
        // shows NOTE-09
        let read = |members: &str| -> CompactionUpdate {
            let text = format!(r#"{{"compactionId":"c","status":"_half"{members}}}"#);
            let update = serde_json::from_str(&text).unwrap();
            assert_eq!(serde_json::to_string(&update).unwrap(), text);
            update
        };
        assert_eq!(read("").summary, Patch::Keep);
        let cleared = read(r#","summary":null,"error":null,"_meta":null"#);
        assert_eq!(
            (cleared.summary, cleared.error, cleared.meta),
            (Patch::Clear, Patch::Clear, Patch::Clear)
        );
        let set = read(r#","summary":[],"error":"e","_meta":{"a":1}"#);
        assert_eq!((set.summary, set.error), (Patch::Set(vec![]), "e".into()));
        let bad = r#"{"compactionId":"c","status":"_half","summary":5,"error":[],"_meta":5}"#;
        assert_eq!(serde_json::from_str::<CompactionUpdate>(bad).unwrap(), read(""));
    }
}
