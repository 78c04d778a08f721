//! Forks, system prompts, and MCP servers in the client.

use attache_wire::v1::{
    AgentCapabilities, ForkSessionRequest, McpServer, SessionId, SystemPrompt, SystemPromptMode,
};

use crate::client::Session;
use crate::client::session_builder::{SessionBuilder, SessionOptions, open, with_options};
use crate::client::v2::requests;
use crate::{Error, Result, check};

/// Kind of a [`SessionBuilder`] that copies a session.
///
/// Example: [`SessionForker`](super::SessionForker).
#[derive(Debug, Clone)]
pub struct Fork(pub(super) SessionId);

impl<K> SessionBuilder<K> {
    /// Sets or clears the system prompt; the agent must support that. Load, resume and fork repeat
    /// it.
    pub fn system_prompt(mut self, prompt: impl Into<Option<SystemPrompt>>) -> Self {
        self.options.system_prompt = prompt.into();
        self
    }
}

impl SessionBuilder<Fork> {
    pub(in crate::client) async fn open(self) -> Result<Session> {
        let Fork(id) = self.kind;
        let checked = self.options.check(&self.agent)?;
        if self.agent.0.is_v2() {
            let roots = checked.roots.clone();
            let request = requests::fork_session(id, checked)?;
            return open(self.agent, &request, roots, |reply| reply.session_id.clone()).await;
        }
        let request = ForkSessionRequest::new(id, checked.cwd).mcp_servers(checked.options.mcp_servers);
        let request = with_options!(request, checked);
        open(self.agent, &request, checked.roots, |reply| reply.session_id.clone()).await
    }
}

/// Checks unstable options against the capabilities of the agent.
pub(in crate::client) fn check_options(options: &SessionOptions, agent: &AgentCapabilities) -> Result<()> {
    check_servers(&options.mcp_servers, agent)?;
    options.system_prompt.as_ref().map_or(Ok(()), |prompt| check_system_prompt(prompt, agent))
}

// MCPA-01: a server in the client needs an agent that calls it.
fn check_servers(servers: &[McpServer], agent: &AgentCapabilities) -> Result<()> {
    let mut ids = Vec::new();
    for server in servers {
        let McpServer::Acp(server) = server else { continue };
        if !agent.mcp_capabilities.acp {
            return Err(Error::Unsupported("MCP servers through this connection"));
        }
        // MCPA-02: one id, one server.
        if ids.contains(&&server.server_id) {
            return Err(Error::Invalid(format!("two MCP servers have the id `{}`", server.server_id)));
        }
        ids.push(&server.server_id);
    }
    Ok(())
}

// SYSP-01, SYSP-03
fn check_system_prompt(prompt: &SystemPrompt, agent: &AgentCapabilities) -> Result<()> {
    let Some(can) = &agent.session_capabilities.system_prompt else {
        return Err(Error::Unsupported("system prompts"));
    };
    let overriding = can.mode.as_ref().is_some_and(|mode| mode.overriding.is_some());
    if prompt.mode != SystemPromptMode::Append && !overriding {
        return Err(Error::Unsupported("system prompts that replace its own"));
    }
    check::system_prompt_content(prompt)
}
