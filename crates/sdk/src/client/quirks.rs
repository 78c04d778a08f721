//! Defects of agents that a client has to work around, by the name and version that they report.

use attache_wire::v1::Implementation;

/// Whether the agent cannot create a file unless reading the missing file gives an empty text.
///
/// Gemini CLI takes the file for missing only if the error is a JavaScript `Error` whose message
/// says so. Its SDK rejects with a plain object, so no error of a client is ever recognised. Known
/// up to 0.61.
pub(crate) fn needs_empty_missing_files(agent: &Implementation) -> bool {
    agent.name == "gemini-cli" && release(&agent.version).is_some_and(|release| release <= (0, 61))
}

/// The major and minor number of a semantic version.
fn release(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.trim_start_matches('v').split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_affected(name: &str, version: &str) -> bool {
        needs_empty_missing_files(&Implementation::new(name, version))
    }

    #[test]
    fn missing_files_are_empty_for_known_versions_of_one_agent() {
        for version in ["0.61.0", "0.61.0-nightly.20260909.ged2ac40df", "0.1.5", "v0.60.2"] {
            assert!(is_affected("gemini-cli", version), "{version}");
        }
        for version in ["0.62.0", "1.0.0", "10.0", "0", "", "unknown", "0.x"] {
            assert!(!is_affected("gemini-cli", version), "{version}");
        }
        assert!(!is_affected("gemini", "0.61.0"));
        assert!(!is_affected("qwen-code", "0.61.0"));
    }
}
