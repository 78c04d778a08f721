//! `attache registry`: agents from registries, installed for this user.
//!
//! A registry is a JSON file that describes agents and how to get them: as an archive for each platform, or as a package that
//! npx or uvx runs. `format.rs` reads it, `source.rs` knows where it is and keeps a copy, `fetch.rs` speaks HTTP, `install.rs` gets
//! one agent, `archive/` unpacks, `lock.rs` remembers what is installed.
//!
//! What never happens here: an archive whose hash is not the announced one is unpacked; a half unpacked agent is used; an archive
//! writes outside of its directory; a token goes to another server than its own; anything of an agent is run during the
//! installation, except by npm when that was asked for.

mod archive;
mod fetch;
mod format;
mod install;
mod lock;
mod npm;
mod progress;
mod show;
mod source;

use std::path::Path;

pub(crate) use lock::{installed, lock_file};
pub(crate) use source::hint_for;

use crate::agents::join;
use crate::args::nearest;
use crate::cx::Cx;
use crate::error::{Failure, Result};
use crate::output::Format;
use format::Via;
use install::{Outcome, Wish, forget_archive};
use lock::{Changing, Installed};
use source::{Found, Settings};

/// `attache registry list` and `search`.
pub(crate) fn list(cx: &Cx) -> Result<()> {
    if cx.flags.registry.installed {
        return show::installed(cx);
    }
    let words: Vec<String> = cx.args.words.iter().map(|word| word.to_lowercase()).collect();
    let agents = Settings::new(cx)?.agents(cx)?;
    let fits = |found: &Found| {
        let entry = &found.entry;
        let text = format!("{} {} {} {}", entry.id, entry.name, entry.description, entry.authors.join(" "))
            .to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    show::agents(cx, agents.into_iter().filter(fits).collect())
}

/// `attache registry install`
pub(crate) fn install(cx: &Cx) -> Result<()> {
    let settings = Settings::new(cx)?;
    let wish = Wish {
        via: cx.flags.registry.via.as_deref().and_then(Via::from_name),
        preinstall: cx.flags.registry.preinstall,
        force: cx.flags.registry.force,
    };
    let agents = settings.agents(cx)?;
    // All names are looked at before anything is installed.
    let chosen: Vec<&Found> = cx.args.words.iter().map(|name| find(&agents, name)).collect::<Result<_>>()?;
    for found in chosen {
        let outcome = install::install(cx, &settings, found, wish)?;
        tell(cx, &outcome, None);
    }
    Ok(())
}

/// The agent of a name, which may say the version too: `goose@1.2.3`.
fn find<'a>(agents: &'a [Found], name: &str) -> Result<&'a Found> {
    let (id, version) = name.split_once('@').map_or((name, None), |(id, version)| (id, Some(version)));
    let Some(found) = agents.iter().find(|found| found.entry.id == id) else {
        let failure = Failure::runtime(format_args!("there is no agent `{id}` in the registry"));
        return Err(match nearest(id, agents.iter().map(|found| found.entry.id.as_str())) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint("`attache registry search WORD` looks for one"),
        });
    };
    match version.filter(|version| *version != found.entry.version) {
        Some(version) => Err(Failure::runtime(format_args!(
            "the registry has {id} {}, not {version}",
            found.entry.version
        ))),
        None => Ok(found),
    }
}

/// `attache registry update`
pub(crate) fn update(cx: &Cx) -> Result<()> {
    let settings = Settings::new(cx)?;
    let here = installed(&cx.paths.data)?;
    for name in &cx.args.words {
        if !here.contains_key(name) {
            return Err(not_installed(name, here.keys().map(String::as_str)));
        }
    }
    let agents = settings.agents(cx)?;
    let mut missing = Vec::new();
    for before in here.values().filter(|agent| cx.args.words.is_empty() || cx.args.words.contains(&agent.id))
    {
        let Some(found) = agents.iter().find(|found| found.entry.id == before.id) else {
            missing.push(before.id.clone());
            continue;
        };
        // A name must not lead to something else because another index now comes first.
        if found.source.place != before.source {
            cx.output.warn(format_args!(
                "{} was installed from {} and is now in {}; install it again to change that",
                before.id, before.source, found.source.place
            ));
            continue;
        }
        let wish = Wish {
            via: Some(before.via).filter(|via| found.entry.ways_here().iter().any(|way| way.via == *via)),
            preinstall: before.via == Via::Npx && before.dir.is_some(),
            force: false,
        };
        if cx.flags.registry.dry_run {
            if found.entry.version != before.version {
                show::would_update(cx, before, &found.entry.version);
            }
            continue;
        }
        let outcome = install::install(cx, &settings, found, wish)?;
        tell(cx, &outcome, Some(before));
    }
    for id in missing {
        cx.output.warn(format_args!("{id} is installed but no longer in the registry"));
    }
    Ok(())
}

/// `attache registry remove`
pub(crate) fn remove(cx: &Cx) -> Result<()> {
    let mut changing = Changing::begin(&cx.paths.data)?;
    for name in &cx.args.words {
        if !changing.agents.contains_key(name) {
            return Err(not_installed(name, changing.agents.keys().map(String::as_str)));
        }
    }
    let gone: Vec<Installed> = cx.args.words.iter().filter_map(|name| changing.agents.remove(name)).collect();
    changing.record()?;
    for agent in gone {
        forget_archive(&cx.paths.cache, &agent);
        show::removed(cx, &agent);
    }
    Ok(())
}

fn not_installed<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Failure {
    let failure = Failure::runtime(format_args!("`{name}` is not installed from a registry"));
    match nearest(name, names) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("`attache registry list --installed` shows what is"),
    }
}

fn tell(cx: &Cx, outcome: &Outcome, before: Option<&Installed>) {
    let (agent, new) = match outcome {
        Outcome::Installed(agent) => (agent, true),
        Outcome::Already(agent) => (agent, false),
    };
    let command = join(agent.command(&cx.paths.data).iter().map(String::as_str));
    match cx.output.format {
        Format::Json => cx.output.json(&show::outcome_json(agent, &command, new, before)),
        Format::Quiet => cx.output.row(&agent.id),
        Format::Text => {
            cx.output.row(show::outcome_text(agent, new, before));
            if new {
                cx.output.line(format_args!("  {command}"));
            }
            // Somebody who installs by hand wants to know how to go on.
            if new && before.is_none() {
                cx.output.line(format_args!("try it: attache doctor {}", agent.id));
            }
        }
    }
}

/// The settings of installed agents, as if they were written under `[agents]`.
pub(crate) fn entries(data: &Path) -> Result<Vec<(String, toml::Value)>> {
    let text = |text: &str| toml::Value::String(text.to_owned());
    let entry = |agent: &Installed| {
        let argv = agent.command(data).iter().map(|word| text(word)).collect();
        let env: toml::Table = agent.env.iter().map(|(name, value)| (name.clone(), text(value))).collect();
        let mut table = toml::Table::new();
        table.insert("argv".to_owned(), toml::Value::Array(argv));
        table.insert("env".to_owned(), toml::Value::Table(env));
        toml::Value::Table(table)
    };
    Ok(installed(data)?.values().map(|agent| (agent.id.clone(), entry(agent))).collect())
}
