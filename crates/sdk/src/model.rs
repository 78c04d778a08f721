//! The nouns of a conversation, which a program uses in both versions of the protocol: content,
//! plans, tool calls, permissions, forms, modes, options, commands, servers and logins.
//!
//! The SDK writes and reads them in the version of the connection. Messages of one version are in
//! [`wire`](crate::wire).
//!
//! ```
//! use attache::model::{PermissionOption, PermissionOptionKind, PlanEntry, PlanEntryPriority, PlanEntryStatus, ToolKind};
//!
//! let step = PlanEntry::new("Run the tests", PlanEntryPriority::High, PlanEntryStatus::InProgress);
//! let once = PermissionOption::new("once", "Allow once", PermissionOptionKind::AllowOnce);
//! assert_eq!((step.content.as_str(), once.name.as_str()), ("Run the tests", "Allow once"));
//! assert_eq!(ToolKind::Execute.as_str(), "execute");
//! ```

// Content.
pub use attache_wire::v1::{
    Annotations, AudioContent, BlobResourceContents, ContentBlock, EmbeddedResource,
    EmbeddedResourceResource, ImageContent, ResourceLink, Role, TextContent, TextResourceContents,
};
// Ids.
pub use attache_wire::v1::{
    AuthMethodId, ElicitationId, MessageId, PermissionOptionId, SessionConfigGroupId, SessionConfigId,
    SessionConfigValueId, SessionId, SessionModeId, TerminalId, ToolCallId,
};
// What an agent reports.
pub use attache_wire::v1::{
    CompactionSummaryChunk, CompactionUpdate, Content, Cost, Diff, Notice, NoticeSeverity, Plan, PlanEntry,
    PlanEntryPriority, PlanEntryStatus, SessionInfoUpdate, StopReason, ToolCallContent, ToolCallLocation,
    ToolKind, UsageUpdate,
};
// What an agent asks.
pub use attache_wire::v1::{
    BooleanPropertySchema, ElicitationAcceptAction, ElicitationAction, ElicitationContentValue,
    ElicitationPropertySchema, ElicitationSchema, EnumOption, Fields, IntegerPropertySchema,
    MultiSelectItems, MultiSelectPropertySchema, NumberPropertySchema, PermissionOption,
    PermissionOptionKind, StringFormat, StringPropertySchema,
};
// What a session offers.
pub use attache_wire::v1::{
    AvailableCommand, AvailableCommandInput, ListSessionsRequest, ListSessionsResponse, SessionConfigBoolean,
    SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelect, SessionConfigSelectGroup, SessionConfigSelectOption, SessionConfigSelectOptions,
    SessionInfo, SessionMode, SessionModeState, UnstructuredCommandInput,
};
// What both sides say of themselves, and what sessions use.
pub use attache_wire::v1::{
    AuthMethod, AuthMethodAgent, AuthMethodTerminal, EnvVariable, HttpHeader, Implementation, McpServer,
    McpServerHttp, McpServerStdio, ProtocolVersion,
};
#[cfg(feature = "unstable")]
pub use attache_wire::v1::{
    LlmProtocol, PlanFile, PlanItems, PlanMarkdown, PlanRemoved, PlanUpdate, PlanUpdateContent, ProviderId,
    ProviderInfo, SetProviderRequest,
};
pub use attache_wire::v2::PlanId;
