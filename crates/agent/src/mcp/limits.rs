//! Limits for MCP servers, which are untrusted. Exceeding one is reported as an error or a cut, and
//! never blocks.

/// The longest message, in bytes. A longer response fails its call.
pub(super) const MESSAGE_BYTES: usize = 8 << 20;
/// Open requests of a server. With this many, nothing more is read from it.
pub(super) const OPEN_REQUESTS: usize = 16;
/// Notifications that are dropped before other tasks run.
pub(super) const DROPPED_IN_A_ROW: usize = 64;

/// The pages of a list, the entries on all of them, and their bytes as JSON.
pub(super) const LIST_PAGES: usize = 32;
pub(super) const LIST_ENTRIES: usize = 256;
pub(super) const LIST_BYTES: usize = 1 << 20;
/// The longest cursor.
pub(super) const CURSOR_BYTES: usize = 4 << 10;

/// The longest name of a tool, its longest description and schema.
pub(super) const TOOL_NAME_BYTES: usize = 256;
pub(super) const DESCRIPTION_BYTES: usize = 4_000;
pub(super) const SCHEMA_BYTES: usize = 64 << 10;

/// The text of one result, its parts, its images and their bytes as base64.
pub(super) const RESULT_TEXT_BYTES: usize = 60_000;
pub(super) const RESULT_PARTS: usize = 64;
pub(super) const RESULT_IMAGES: usize = 8;
pub(super) const RESULT_IMAGE_BYTES: usize = 6 << 20;
/// The structured form of a result.
pub(super) const STRUCTURED_BYTES: usize = 64 << 10;
/// The text of an error, and the last line of stderr that explains one.
pub(super) const ERROR_BYTES: usize = 2_000;
pub(super) const STDERR_LINE_BYTES: usize = 300;

/// Questions to the user during one call.
pub(super) const QUESTIONS: usize = 16;
/// The text of a question, the fields of its form, and the form as JSON.
pub(super) const QUESTION_BYTES: usize = 2_000;
pub(super) const FORM_FIELDS: usize = 32;
pub(super) const FORM_BYTES: usize = 32 << 10;
/// The URL of a page, and the id of the question.
pub(super) const URL_BYTES: usize = 4 << 10;
pub(super) const QUESTION_ID_BYTES: usize = 256;
