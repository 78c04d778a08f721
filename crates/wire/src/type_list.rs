//! The lists of all types of both versions by stability, for tests that treat every type alike.

/// Calls a macro with the names of all types of version 1, in groups. Not part of the public API.
///
/// Left out are types that only occur inside of one other type and share its object.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_v1_type {
    ($callback:ident) => {
        $callback! {
            stable [
                AgentAuthCapabilities, AgentCapabilities, Annotations, AudioContent, AuthCapabilities,
                AuthenticateRequest, AuthenticateResponse, AuthMethod, AuthMethodAgent, AuthMethodId,
                AuthMethodTerminal, AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate,
                BlobResourceContents, BooleanConfigOptionCapabilities, BooleanPropertySchema, CancelNotification,
                CancelRequestNotification, ClientCapabilities, ClientSessionCapabilities, CloseSessionRequest,
                CloseSessionResponse, CompactionCapabilities, CompactionId, CompactionStatus,
                CompactionSummaryChunk, CompactionUpdate, CompleteElicitationNotification, ConfigOptionUpdate,
                Content, ContentBlock, ContentChunk, Cost, CreateElicitationRequest, CreateElicitationResponse,
                CreateTerminalRequest, CreateTerminalResponse, CurrentModeUpdate, DeleteSessionRequest,
                DeleteSessionResponse, Diff, ElicitationAcceptAction, ElicitationCapabilities,
                ElicitationContentValue, ElicitationFormCapabilities, ElicitationId, ElicitationPropertySchema,
                ElicitationRequestScope, ElicitationSchema, ElicitationSchemaType, ElicitationSessionScope,
                ElicitationUrlCapabilities, EmbeddedResource, EmbeddedResourceResource, EnumOption, EnvVariable,
                Error, ErrorCode, ExtNotification, ExtRequest, ExtResponse, FileSystemCapabilities, HttpHeader,
                ImageContent, Implementation, InitializeRequest, InitializeResponse, IntegerPropertySchema,
                KillTerminalRequest, KillTerminalResponse, ListSessionsRequest, ListSessionsResponse,
                LoadSessionRequest, LoadSessionResponse, LogoutCapabilities, LogoutRequest, LogoutResponse,
                McpCapabilities, McpServer, McpServerHttp, McpServerSse, McpServerStdio, MessageId,
                MultiSelectItems, MultiSelectPropertySchema, NewSessionRequest, NewSessionResponse, Notice,
                NoticeCapabilities, NoticeSeverity, NumberPropertySchema, PermissionOption, PermissionOptionId,
                PermissionOptionKind, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, PromptCapabilities,
                PromptRequest, PromptResponse, ProtocolVersion, ReadTextFileRequest, ReadTextFileResponse,
                ReleaseTerminalRequest, ReleaseTerminalResponse, RequestId, RequestPermissionOutcome,
                RequestPermissionRequest, RequestPermissionResponse, ResourceLink, ResumeSessionRequest,
                ResumeSessionResponse, Role, SelectedPermissionOutcome, SessionAdditionalDirectoriesCapabilities,
                SessionCapabilities, SessionCloseCapabilities, SessionConfigBoolean, SessionConfigGroupId,
                SessionConfigId, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionsCapabilities,
                SessionConfigSelect, SessionConfigSelectGroup, SessionConfigSelectOption,
                SessionConfigSelectOptions, SessionConfigValueId, SessionDeleteCapabilities, SessionId, SessionInfo,
                SessionInfoUpdate, SessionListCapabilities, SessionMode, SessionModeId, SessionModeState,
                SessionNotification, SessionResumeCapabilities, SessionUpdate, SetSessionConfigOptionRequest,
                SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse, StopReason,
                StringFormat, StringMultiSelectItems, StringPropertySchema, Terminal, TerminalExitStatus,
                TerminalId, TerminalOutputRequest, TerminalOutputResponse, TextContent, TextResourceContents,
                TitledMultiSelectItems, ToolCall, ToolCallContent, ToolCallId, ToolCallLocation, ToolCallStatus,
                ToolCallUpdate, ToolKind, UnstructuredCommandInput, UsageUpdate, WaitForTerminalExitRequest,
                WaitForTerminalExitResponse, WriteTextFileRequest, WriteTextFileResponse,
            ]
            unstable [
                ArchiveSessionRequest, ArchiveSessionResponse, AuthAccount, AuthState, AuthStatusCapabilities,
                AuthStatusRequest, AuthStatusResponse, AuthStatusUpdateNotification, DisableProviderRequest,
                DisableProviderResponse, ErrorStopReason, ForkSessionRequest, ForkSessionResponse, IdleStateUpdate,
                ListProvidersRequest, ListProvidersResponse, LlmProtocol, McpError, McpRequestId, McpServerAcp,
                McpServerAcpId, MessageMcpNotification, MessageMcpRequest, MessageMcpResponse, PlanCapabilities,
                PlanFile, PlanId, PlanItems, PlanMarkdown, PlanRemoved, PlanUpdate, PlanUpdateContent,
                ProviderCurrentConfig, ProviderId, ProviderInfo, ProvidersCapabilities, RequiresActionStateUpdate,
                RunningStateUpdate, SessionArchiveCapabilities, SessionArchiveFilter, SessionCancelCapabilities,
                SessionForkCapabilities, SessionMessage, SessionMessageChunk, SessionStatus,
                SessionStatusCapabilities, SessionStatusRequest, SessionStatusResponse,
                SessionSystemPromptCapabilities, SessionSystemPromptModeCapabilities,
                SessionSystemPromptOverrideCapabilities, SessionTitleCapabilities, SetProviderRequest,
                SetProviderResponse, SetSessionTitleRequest, SetSessionTitleResponse, StateUpdate,
                SubagentCapabilities, SubagentSessionCapabilities, SubagentUpdate, SystemPrompt, SystemPromptMode,
                UnarchiveSessionRequest, UnarchiveSessionResponse, UnknownStateUpdate, Usage,
            ]
            proxy [
                InitializeProxyRequest, InitializeProxyResponse, ProxySuccessorNotification, ProxySuccessorRequest,
                ProxySuccessorResponse,
            ]
            drafts [
                AcceptNesNotification, AuthEnvVar, AuthMethodEnvVar, ClientNesCapabilities, CloseNesRequest,
                CloseNesResponse, ConnectedMcpNotification, ConnectedMcpRequest, ConnectMcpRequest,
                ConnectMcpResponse, DidChangeDocumentNotification, DidCloseDocumentNotification,
                DidFocusDocumentNotification, DidOpenDocumentNotification, DidSaveDocumentNotification,
                DisconnectMcpRequest, DisconnectMcpResponse, ElicitationStringType, McpConnectionId, ModelId,
                ModelInfo, NesCapabilities, NesContextCapabilities, NesDiagnostic, NesDiagnosticsCapabilities,
                NesDiagnosticSeverity, NesDocumentDidChangeCapabilities, NesDocumentDidCloseCapabilities,
                NesDocumentDidFocusCapabilities, NesDocumentDidOpenCapabilities, NesDocumentDidSaveCapabilities,
                NesDocumentEventCapabilities, NesEditHistoryCapabilities, NesEditHistoryEntry, NesEditSuggestion,
                NesEventCapabilities, NesExcerpt, NesJumpCapabilities, NesJumpSuggestion, NesOpenFile,
                NesOpenFilesCapabilities, NesRecentFile, NesRecentFilesCapabilities, NesRejectReason,
                NesRelatedSnippet, NesRelatedSnippetsCapabilities, NesRenameCapabilities, NesRenameSuggestion,
                NesRepository, NesSearchAndReplaceCapabilities, NesSearchAndReplaceSuggestion, NesSuggestContext,
                NesSuggestion, NesSuggestionId, NesTextEdit, NesTriggerKind, NesUserAction,
                NesUserActionsCapabilities, Position, PositionEncodingKind, Range, RejectNesNotification,
                SessionModelState, SetSessionModelRequest, SetSessionModelResponse, StartNesRequest,
                StartNesResponse, SuggestNesRequest, SuggestNesResponse, TextDocumentContentChangeEvent,
                TextDocumentSyncKind, WorkspaceFolder,
            ]
        }
    };
}

/// Calls a macro with the names of all types of version 2, in groups. Not part of the public API.
///
/// Left out are types that only occur inside of one other type and share its object.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_v2_type {
    ($callback:ident) => {
        $callback! {
            stable [
                AgentAuthCapabilities, AgentCapabilities, AgentMessage, AgentThought, Annotations, AudioContent,
                AuthMethod, AuthMethodAgent, AuthMethodId, AuthMethodTerminal, AvailableCommand,
                AvailableCommandInput, AvailableCommandsUpdate, BackgroundTerminal, BackgroundToolCall,
                BackgroundWork, BlobResourceContents, BooleanPropertySchema, CancelledPermissionOutcome,
                CancelRequestNotification, CancelSessionNotification, CancelTerminalRequest,
                CancelTerminalResponse, CancelToolCallRequest, CancelToolCallResponse, ClientAuthCapabilities,
                ClientCapabilities, CloseSessionRequest, CloseSessionResponse, Command,
                CommandPermissionSubject, CompactionId, CompactionStatus, CompactionSummaryChunk,
                CompactionUpdate, CompleteElicitationNotification, ConfigOptionUpdate, Content, ContentBlock,
                ContentChunk, Cost, CreateElicitationRequest, CreateElicitationResponse, DeleteSessionRequest,
                DeleteSessionResponse, Diff, DiffChange, DiffFileType, DiffPatch, DiffPatchFormat,
                DiffPathChange, DiffPathPairChange, ElicitationAcceptAction, ElicitationCapabilities,
                ElicitationContentValue, ElicitationFormCapabilities, ElicitationId, ElicitationPropertySchema,
                ElicitationRequestScope, ElicitationSchema, ElicitationSchemaType, ElicitationSessionScope,
                ElicitationUrlCapabilities, EmbeddedResource, EmbeddedResourceResource, EnumOption, EnvVariable,
                Error, ErrorCode, ErrorStopReason, ExtNotification, ExtRequest, ExtResponse, HttpHeader, Icon,
                IconTheme, IdleStateUpdate, ImageContent, Implementation, InitializeRequest, InitializeResponse,
                IntegerPropertySchema, ListSessionsRequest, ListSessionsResponse, LoginAuthRequest,
                LoginAuthResponse, LogoutAuthRequest, LogoutAuthResponse, McpCapabilities, McpHttpCapabilities,
                McpServer, McpServerHttp, McpServerStdio, McpStdioCapabilities, MessageId, MultiSelectItems,
                MultiSelectPropertySchema, NewSessionRequest, NewSessionResponse, Notice, NoticeSeverity,
                NumberPropertySchema, PermissionOption, PermissionOptionId, PermissionOptionKind, PlanEntry,
                PlanEntryPriority, PlanEntryStatus, PlanId, PlanItems, PlanUpdate, PlanUpdateContent,
                PromptAudioCapabilities, PromptCapabilities, PromptEmbeddedContextCapabilities,
                PromptImageCapabilities, PromptRequest, PromptResponse, ProtocolVersion, ReplayFrom,
                ReplayFromStart, RequestId, RequestPermissionOutcome, RequestPermissionRequest,
                RequestPermissionResponse, RequestPermissionSubject, RequiresActionStateUpdate, ResourceLink,
                ResumeSessionRequest, ResumeSessionResponse, Role, RunningStateUpdate,
                SelectedPermissionOutcome, SessionAdditionalDirectoriesCapabilities, SessionCapabilities,
                SessionConfigBoolean, SessionConfigGroupId, SessionConfigId, SessionConfigOption,
                SessionConfigOptionCategory, SessionConfigSelect, SessionConfigSelectGroup,
                SessionConfigSelectOption, SessionConfigSelectOptions, SessionConfigValueId,
                SessionDeleteCapabilities, SessionId, SessionInfo, SessionInfoUpdate, SessionNotFoundErrorData,
                SessionUpdate, SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, StateUpdate,
                StringFormat, StringMultiSelectItems, StringPropertySchema, Terminal, TerminalAuthCapabilities,
                TerminalCancelCapabilities, TerminalCapabilities, TerminalExitStatus, TerminalId,
                TerminalOutput, TerminalOutputChunk, TerminalSize, TerminalUpdate, TextCommandInput,
                TextContent, TextResourceContents, TitledMultiSelectItems, ToolCallCancelCapabilities,
                ToolCallCapabilities, ToolCallContent, ToolCallContentChunk, ToolCallId, ToolCallLocation,
                ToolCallPermissionSubject, ToolCallStatus, ToolCallUpdate, ToolKind,
                UnsupportedProtocolVersionErrorData, UpdateSessionNotification, UsageUpdate, UserMessage,
            ]
            unstable [
                ArchiveSessionRequest, ArchiveSessionResponse, AuthAccount, AuthState, AuthStatusCapabilities,
                AuthStatusRequest, AuthStatusResponse, AuthStatusUpdateNotification, BackgroundSubagent,
                DisableProviderRequest, DisableProviderResponse, ForkSessionRequest, ForkSessionResponse,
                ListProvidersRequest, ListProvidersResponse, LlmProtocol, McpAcpCapabilities, McpError,
                McpRequestId, McpServerAcp, McpServerAcpId, MessageMcpNotification, MessageMcpRequest,
                MessageMcpResponse, PlanFile, PlanMarkdown, PlanRemoved, ProviderCurrentConfig, ProviderId,
                ProviderInfo, ProvidersCapabilities, SessionArchiveCapabilities, SessionArchiveFilter,
                SessionCancelCapabilities, SessionForkCapabilities, SessionMessage, SessionMessageChunk,
                SessionStatus, SessionStatusCapabilities, SessionStatusRequest, SessionStatusResponse,
                SessionSystemPromptCapabilities, SessionSystemPromptModeCapabilities,
                SessionSystemPromptOverrideCapabilities, SessionTitleCapabilities, SetProviderRequest,
                SetProviderResponse, SetSessionTitleRequest, SetSessionTitleResponse,
                SubagentSessionCapabilities, SubagentUpdate, SystemPrompt, SystemPromptMode,
                UnarchiveSessionRequest, UnarchiveSessionResponse, UnknownStateUpdate, Usage,
            ]
            proxy [
                InitializeProxyRequest, InitializeProxyResponse, ProxySuccessorNotification,
                ProxySuccessorRequest, ProxySuccessorResponse,
            ]
        }
    };
}

/// Fails to compile if a listed type is missing in a build with the features of its group.
macro_rules! assert_available {
    ($version:ident stable [$($stable:ident,)+] unstable [$($unstable:ident,)+] proxy [$($proxy:ident,)+]
     $(drafts [$($draft:ident,)+])?) => {
        const _: &[usize] = &[$(size_of::<crate::$version::$stable>()),+];
        #[cfg(feature = "unstable")]
        const _: &[usize] = &[$(size_of::<crate::$version::$unstable>(),)+ $(size_of::<crate::$version::$proxy>()),+];
        $(#[cfg(feature = "drafts")]
        const _: &[usize] = &[$(size_of::<crate::$version::$draft>()),+];)?
    };
}

macro_rules! assert_v1 {
    ($($groups:tt)+) => { assert_available! { v1 $($groups)+ } };
}

macro_rules! assert_v2 {
    ($($groups:tt)+) => { assert_available! { v2 $($groups)+ } };
}

for_each_v1_type!(assert_v1);
for_each_v2_type!(assert_v2);
