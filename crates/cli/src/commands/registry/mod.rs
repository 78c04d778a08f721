//! `attache registry`: installs agents from registries.

mod progress;
mod settings;
mod show;

use attache_registry::{AvailableAgent, InstallOptions, Method, installed};

use crate::args::nearest;
use crate::cx::Cx;
use crate::error::{Failure, Result};
use progress::Reporter;

/// `attache registry list` and `search`.
pub(crate) fn list(cx: &Cx) -> Result<()> {
    if cx.flags.registry.installed {
        return show::installed(cx);
    }
    let words: Vec<String> = cx.args.words.iter().map(|word| word.to_lowercase()).collect();
    let mut reporter = Reporter::new(&cx.output);
    let agents = settings::registry(cx)?.agents(&mut |event| reporter.report(event))?;
    let matches = |found: &AvailableAgent| {
        let entry = &found.entry;
        let text = format!("{} {} {} {}", entry.id, entry.name, entry.description, entry.authors.join(" "))
            .to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    show::agents(cx, agents.into_iter().filter(matches).collect())
}

/// `attache registry install`
pub(crate) fn install(cx: &Cx) -> Result<()> {
    let registry = settings::registry(cx)?;
    let options = InstallOptions {
        method: cx.flags.registry.via.as_deref().and_then(Method::from_name),
        preinstall: cx.flags.registry.preinstall,
        force: cx.flags.registry.force,
    };
    let mut reporter = Reporter::new(&cx.output);
    let agents = registry.agents(&mut |event| reporter.report(event))?;
    // All names are checked before the first installation.
    let chosen: Vec<&AvailableAgent> =
        cx.args.words.iter().map(|name| find(&agents, name)).collect::<Result<_>>()?;
    for found in chosen {
        let outcome = registry.install(found, options, &mut |event| reporter.report(event))?;
        show::outcome(cx, &outcome, None);
    }
    Ok(())
}

/// Finds an agent by its id, perhaps with a version: `goose@1.2.3`.
fn find<'a>(agents: &'a [AvailableAgent], name: &str) -> Result<&'a AvailableAgent> {
    let (id, version) = name.split_once('@').map_or((name, None), |(id, version)| (id, Some(version)));
    let Some(found) = agents.iter().find(|found| found.entry.id == id) else {
        let failure = Failure::runtime(format_args!("no agent `{id}` in the registry"));
        return Err(match nearest(id, agents.iter().map(|found| found.entry.id.as_str())) {
            Some(near) => failure.hint(format!("did you mean `{near}`?")),
            None => failure.hint("search for one: attache registry search WORD"),
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
    let registry = settings::registry(cx)?;
    let here = installed(&cx.paths.data)?;
    if let Some(name) = cx.args.words.iter().find(|name| !here.contains_key(*name)) {
        return Err(not_installed(cx, name));
    }
    let mut reporter = Reporter::new(&cx.output);
    let agents = registry.agents(&mut |event| reporter.report(event))?;
    let mut missing = Vec::new();
    for before in here.values().filter(|agent| cx.args.words.is_empty() || cx.args.words.contains(&agent.id))
    {
        let Some(found) = agents.iter().find(|found| found.entry.id == before.id) else {
            missing.push(before.id.clone());
            continue;
        };
        // An id must not lead to another agent because another index now comes first.
        if found.source.location != before.source {
            cx.output.warn(format_args!(
                "{} was installed from {} and is now in {}; install it again to change that",
                before.id, before.source, found.source.location
            ));
            continue;
        }
        if cx.flags.registry.dry_run {
            if found.entry.version != before.version {
                show::would_update(cx, before, &found.entry.version);
            }
            continue;
        }
        let is_available = |method: &Method| {
            found.entry.distributions_here().iter().any(|distribution| distribution.method == *method)
        };
        let options = InstallOptions {
            method: Some(before.method).filter(is_available),
            preinstall: before.method == Method::Npx && before.dir.is_some(),
            force: false,
        };
        let outcome = registry.install(found, options, &mut |event| reporter.report(event))?;
        show::outcome(cx, &outcome, Some(before));
    }
    for id in missing {
        cx.output.warn(format_args!("{id} is installed but no longer in the registry"));
    }
    Ok(())
}

/// `attache registry remove`
pub(crate) fn remove(cx: &Cx) -> Result<()> {
    let removed = settings::registry(cx)?.remove(&cx.args.words).map_err(|error| match error.kind() {
        attache_registry::ErrorKind::NotInstalled(id) => not_installed(cx, id),
        _ => error.into(),
    })?;
    removed.iter().for_each(|agent| show::removed(cx, agent));
    Ok(())
}

fn not_installed(cx: &Cx, name: &str) -> Failure {
    let failure = Failure::runtime(format_args!("`{name}` is not installed from a registry"));
    let here = installed(&cx.paths.data).unwrap_or_default();
    match nearest(name, here.keys().map(String::as_str)) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("see what is installed: attache registry list --installed"),
    }
}
