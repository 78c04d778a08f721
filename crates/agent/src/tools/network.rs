//! The network of sandboxed commands: one proxy per session, which asks about every new host.

use std::path::PathBuf;
use std::sync::Arc;

use attache::wire::v1::ToolKind;
use attache_host::net::Reach;
use attache_host::policy::{Destination, Effect};
use attache_host::proxy::{self, Options, Proxy};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::OnceCell;

use super::{ToolContext, permission};

/// The proxy of a session, started with the first command that may use it.
#[derive(Default)]
pub(super) struct CommandNetwork {
    proxy: OnceCell<Result<Proxy, String>>,
    /// The turn whose command runs. Commands never run in parallel.
    current: Arc<Mutex<Option<ToolContext>>>,
}

/// Network access for one command, until it is dropped.
pub(super) struct Access<'a>(&'a CommandNetwork);

impl CommandNetwork {
    /// Opens the network for one command and returns the socket of the proxy.
    pub(super) async fn allow(&self, cx: &ToolContext) -> Result<(Access<'_>, PathBuf), String> {
        let current = self.current.clone();
        let start = || async {
            let decide = move |to: proxy::Destination| {
                let cx = current.lock().clone();
                async move {
                    match cx {
                        Some(cx) => ask(&cx, to).await,
                        None => false,
                    }
                }
            };
            Proxy::start(Options::from_env(), decide).map_err(|error| format!("the network proxy: {error}"))
        };
        let proxy = self.proxy.get_or_init(start).await.as_ref().map_err(Clone::clone)?;
        // An answer "once" covers one command.
        proxy.forget_decisions();
        *self.current.lock() = Some(cx.clone());
        Ok((Access(self), proxy.socket().to_owned()))
    }
}

impl Drop for Access<'_> {
    fn drop(&mut self) {
        self.0.current.lock().take();
    }
}

async fn ask(cx: &ToolContext, to: proxy::Destination) -> bool {
    may_connect(cx, Destination { host: to.host, port: Some(to.port), is_near: to.reach != Reach::Internet })
        .await
}

/// Asks whether a connection may be made, in a tool call of its own that shows the destination.
pub(super) async fn may_connect(cx: &ToolContext, to: Destination) -> bool {
    let effects = [Effect::Connect(to.clone())];
    let tool = {
        let turn = cx.turn.turn();
        let input = attache::Json::from(json!({ "url": format!("tcp://{to}") }));
        turn.tool(format!("Connect to {to}")).kind(ToolKind::Fetch).input(input)
    };
    // Without a question there is nothing to report.
    if let Some(allowed) = permission::decided(cx, &effects) {
        return allowed;
    }
    let Ok(call) = cx.session.reporter.start_tool(tool).await else { return false };
    let allowed = permission::request(cx, Some(&call), &effects).await.is_ok();
    cx.session.reporter.end_tool(&call, call.change(), !allowed).await;
    allowed
}
