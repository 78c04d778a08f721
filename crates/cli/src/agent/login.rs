//! `attache agent --login PROVIDER`: asks for a key and keeps it for the agent; `--logout PROVIDER`
//! forgets it.

use std::io::{self, BufRead as _, IsTerminal as _};

use attache_agent::auth::Keys;
use attache_agent::model::{Key, KeyCheck, Provider, check_key};
use serde_json::json;

use crate::auth::ask;
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::output::{Format, Output};
use crate::runtime::runtime;

/// Asks for the key of a provider, without showing it, and keeps it.
pub(super) fn login(cx: &Cx, provider: &str) -> Result<()> {
    let provider = known(cx, provider)?;
    let no_key = || Failure::usage("no key was given");
    let (key, remark) = match io::stdin().is_terminal() {
        true => runtime(ask_for_key(&provider))?.ok_or_else(no_key)?,
        // From a pipe, for programs that keep keys; they may have no network.
        false => {
            let text = io::stdin().lock().lines().next().transpose().context("standard input")?;
            (text.as_deref().and_then(Key::new).ok_or_else(no_key)?, String::new())
        }
    };
    let place = Keys::new(&cx.paths.config).set(&provider.id, &key).map_err(Failure::runtime)?;
    tell(cx, "login", &provider, &format!("saved the key for {} in {place}{remark}", provider.name));
    Ok(())
}

/// Asks for the key of a provider on the terminal and keeps it.
pub(crate) async fn save_key(cx: &Cx, provider: &Provider) -> Result<()> {
    let Some((key, remark)) = ask_for_key(provider).await? else { return Ok(()) };
    let place = Keys::new(&cx.paths.config).set(&provider.id, &key).map_err(Failure::runtime)?;
    cx.output.tell(format_args!("saved the key for {} in {place}{remark}", provider.name));
    Ok(())
}

/// Asks for a key until the provider accepts it, with a remark if the provider cannot be asked.
/// `None` without one.
async fn ask_for_key(provider: &Provider) -> Result<Option<(Key, String)>> {
    let name = &provider.name;
    loop {
        let text = ask::secret(&format!("Key for {name}: ")).await?;
        let Some(key) = text.as_deref().and_then(Key::new) else { return Ok(None) };
        match check_key(provider, &key).await {
            KeyCheck::Accepted => return Ok(Some((key, String::new()))),
            KeyCheck::Unknown(why) => return Ok(Some((key, format!(" (it could not be tried: {why})")))),
            KeyCheck::Refused(why) => {
                let why = crate::forms::clean(&why);
                Output::plain().tell(format_args!("{name} refuses this key ({why}); an empty line cancels"));
            }
        }
    }
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
