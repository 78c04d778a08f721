//! `attache mcp-server`: files and commands of this directory for any MCP client.

use std::path::Path;

use attache_conn::Link;

use crate::agents::{Address, AgentSpec};
use crate::client_services::{ClientServices, Sandbox};
use crate::cx::Cx;
use crate::error::{Failure, Result};
use crate::mcp_server::{Asking, Toolbox, forward, serve};
use crate::output::Relay;
use crate::run::Permits;
use crate::runtime::{runtime, until_interrupted};

/// Serves one client on standard input and output, with the policy of the settings and flags; or
/// forwards to the server of a session.
pub(crate) fn mcp_server(cx: &Cx) -> Result<()> {
    if let Some(socket) = &cx.flags.mcp_server.connect {
        return runtime(until_interrupted(forward(Path::new(socket))));
    }
    cx.warn();
    let mut roots = vec![cx.cwd.clone()];
    roots.extend(cx.directories()?);
    let settings = &cx.config.settings;
    // Answers are remembered for this name.
    let client = AgentSpec::new("mcp-server", Address::command(vec!["attache".into(), "mcp-server".into()])?);
    let policy =
        Permits::new(cx)?.policy(&cx.paths, &client, &roots, crate::credentials::secrets(&cx.paths))?;
    let sandbox = Sandbox { always: settings.sandbox, hidden: cx.paths.all() };
    // Questions go to the client, so nothing arrives here.
    let (services, _) = ClientServices::new(policy, sandbox);
    let tools = Toolbox::new(services, roots, Asking::Client).only(settings.fs, settings.terminal);
    runtime(until_interrupted(async {
        let link = match cx.output.stdout.terminal {
            // A person at a terminal sees foreign text as it may be shown.
            true => Link::from_io(tokio::io::stdin(), Relay::stdout()),
            false => Link::stdio(),
        };
        serve(link, tools).await.map_err(Failure::runtime)
    }))
}
