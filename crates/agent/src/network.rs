//! The network of sandboxed commands: one proxy for each session, which asks about every new host.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use attache::agent::Tool as Call;
use attache::wire::v1::{ToolCallStatus, ToolKind};
use attache_host::net::Reach;
use attache_host::policy::{Destination, Effect};
use attache_host::proxy::{self, Options, Proxy};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::tools::Cx;
use crate::turn::permit;

/// The proxy of a session, started with the first command that may use it.
#[derive(Default)]
pub(crate) struct Network {
    proxy: OnceCell<Result<Proxy, String>>,
    /// The turn whose command runs. Commands run one after the other.
    current: std::sync::Arc<Mutex<Option<Cx>>>,
}

/// Lets a command use the network as long as it lives.
pub(crate) struct Access<'a>(&'a Network);

impl Network {
    /// Lets the command that is about to run use the network. Returns the socket of the proxy.
    pub(crate) async fn allow(&self, cx: &Cx) -> Result<(Access<'_>, PathBuf), String> {
        let current = self.current.clone();
        let start = || async {
            let decide = move |to: proxy::Destination| {
                let cx = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
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
        // "Once" is for one command.
        proxy.forget_decisions();
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.clone());
        Ok((Access(self), proxy.socket().to_owned()))
    }
}

impl Drop for Access<'_> {
    fn drop(&mut self) {
        self.0.current.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

async fn ask(cx: &Cx, to: proxy::Destination) -> bool {
    may_connect(cx, Destination { host: to.host, port: Some(to.port), is_near: to.reach != Reach::Internet })
        .await
}

/// Asks whether a connection may be made, as a tool call of its own: the client shows what it is about.
pub(crate) async fn may_connect(cx: &Cx, to: Destination) -> bool {
    let effects = [Effect::Connect(to.clone())];
    let tool = {
        let turn = cx.turn.turn();
        let input = attache::Json::from(json!({ "url": format!("tcp://{to}") }));
        turn.tool(format!("Connect to {to}")).kind(ToolKind::Fetch).input(input)
    };
    // The answer may be known already; then there is nothing to report.
    if let Some(allowed) = permit::known(cx, &effects) {
        return allowed;
    }
    let Ok(call) = cx.live.voice.start(tool).await else { return false };
    let allowed = permit::permit(cx, Some(&call), &effects).await.is_ok();
    let _ = end(cx, &call, allowed).await;
    allowed
}

async fn end(cx: &Cx, call: &Call, allowed: bool) -> attache::Result<()> {
    let status = if allowed { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
    cx.live.voice.change(call, call.change().status(status)).await
}
