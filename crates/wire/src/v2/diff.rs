//! Changes of files, as tool calls report them.

use crate::shape::*;

open_enum! {
    /// The kind of a file.
    pub enum DiffFileType {
        /// Text.
        Text = "text",
        /// Bytes that are not text.
        Binary = "binary",
        /// A directory.
        Directory = "directory",
        /// A symbolic link.
        Symlink = "symlink",
    }
}

open_enum! {
    /// The format of a patch.
    pub enum DiffPatchFormat {
        // V2-33
        /// The format of `git diff`, with absolute paths and without the prefixes `a/` and `b/`.
        GitPatch = "git_patch",
    }
}

object! {
    // V2-33
    /// The changes as a patch, which must agree with the list of changes.
    pub struct DiffPatch {
        required {
            /// Its format.
            format "format": DiffPatchFormat [Required],
            /// The patch.
            text "text": String [Required],
        }
    }
}

object! {
    /// A change at one path.
    pub struct DiffPathChange {
        required {
            /// The absolute path.
            path "path": String [Required],
        }
        no_meta!
    }
}

object! {
    /// A change between two paths.
    pub struct DiffPathPairChange {
        required {
            /// The absolute path before.
            old_path "oldPath": String [Required],
            /// The absolute path after.
            path "path": String [Required],
        }
        no_meta!
    }
}

tagged! {
    // V2-33
    /// The change of a file.
    pub enum DiffOperation by "operation" [no_from] {
        /// The file is new.
        Add(DiffPathChange) = "add",
        /// The file is gone.
        Delete(DiffPathChange) = "delete",
        /// The content is different.
        Modify(DiffPathChange) = "modify",
        /// The file has another path; its content may be different too.
        Move(DiffPathPairChange) = "move",
        /// The file is a copy; its content may be different too.
        Copy(DiffPathPairChange) = "copy",
    }
    other Other
}

flattened! {
    /// The change of one file.
    pub struct DiffChange {
        unions {
            /// The operation and its paths; the members are flattened into the object.
            operation: DiffOperation,
        }
        optional {
            /// The kind of file.
            file_type "fileType": Option<DiffFileType> [LenientText],
            /// The media type.
            mime_type "mimeType": Option<String> [LenientText],
        }
    }
}

impl DiffChange {
    /// A new file.
    pub fn add(path: impl Into<String>) -> Self {
        DiffChange::new(DiffOperation::Add(DiffPathChange::new(path)))
    }

    /// A deleted file.
    pub fn delete(path: impl Into<String>) -> Self {
        DiffChange::new(DiffOperation::Delete(DiffPathChange::new(path)))
    }

    /// A file with new content.
    pub fn modify(path: impl Into<String>) -> Self {
        DiffChange::new(DiffOperation::Modify(DiffPathChange::new(path)))
    }

    /// A moved file.
    pub fn rename(old_path: impl Into<String>, path: impl Into<String>) -> Self {
        DiffChange::new(DiffOperation::Move(DiffPathPairChange::new(old_path, path)))
    }

    /// A copied file.
    pub fn copy(old_path: impl Into<String>, path: impl Into<String>) -> Self {
        DiffChange::new(DiffOperation::Copy(DiffPathPairChange::new(old_path, path)))
    }
}

object! {
    /// Changes of files.
    pub struct Diff {
        required {
            /// The changes; malformed ones are skipped.
            changes "changes": Vec<DiffChange> [ListSkipInvalid],
        }
        optional {
            // V2-34
            /// The changes as a patch. It may be absent.
            patch "patch": Option<DiffPatch> [Lenient],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn operations_name_one_path_or_two() {
        // shows V2-20, V2-33
        let text = r#"{"changes":[{"operation":"move","oldPath":"/a","path":"/b","fileType":"_x"},
            {"operation":"move","path":"/b"},{"operation":"add"},{"path":"/a"},{"path":"/c","operation":"delete"}]}"#;
        let diff: Diff = serde_json::from_str(text).unwrap();
        let moved = DiffChange::rename("/a", "/b").file_type("_x");
        assert_eq!(diff.changes, [moved, DiffChange::delete("/c")]);
        let older = r#"{"path":"/a","oldText":"a","newText":"b"}"#;
        assert!(serde_json::from_str::<Diff>(older).is_err());
        assert!(serde_json::from_str::<Diff>(r#"{"changes":null}"#).is_err());
        assert!(serde_json::from_str::<Diff>(r#"{"changes":{}}"#).is_err());
    }

    #[test]
    fn unknown_operations_are_kept() {
        // shows V2-21
        let text =
            r#"{"operation":"_chmod","mode":"755","path":"/a","mimeType":"text/plain","_meta":{"k":1}}"#;
        let change: DiffChange = serde_json::from_str(text).unwrap();
        assert_eq!(change.mime_type.as_deref(), Some("text/plain"));
        assert!(matches!(&change.operation, DiffOperation::Other(unknown) if unknown.tag == "_chmod"));
        let written: serde_json::Value = serde_json::to_value(&change).unwrap();
        assert_eq!(written, serde_json::from_str::<serde_json::Value>(text).unwrap());
    }
}
