//! Notices and compactions.

// NOTE-01 to NOTE-12

use crate::shape::*;
use crate::v1::{CompactionId, ContentBlock};

#[path = "../both/notice.rs"]
mod both;
pub use both::*;

open_enum! {
    /// The severity of a notice. Unlisted values get a plain presentation.
    pub enum NoticeSeverity { // NOTE-03
        /// Information.
        Info = "info",
        /// A warning.
        Warning = "warning",
        /// An error.
        Error = "error",
    }
}

object! {
    /// A message to show once; nothing depends on it.
    pub struct Notice { // NOTE-02, NOTE-04
        required {
            /// The severity.
            severity "severity": NoticeSeverity [Required],
            /// The title; never empty.
            title "title": String [Required],
        }
        optional {
            /// Details to show.
            description "description": Option<String> [LenientText],
        }
    }
}

open_enum! {
    /// The status of a compaction.
    pub enum CompactionStatus { // NOTE-08
        /// Running.
        InProgress = "in_progress",
        /// Completed.
        Completed = "completed",
        /// Failed.
        Failed = "failed",
        /// Cancelled.
        Cancelled = "cancelled",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::Patch;

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
