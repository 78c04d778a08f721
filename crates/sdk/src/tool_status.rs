//! The status of tool calls in both versions.

use attache_wire::v1::ToolCallStatus;
use attache_wire::v2::ToolCallStatus as ToolStatus;

/// The status in version 1: a paused call is in progress, a cancelled one has failed. `None` for
/// one that this crate does not know.
pub(crate) fn to_v1(status: &ToolStatus) -> Option<ToolCallStatus> {
    match status {
        ToolStatus::Pending => Some(ToolCallStatus::Pending),
        ToolStatus::InProgress | ToolStatus::Paused => Some(ToolCallStatus::InProgress),
        ToolStatus::Completed => Some(ToolCallStatus::Completed),
        ToolStatus::Failed | ToolStatus::Cancelled => Some(ToolCallStatus::Failed),
        _ => None,
    }
}

/// The status of the model.
pub(crate) fn from_v1(status: ToolCallStatus) -> ToolStatus {
    match status {
        ToolCallStatus::InProgress => ToolStatus::InProgress,
        ToolCallStatus::Completed => ToolStatus::Completed,
        ToolCallStatus::Failed => ToolStatus::Failed,
        _ => ToolStatus::Pending,
    }
}
