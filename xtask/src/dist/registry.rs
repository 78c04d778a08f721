//! Our entry in the ACP registry: `attache/agent.json` and `attache/icon.svg` there.

use serde_json::json;

use super::target::Target;
use super::{AUTHORS, LICENCE, REPOSITORY, VERSION, npm, wheel};

/// Sixteen units wide and in the current colour, as the registry asks.
pub(super) const ICON: &str = r#"<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linejoin="round" stroke-linecap="round">
  <path d="M2 5.5h12v8H2z"/>
  <path d="M5.5 5.5v-2h5v2"/>
  <path d="m5 8.5 1.5 1.25L5 11M8.5 11H11"/>
</svg>
"#;

/// The entry, with the archive of this build.
pub(super) fn entry(target: &Target, url: &str, archive: &str, sha256: &str) -> String {
    let directory = archive.trim_end_matches(".tar.gz");
    let entry = json!({
        "id": "attache",
        "name": "Attaché",
        "version": VERSION,
        "description": "Coding agent in one binary, for Anthropic, OpenAI, Gemini and models on your own machine",
        "repository": REPOSITORY,
        "authors": [AUTHORS],
        "license": LICENCE,
        "license_url": format!("{REPOSITORY}/blob/main/LICENSE-MIT"),
        "distribution": {
            "binary": {
                target.registry(): {
                    "archive": format!("{url}/{archive}"),
                    "sha256": sha256,
                    "cmd": format!("./{directory}/attache"),
                    "args": ["agent"],
                },
            },
            "npx": { "package": format!("{}@{VERSION}", npm::NAME), "args": ["agent"] },
            "uvx": { "package": format!("{}=={VERSION}", wheel::NAME), "args": ["agent"] },
        },
    });
    format!("{entry:#}\n")
}
