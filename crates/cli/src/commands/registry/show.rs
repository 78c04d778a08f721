//! Prints the results of the registry commands.

use attache_registry::{AvailableAgent, Entry, InstalledAgent, Outcome};
use serde_json::{Value, json};

use crate::agents::join;
use crate::cx::Cx;
use crate::error::Result;
use crate::output::Format;

/// Prints available agents.
pub(super) fn agents(cx: &Cx, agents: Vec<AvailableAgent>) -> Result<()> {
    let here = attache_registry::installed(&cx.paths.data)?;
    match cx.output.format {
        Format::Json => {
            let list: Vec<Value> = agents
                .iter()
                .map(|found| agent_json(found, here.get(&found.entry.id).map(|agent| agent.version.as_str())))
                .collect();
            cx.output.json(&json!(list));
        }
        Format::Quiet => agents.iter().for_each(|found| cx.output.row(&found.entry.id)),
        Format::Text if agents.is_empty() => cx.output.line("no matching agent"),
        Format::Text => {
            let width =
                |text: &dyn Fn(&AvailableAgent) -> usize| agents.iter().map(text).max().unwrap_or_default();
            let id = width(&|found| found.entry.id.len());
            let version = width(&|found| found.entry.version.len());
            for found in &agents {
                let entry = &found.entry;
                let installed = here.get(&entry.id);
                let mark = match installed {
                    Some(agent) if agent.version == entry.version => '*',
                    Some(_) => '^',
                    None => ' ',
                };
                let older = installed
                    .filter(|agent| agent.version != entry.version)
                    .map(|agent| format!(" ({} is installed)", agent.version))
                    .unwrap_or_default();
                let line = format!(
                    "{mark} {:<id$}  {:<version$}  {:<6}  {}{older}",
                    entry.id,
                    entry.version,
                    via(entry),
                    about(entry)
                );
                cx.output.row(line.trim_end());
            }
            if agents.iter().any(|found| here.contains_key(&found.entry.id)) {
                cx.output.note("* installed, ^ update available");
            }
        }
    }
    Ok(())
}

fn about(entry: &Entry) -> String {
    if entry.description.is_empty() {
        entry.name.clone()
    } else {
        format!("{}: {}", entry.name, entry.description)
    }
}

/// Returns the method that would install it on this machine.
fn via(entry: &Entry) -> &'static str {
    entry.distributions_here().first().map_or("-", |way| way.method.name())
}

fn agent_json(found: &AvailableAgent, installed: Option<&str>) -> Value {
    let entry = &found.entry;
    let mut via: Vec<&str> = entry.distributions_here().iter().map(|way| way.method.name()).collect();
    via.dedup();
    json!({
        "id": entry.id,
        "name": entry.name,
        "version": entry.version,
        "description": entry.description,
        "authors": entry.authors,
        "license": entry.license,
        "website": entry.website,
        "via": via,
        "source": found.source.location,
        "installed": installed,
    })
}

/// Prints installed agents.
pub(super) fn installed(cx: &Cx) -> Result<()> {
    let here = attache_registry::installed(&cx.paths.data)?;
    let command = |agent: &InstalledAgent| join(agent.command(&cx.paths.data).iter().map(String::as_str));
    match cx.output.format {
        Format::Json => {
            let list: Vec<Value> = here
                .values()
                .map(|agent| {
                    let mut value = json!(agent);
                    if let Some(object) = value.as_object_mut() {
                        object.insert("id".to_owned(), json!(agent.id));
                        object.insert("command".to_owned(), json!(command(agent)));
                    }
                    value
                })
                .collect();
            cx.output.json(&json!(list));
        }
        Format::Quiet => here.keys().for_each(|id| cx.output.row(id)),
        Format::Text if here.is_empty() => cx.output.line("no agent is installed from a registry"),
        Format::Text => {
            let id = here.keys().map(String::len).max().unwrap_or_default();
            let version = here.values().map(|agent| agent.version.len()).max().unwrap_or_default();
            for agent in here.values() {
                let line = format!(
                    "{:<id$}  {:<version$}  {:<6}  {}",
                    agent.id,
                    agent.version,
                    agent.method.name(),
                    command(agent)
                );
                cx.output.row(line);
            }
        }
    }
    Ok(())
}

/// Prints the result of an installation.
pub(super) fn outcome(cx: &Cx, outcome: &Outcome, before: Option<&InstalledAgent>) {
    let (agent, new) = match outcome {
        Outcome::Installed(agent) => (agent, true),
        Outcome::UpToDate(agent) => (agent, false),
    };
    let command = join(agent.command(&cx.paths.data).iter().map(String::as_str));
    match cx.output.format {
        Format::Json => cx.output.json(&outcome_json(agent, &command, new, before)),
        Format::Quiet => cx.output.row(&agent.id),
        Format::Text => {
            cx.output.row(outcome_text(agent, new, before));
            if new {
                cx.output.line(format_args!("  {command}"));
            }
            if new && before.is_none() {
                cx.output.line(format_args!("try it: attache doctor {}", agent.id));
            }
        }
    }
}

fn outcome_text(agent: &InstalledAgent, new: bool, before: Option<&InstalledAgent>) -> String {
    let InstalledAgent { id, version, .. } = agent;
    if !new {
        return format!("{id} {version} is already installed");
    }
    let how = match (&agent.sha256, agent.verified) {
        (Some(_), Some(true)) => "checksum verified",
        (Some(_), _) => "no checksum in the registry; recorded for the next time",
        (None, _) => agent.method.name(),
    };
    match before {
        Some(before) => format!("updated {id} from {} to {version} ({how})", before.version),
        None => format!("installed {id} {version} ({how})"),
    }
}

fn outcome_json(agent: &InstalledAgent, command: &str, new: bool, before: Option<&InstalledAgent>) -> Value {
    json!({
        "action": match (new, before) {
            (false, _) => "agent_present",
            (true, None) => "agent_installed",
            (true, Some(_)) => "agent_updated",
        },
        "id": agent.id,
        "version": agent.version,
        "previousVersion": before.map(|before| &before.version),
        "via": agent.method.name(),
        "source": agent.source,
        "sha256": agent.sha256,
        "verified": agent.verified.unwrap_or_default(),
        "command": command,
    })
}

pub(super) fn would_update(cx: &Cx, before: &InstalledAgent, version: &str) {
    match cx.output.format {
        Format::Json => cx.output.json(&json!({
            "action": "agent_outdated", "id": before.id, "version": version, "previousVersion": before.version,
        })),
        Format::Quiet => cx.output.row(&before.id),
        Format::Text => cx.output.row(format_args!("{} {} can be updated to {version}", before.id, before.version)),
    }
}

pub(super) fn removed(cx: &Cx, agent: &InstalledAgent) {
    match cx.output.format {
        Format::Json => {
            cx.output.json(&json!({ "action": "agent_removed", "id": agent.id, "version": agent.version }));
        }
        Format::Quiet => cx.output.row(&agent.id),
        Format::Text => cx.output.line(format_args!("removed {} {}", agent.id, agent.version)),
    }
}
