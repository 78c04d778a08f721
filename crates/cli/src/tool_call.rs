//! Permission requests and the tool calls that they are about.

use attache::wire::v1::{RequestPermissionRequest, ToolCallUpdate, ToolKind};

/// Adds to a permission request what is known about its tool call, so that rules do not depend on
/// how often an agent repeats itself.
pub(crate) fn complete_request(
    request: &RequestPermissionRequest,
    known: Option<&ToolCallUpdate>,
) -> RequestPermissionRequest {
    let mut request = request.clone();
    let mut known =
        known.cloned().unwrap_or_else(|| ToolCallUpdate::new(request.tool_call.tool_call_id.clone()));
    known.merge(request.tool_call.clone());
    let call = &mut request.tool_call;
    call.title = Some(known.title.unwrap_or_default());
    call.kind = Some(known.kind.unwrap_or(ToolKind::Other));
    call.content = Some(known.content.unwrap_or_default());
    call.locations = Some(known.locations.unwrap_or_default());
    call.raw_input = known.raw_input;
    request
}
