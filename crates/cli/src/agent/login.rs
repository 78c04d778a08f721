//! `attache agent --login PROVIDER`: asks for a key and keeps it for the agent; `--logout PROVIDER` forgets it.

use std::io::{self, BufRead as _, IsTerminal as _};

use attache_agent::auth::Keys;
use attache_agent::model::{Key, Provider};
use serde_json::json;

use crate::auth::ask;
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::output::Format;
use crate::runtime::runtime;

/// Asks for the key of a provider, without showing it, and keeps it.
pub(super) fn login(cx: &Cx, provider: &str) -> Result<()> {
    let provider = known(cx, provider)?;
    let text = match io::stdin().is_terminal() {
        true => runtime(ask::secret(&format!("Key for {}: ", provider.name)))?,
        // From a pipe, for programs that keep keys.
        false => io::stdin().lock().lines().next().transpose().context("standard input")?,
    };
    let key = text.as_deref().and_then(Key::new).ok_or_else(|| Failure::usage("no key was given"))?;
    let place = Keys::new(&cx.paths.config).set(&provider.id, &key).map_err(Failure::runtime)?;
    tell(cx, "login", &provider, &format!("saved the key for {} in {place}", provider.name));
    Ok(())
}

/// Asks for the key of a provider on the terminal and keeps it.
pub(crate) async fn save_key(cx: &Cx, provider: &Provider) -> Result<()> {
    let text = ask::secret(&format!("Key for {}: ", provider.name)).await?;
    let Some(key) = text.as_deref().and_then(Key::new) else { return Ok(()) };
    let place = Keys::new(&cx.paths.config).set(&provider.id, &key).map_err(Failure::runtime)?;
    cx.output.tell(format_args!("saved the key for {} in {place}", provider.name));
    Ok(())
}

/// The providers that take a key.
pub(crate) fn key_providers(cx: &Cx) -> Result<Vec<Provider>> {
    let all = super::providers::settings(cx)?.providers;
    Ok(all.into_iter().filter(|provider| !provider.key_vars.is_empty()).collect())
}

/// Forgets the key of a provider.
pub(super) fn logout(cx: &Cx, provider: &str) -> Result<()> {
    let provider = known(cx, provider)?;
    let said = match Keys::new(&cx.paths.config).remove(&provider.id).map_err(Failure::runtime)? {
        true => format!("removed the key for {}", provider.name),
        false => format!("there was no key for {}", provider.name),
    };
    tell(cx, "logout", &provider, &said);
    Ok(())
}

/// A provider that takes a key.
fn known(cx: &Cx, id: &str) -> Result<Provider> {
    let mut takers = key_providers(cx)?;
    match takers.iter().position(|provider| provider.id == id) {
        Some(place) => Ok(takers.swap_remove(place)),
        None => {
            let names: Vec<&str> = takers.iter().map(|provider| provider.id.as_str()).collect();
            Err(Failure::usage(format_args!(
                "no provider `{id}` takes a key; there are {}",
                names.join(", ")
            )))
        }
    }
}

fn tell(cx: &Cx, action: &str, provider: &Provider, said: &str) {
    match cx.output.format {
        Format::Json => {
            cx.output.json(&json!({ "action": format!("agent_{action}"), "provider": provider.id }))
        }
        Format::Quiet => {}
        Format::Text => cx.output.line(said),
    }
}
