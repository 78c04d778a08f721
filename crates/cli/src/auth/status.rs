//! `attache auth status` and `logout`

use attache::wire::v1::{AuthState, AuthStatusResponse};
use serde_json::{Value, json};

use super::{Standing, clean, login_client, method_json, method_text, probe, reach, until_stopped};
use crate::connect::credentials as given_credentials;
use crate::credentials;
use crate::cx::Cx;
use crate::error::{DetailCode, Failure, Result};
use crate::output::Format;

/// Shows the login status. The exit code is 1 if a login is needed.
pub(crate) fn status(cx: &Cx) -> Result<()> {
    until_stopped(run(cx))
}

async fn run(cx: &Cx) -> Result<()> {
    let spec = cx.agent()?;
    let agent = reach(cx, &spec, login_client(cx, &spec), given_credentials(cx, &spec)).await?;
    // AUTH-22: where the agent can tell, nothing has to be tried.
    let status = match agent.auth_status() {
        Some(status) => status.get().await.ok(),
        None => None,
    };
    let standing = match status.as_ref().map(|status| &status.state) {
        Some(AuthState::Authenticated) => Standing::LoggedIn,
        Some(AuthState::Unauthenticated) => Standing::LoginNeeded,
        Some(AuthState::NotRequired) => Standing::NotNeeded,
        // AUTH-23: other states have no meaning.
        _ => probe(cx, &agent).await?,
    };
    let kept: Vec<String> = match cx.can_have_credentials(&spec) {
        true => {
            credentials::load(&cx.paths)?.agents.remove(&spec.name).unwrap_or_default().into_keys().collect()
        }
        false => Vec::new(),
    };
    match cx.output.format {
        Format::Json => cx.output.json(&json!({
            "action": "auth_status",
            "agent": spec.name,
            "state": standing.name(),
            "accounts": status.as_ref().map(accounts_json),
            "methods": agent.auth_methods().iter().map(method_json).collect::<Vec<_>>(),
            "canLogout": agent.logout().is_some(),
            "keptVariables": kept,
        })),
        Format::Quiet => cx.output.line(standing.name()),
        Format::Text => {
            cx.output.line(match standing {
                Standing::LoggedIn => format!("{}: logged in", spec.name),
                Standing::LoginNeeded => format!("{}: a login is needed", spec.name),
                Standing::NotNeeded => format!("{}: no login is needed", spec.name),
                Standing::Unknown => {
                    format!("{}: unknown; `attache doctor {}` finds out more", spec.name, spec.argument())
                }
            });
            // AUTH-25: to be shown, and nothing else.
            for account in status.iter().flat_map(|status| status.accounts.iter().flatten()) {
                let parts = [&account.name, &account.email, &account.organization];
                let about: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
                let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
                let mark = if account.active == Some(true) { '*' } else { ' ' };
                cx.output.line(clean(&format!("{mark} {}{about}", account.label)));
            }
            if !kept.is_empty() {
                cx.output.line(format_args!("kept for it: {}", kept.join(", ")));
            }
            if standing == Standing::LoginNeeded {
                agent
                    .auth_methods()
                    .iter()
                    .for_each(|method| cx.output.line(format_args!("  {}", method_text(method))));
            }
        }
    }
    agent.shutdown().await;
    match standing {
        Standing::LoginNeeded => {
            let mut failure = Failure::runtime(format_args!("`{}` needs a login", spec.name))
                .detail(DetailCode::AuthRequired)
                .hint(format!("attache auth login {}", spec.argument()));
            // The answer has been printed; only the exit code and the hint are left to say.
            failure.shown = cx.output.format != Format::Text;
            Err(failure)
        }
        _ => Ok(()),
    }
}

fn accounts_json(status: &AuthStatusResponse) -> Value {
    serde_json::to_value(&status.accounts).unwrap_or(Value::Null)
}

/// Logs out and deletes saved credentials.
pub(crate) fn logout(cx: &Cx) -> Result<()> {
    until_stopped(leave(cx))
}

async fn leave(cx: &Cx) -> Result<()> {
    let spec = cx.agent()?;
    let agent = reach(cx, &spec, login_client(cx, &spec), Default::default()).await?;
    // AUTH-16: only if the agent says that it can.
    let asked = match agent.logout() {
        Some(logout) => {
            logout
                .send()
                .await
                .map_err(|error| Failure::from(error).context(format_args!("`{}`", spec.name)))?;
            true
        }
        None => false,
    };
    agent.shutdown().await;
    let forgotten = credentials::forget(&cx.paths, &spec)?;
    if !asked && forgotten.is_empty() {
        return Err(Failure::runtime(format_args!("`{}` cannot log out through the protocol", spec.name))
            .hint("log out with the agent's own program"));
    }
    match cx.output.format {
        Format::Json => cx.output.json(&json!({
            "action": "auth_logout", "agent": spec.name, "asked": asked, "forgotten": forgotten,
        })),
        Format::Quiet => {}
        Format::Text => {
            if asked {
                cx.output.line(format_args!("logged out of {}", spec.name));
            }
            if !forgotten.is_empty() {
                cx.output.line(format_args!("forgot {}", forgotten.join(", ")));
            }
        }
    }
    Ok(())
}
