//! Types and fields that the specification marks as unstable.

mod fork;
mod proxy;
mod session_status;
mod subagent;
mod system_prompt;

pub use fork::*;
pub use proxy::*;
pub use session_status::*;
pub use subagent::*;
pub use system_prompt::*;

pub use crate::v1::{
    DisableProviderRequest, DisableProviderResponse, ListProvidersRequest, ListProvidersResponse,
    LlmProtocol, PlanFile, PlanMarkdown, PlanRemoved, ProviderCurrentConfig, ProviderId, ProviderInfo,
    SetProviderRequest, SetProviderResponse,
};
