//! The protocol versions that an agent speaks.
//!
//! A connection has one version, so the agent is started once more for the version that the first
//! connection did not use.

use attache::client::{Client, Protocol};
use serde_json::json;

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
    let Ok(link) = open_link(cx, spec, |_| {}).await else { return false };
    let protocol = if version == 1 { Protocol::V1 } else { Protocol::Auto };
    // Without capabilities both versions are spoken on the first connection.
    let client = Client::new()
        .info("attache", env!("CARGO_PKG_VERSION"))
        .protocol(protocol)
        .initialize_timeout(patience(cx));
    let Ok(agent) = client.connect(link).await else { return false };
    let spoken = u64::from(agent.protocol_version().0) == version;
    // Nothing is left running when the report is printed.
    agent.shutdown().await;
    spoken
}
