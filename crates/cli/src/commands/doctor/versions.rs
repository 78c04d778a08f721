//! The protocol versions that an agent speaks.
//!
//! A connection has one version, so the agent is started once more for the version that the first connection did not use.

use attache::FrameReader;
use serde_json::{Value, json};

use super::report::{Report, State, Step};
use super::steps::{open_link, patience};
use crate::agents::AgentSpec;
use crate::cx::Cx;

/// The versions of the protocol.
const VERSIONS: [u64; 2] = [1, 2];

/// Reports the versions, of which one has been agreed on already.
pub(super) async fn report(cx: &Cx, spec: &AgentSpec, agreed: u64, report: &mut Report<'_>) {
    let mut spoken = Vec::new();
    for version in VERSIONS {
        if version == agreed || agrees(cx, spec, version).await {
            spoken.push(version);
        }
    }
    report.fact("protocolVersions", json!(spoken));
    let message = match spoken.as_slice() {
        [one] => format!("it speaks version {one}"),
        several => {
            let names: Vec<String> = several.iter().map(u64::to_string).collect();
            format!("it speaks versions {}", names.join(" and "))
        }
    };
    report.add(Step::new("protocol", State::Fine, message));
}

/// Whether the agent answers `initialize` with the offered version.
async fn agrees(cx: &Cx, spec: &AgentSpec, version: u64) -> bool {
    let info = json!({ "name": "attache", "version": env!("CARGO_PKG_VERSION") });
    let params = match version {
        1 => json!({ "protocolVersion": 1, "clientInfo": info, "clientCapabilities": {} }),
        _ => json!({ "protocolVersion": version, "info": info, "capabilities": {} }),
    };
    let request = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let Ok(link) = open_link(cx, spec, |_| {}).await else { return false };
    let (reader, mut writer) = link.split();
    let exchange = async {
        writer.send(request.to_string().as_bytes()).await.ok()?;
        let answered = answer(reader).await;
        let _ = writer.close().await;
        answered
    };
    tokio::time::timeout(patience(cx), exchange).await.ok().flatten() == Some(version)
}

/// The version of the first response. Other lines are skipped, as in the first connection. The agent ends with the reader.
async fn answer(mut reader: FrameReader) -> Option<u64> {
    loop {
        let line = reader.next().await.ok()??;
        let Ok(message) = serde_json::from_slice::<Value>(line) else { continue };
        if message["id"] == 0 && message.get("method").is_none() {
            return message["result"]["protocolVersion"].as_u64();
        }
    }
}
