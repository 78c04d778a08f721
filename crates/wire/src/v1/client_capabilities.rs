//! What the client can do. INIT-15: what is absent is not supported; INIT-20: what is malformed is absent.

#[cfg(feature = "drafts")]
use super::{ClientNesCapabilities, PositionEncodingKind};
#[cfg(feature = "unstable")]
use super::{PlanCapabilities, SubagentCapabilities};
use crate::shape::*;

object! {
    /// What the client can do, said once in `initialize` (INIT-17). Extensions announce themselves in `meta`
    /// (INIT-27, INIT-28).
    pub struct ClientCapabilities {
        optional {
            /// Files it reads and writes for the agent.
            fs "fs": FileSystemCapabilities [OrDefault],
            /// Whether it has all `terminal/*` methods.
            terminal "terminal": bool [OrDefault],
            /// What it can do with sessions.
            session "session": Option<ClientSessionCapabilities> [Lenient],
            /// Whether it shows subagents (unstable; SUBA-01).
            #[cfg(feature = "unstable")]
            subagents "subagents": Option<SubagentCapabilities> [Lenient],
            /// Whether it takes plans by id (unstable).
            #[cfg(feature = "unstable")]
            plan "plan": Option<PlanCapabilities> [Lenient],
            /// Ways to authenticate that need its help.
            auth "auth": AuthCapabilities [OrDefault],
            /// Questions it can ask the person.
            elicitation "elicitation": Option<ElicitationCapabilities> [Lenient],
            /// Edit suggestions it takes; only in older drafts.
            #[cfg(feature = "drafts")]
            nes "nes": Option<ClientNesCapabilities> [Lenient],
            /// Position encodings it supports, best first; only in older drafts (NES-10).
            #[cfg(feature = "drafts")]
            position_encodings "positionEncodings": Option<Vec<PositionEncodingKind>> [SkipInvalid],
        }
    }
}

object! {
    /// Files that the client reads and writes for the agent.
    pub struct FileSystemCapabilities {
        optional {
            /// Whether it has `fs/read_text_file`.
            read_text_file "readTextFile": bool [OrDefault],
            /// Whether it has `fs/write_text_file`.
            write_text_file "writeTextFile": bool [OrDefault],
        }
    }
}

object! {
    /// What the client can do with sessions.
    pub struct ClientSessionCapabilities {
        optional {
            /// Whether it shows compactions.
            compaction "compaction": Option<CompactionCapabilities> [Lenient],
            /// Which config options it shows besides selects.
            config_options "configOptions": Option<SessionConfigOptionsCapabilities> [Lenient],
            /// Whether it shows notices.
            notices "notices": Option<NoticeCapabilities> [Lenient],
        }
    }
}

object! {
    /// Which config options the client shows besides selects.
    pub struct SessionConfigOptionsCapabilities {
        optional {
            /// On and off (CONF-07).
            boolean "boolean": Option<BooleanConfigOptionCapabilities> [Lenient],
        }
    }
}

object! {
    /// The client shows compactions.
    pub struct CompactionCapabilities { no_meta! }
}

object! {
    /// The client shows notices.
    pub struct NoticeCapabilities { no_meta! }
}

object! {
    /// Ways to authenticate that need the client's help.
    pub struct AuthCapabilities {
        optional {
            /// Whether it can run the agent in a terminal to log in (AUTH-08, AUTH-09).
            terminal "terminal": bool [OrDefault],
        }
    }
}

object! {
    /// Questions that the client can ask the person; an empty object offers none.
    pub struct ElicitationCapabilities {
        optional {
            /// Forms.
            form "form": Option<ElicitationFormCapabilities> [Lenient],
            /// Pages to open elsewhere.
            url "url": Option<ElicitationUrlCapabilities> [Lenient],
        }
    }
}

markers! {
    /// The client shows boolean config options.
    BooleanConfigOptionCapabilities,
    /// The client shows forms.
    ElicitationFormCapabilities,
    /// The client opens pages elsewhere.
    ElicitationUrlCapabilities,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(text: &str) -> ClientCapabilities {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn malformed_capabilities_are_absent() {
        // shows INIT-15, INIT-20
        let text = r#"{"fs":true,"terminal":"yes","elicitation":7,"auth":null,"session":[],"plan":true}"#;
        assert_eq!(read(text), ClientCapabilities::new());
    }

    #[test]
    fn empty_object_means_yes_and_null_means_no() {
        // shows INIT-19
        let caps =
            read(r#"{"elicitation":{"form":null,"url":{}},"session":{"notices":{},"compaction":null}}"#);
        let elicitation = caps.elicitation.unwrap();
        assert!(elicitation.form.is_none() && elicitation.url.is_some());
        let session = caps.session.unwrap();
        assert!(session.notices.is_some() && session.compaction.is_none());
    }

    #[test]
    fn only_what_is_supported_is_written() {
        let caps = ClientCapabilities::new()
            .fs(FileSystemCapabilities::new().read_text_file(true))
            .terminal(true)
            .plan(PlanCapabilities::new());
        let text = r#"{"fs":{"readTextFile":true},"terminal":true,"plan":{}}"#;
        assert_eq!(serde_json::to_string(&caps).unwrap(), text);
        assert_eq!(read(text), caps);
    }

    #[test]
    fn unknown_position_encodings_are_skipped() {
        // shows NES-10
        let caps = read(r#"{"positionEncodings":["ebcdic","utf-8"]}"#);
        assert_eq!(caps.position_encodings, Some(vec![PositionEncodingKind::Utf8]));
    }
}
