//! Gives an agent the credentials that named none, which earlier versions and other programs have.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use attache::wire::v1::AuthMethod;
use attache_conn::private;

use crate::agents::AgentSpec;
use crate::connect::variable;
use crate::credentials;
use crate::cx::Cx;
use crate::error::{Context as _, Result};

/// Moves the credentials without an agent that fit the agent's ways to log in to that agent, and
/// returns them.
pub(super) fn adopt(cx: &Cx, spec: &AgentSpec, methods: &[AuthMethod]) -> Result<BTreeMap<String, String>> {
    if !cx.can_have_credentials(spec) {
        return Ok(BTreeMap::new());
    }
    let fits = |name: &str| methods.iter().any(|method| is_for(method, name));
    let moved: Vec<_> = cx.config.unassigned_auth.iter().filter(|(name, _)| fits(name)).collect();
    if moved.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut stored = credentials::load(&cx.paths)?;
    let own = stored.auth.entry(spec.name.clone()).or_default();
    own.extend(moved.iter().map(|(name, (credential, _))| ((*name).clone(), credential.clone())));
    stored.unassigned.retain(|name, _| !fits(name));
    // First to where it goes, then away from where it was: a crash in between loses nothing.
    credentials::save(&cx.paths, &stored)?;
    for (name, (_, file)) in &moved {
        cx.output.note(format_args!("the credential `{name}` is now one of `{}`", spec.name));
        let gone = match file {
            file if *file == cx.config.user_file => take_out(file, name)?,
            file => *file == credentials::credentials_file(&cx.paths),
        };
        if !gone {
            cx.output.warn(format_args!("remove `auth.{name}` from {} by hand", file.display()));
        }
    }
    Ok(moved.into_iter().map(|(name, (credential, _))| (name.clone(), credential.clone())).collect())
}

/// Whether a credential of this name is one for this way to log in.
fn is_for(method: &AuthMethod, name: &str) -> bool {
    let name = variable(name);
    let variables = match method {
        AuthMethod::EnvVar(method) => method.vars.as_slice(),
        _ => &[],
    };
    method.id().is_some_and(|id| variable(id.as_str()) == name)
        || variables.iter().any(|known| known.name == name)
}

/// Removes a credential from a settings file; false if it is not there.
fn take_out(file: &Path, name: &str) -> Result<bool> {
    let text = fs::read_to_string(file).context(file.display())?;
    let Some(text) = without(&text, name) else { return Ok(false) };
    // Replaces the target of a link, not the link.
    let real = fs::canonicalize(file).context(file.display())?;
    private::replace(&real, text.as_bytes()).context("the settings")?;
    Ok(true)
}

/// The settings without `auth.NAME`.
fn without(text: &str, name: &str) -> Option<String> {
    let mut document: toml_edit::DocumentMut = text.parse().ok()?;
    document.get_mut("auth")?.as_table_like_mut()?.remove(name)?;
    Some(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn a_credential_is_taken_out_and_the_rest_stays() {
        let text = "# mine\nttl = 1\n\n[auth]\nkey = \"a\"\n# why\n\"other-key\" = 'b'\n\n[agents.key]\ncommand = \"key\"\n";
        let expected =
            "# mine\nttl = 1\n\n[auth]\n# why\n\"other-key\" = 'b'\n\n[agents.key]\ncommand = \"key\"\n";
        assert_eq!(without(text, "key").as_deref(), Some(expected));
        assert_eq!(without(expected, "other-key").as_deref().map(|text| text.contains("other")), Some(false));
        for text in
            ["auth.key = \"a\"\nttl = 1\n", "auth = { key = \"a\" }\n", "[auth]\nkey = \"\"\"\na\n\"\"\"\n"]
        {
            assert_eq!(without(text, "key").map(|text| text.contains("key")), Some(false), "{text}");
        }
        assert_eq!(without("[auth]\nb = \"c\"\n", "key"), None);
    }
}
