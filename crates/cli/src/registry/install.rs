//! Gets an agent onto the machine: downloads, checks, unpacks, and records it in one step.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::archive::{self, Kind};
use super::fetch::{short_name, sum};
use super::format::{Entry, Via, Way, platform};
use super::lock::{Changing, Installed};
use super::npm;
use super::source::{Found, Place, Settings};
use crate::agents::on_path;
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::paths::private_dir;

/// How it is to be done.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wish {
    pub(super) via: Option<Via>,
    /// Let npm fetch the package now, instead of npx at the first start.
    pub(super) preinstall: bool,
    /// Also if it is installed.
    pub(super) force: bool,
}

/// What became of it.
pub(super) enum Outcome {
    Installed(Installed),
    /// That version was there already.
    Already(Installed),
}

/// Installs one agent.
pub(super) fn install(cx: &Cx, settings: &Settings, found: &Found, wish: Wish) -> Result<Outcome> {
    let mut changing = Changing::begin(&cx.paths.data)?;
    let entry = &found.entry;
    let before = changing.agents.get(&entry.id).cloned();
    let way = choose(entry, wish.via)?;
    if let Some(before) = &before
        && !wish.force
        && is_same(before, found, way, wish.preinstall)
        && is_whole(before, &cx.paths.data)
    {
        return Ok(Outcome::Already(before.clone()));
    }
    let mut agent = Installed {
        id: entry.id.clone(),
        name: entry.name.clone(),
        version: entry.version.clone(),
        source: found.source.place.clone(),
        via: way.via,
        from: way.from.clone(),
        sha256: None,
        verified: false,
        dir: None,
        argv: Vec::new(),
        env: way.env.clone(),
        at: crate::time::now(),
    };
    let unfinished = changing.unfinished(&entry.id);
    let done = match way.via {
        Via::Binary => binary(cx, settings, found, way, before.as_ref(), &unfinished, &mut agent),
        Via::Npx if wish.preinstall => npm::preinstall(cx, way, &unfinished, &mut agent),
        Via::Npx => {
            agent.argv = runner(&["npx", "-y"], "--package", way);
            Ok(())
        }
        Via::Uvx => {
            agent.argv = runner(&["uvx"], "--from", way);
            Ok(())
        }
    };
    let settled = done.and_then(|()| {
        if unfinished.exists() {
            agent.dir = Some(changing.settle(&unfinished, &entry.id, &entry.version)?);
        }
        changing.agents.insert(entry.id.clone(), agent.clone());
        changing.record()
    });
    if settled.is_err() {
        let _ = fs::remove_dir_all(&unfinished);
    }
    settled.map_err(|failure| failure.context(format_args!("{} {}", entry.id, entry.version)))?;
    // The archive of the version before is of no use any more.
    if let Some(before) = before.filter(|before| before.from != agent.from) {
        let _ = fs::remove_file(kept(&cx.paths.cache, &before.from));
    }
    Ok(Outcome::Installed(agent))
}

/// The best way that works here.
fn choose(entry: &Entry, wanted: Option<Via>) -> Result<&Way> {
    let id = &entry.id;
    let ways: Vec<&Way> =
        entry.ways_here().into_iter().filter(|way| wanted.is_none_or(|wanted| wanted == way.via)).collect();
    if ways.is_empty() {
        let mut there: Vec<&str> =
            entry.ways.iter().map(|way| way.platform.as_deref().unwrap_or(way.via.name())).collect();
        there.dedup();
        let wanted = wanted.map(|via| format!(" via {}", via.name())).unwrap_or_default();
        let here = platform();
        return Err(Failure::runtime(format_args!(
            "{id} does not come for {here}{wanted}, only as {}",
            there.join(", ")
        )));
    }
    let works = |way: &&&Way| match way.via {
        Via::Binary => true,
        Via::Npx => on_path("npx").is_some(),
        Via::Uvx => on_path("uvx").is_some(),
    };
    ways.iter().find(works).copied().ok_or_else(|| {
        let tools: Vec<&str> = ways.iter().map(|way| way.via.name()).collect();
        let mut failure =
            Failure::runtime(format_args!("{id} needs {}, which is not in PATH", tools.join(" or ")));
        for way in &ways {
            failure = failure.hint(match way.via {
                Via::Npx => "npx comes with Node.js: https://nodejs.org",
                _ => "uvx comes with uv: https://docs.astral.sh/uv",
            });
        }
        failure
    })
}

fn runner(runner: &[&str], option: &str, way: &Way) -> Vec<String> {
    let mut argv: Vec<String> = runner.iter().map(|&word| word.to_owned()).collect();
    match &way.command {
        Some(command) => argv.extend([option.to_owned(), way.from.clone(), command.clone()]),
        None => argv.push(way.from.clone()),
    }
    argv.extend(way.args.iter().cloned());
    argv
}

fn is_same(before: &Installed, found: &Found, way: &Way, preinstall: bool) -> bool {
    let sum = way.sha256.is_none() || way.sha256 == before.sha256;
    let place = way.via != Via::Npx || before.dir.is_some() == preinstall;
    before.version == found.entry.version && before.via == way.via && before.from == way.from && sum && place
}

/// Whether what was installed is still there.
fn is_whole(before: &Installed, data: &Path) -> bool {
    before.dir.is_none() || before.command(data).first().is_some_and(|program| Path::new(program).exists())
}

/// Where an archive is kept, so that it can be installed again without a network.
fn kept(cache: &Path, from: &str) -> PathBuf {
    cache.join("registry").join("archives").join(short_name(from))
}

/// Forgets the archive of an agent.
pub(super) fn forget_archive(cache: &Path, agent: &Installed) {
    let _ = fs::remove_file(kept(cache, &agent.from));
}

fn binary(
    cx: &Cx,
    settings: &Settings,
    found: &Found,
    way: &Way,
    before: Option<&Installed>,
    unfinished: &Path,
    agent: &mut Installed,
) -> Result<()> {
    let kind = Kind::of(&way.from)?;
    let program = program(way.command.as_deref().unwrap_or_default())?;
    if settings.require_checksum && way.sha256.is_none() {
        return Err(Failure::runtime("the registry names no checksum for it").hint(
            "without --require-checksum (or `require_checksum` in the settings) it is installed all the same",
        ));
    }
    let archive = kept(&cx.paths.cache, &way.from);
    let (file, sha256) = obtain(cx, settings, found, way, &archive)?;
    check(way, before, &found.entry.version, &sha256).inspect_err(|_| {
        let _ = fs::remove_file(&archive);
    })?;
    let _ = fs::remove_dir_all(unfinished);
    archive::unpack(&file, kind, unfinished, &program.to_string_lossy())?;
    let program = find_program(unfinished, &program)?;
    make_executable(&unfinished.join(&program))?;
    agent.argv = vec![program.to_string_lossy().into_owned()];
    agent.argv.extend(way.args.iter().cloned());
    agent.verified = way.sha256.is_some();
    agent.sha256 = Some(sha256);
    Ok(())
}

/// The archive as a file, and its hash. Files of the machine are not copied; downloads are kept.
fn obtain(
    cx: &Cx,
    settings: &Settings,
    found: &Found,
    way: &Way,
    archive: &Path,
) -> Result<(PathBuf, String)> {
    let url = match found.source.resolve(&way.from)? {
        Place::File(path) => {
            let sum = sum(&path).context(path.display())?;
            return Ok((path, sum));
        }
        Place::Web(url) => url,
    };
    // A kept archive counts if it is the very one that is wanted, or if there is no other way to get it.
    if let Ok(sha256) = sum(archive)
        && (way.sha256.as_ref() == Some(&sha256) || settings.offline())
    {
        return Ok((archive.to_owned(), sha256));
    }
    if settings.offline() {
        return Err(Failure::runtime(format_args!(
            "{url} was not downloaded before, and --offline forbids to do it now"
        )));
    }
    settings.check_http(&url, way.sha256.is_some())?;
    if let Some(dir) = archive.parent() {
        private_dir(dir).context("the cache")?;
    }
    let part = archive.with_extension("part");
    let what = format!("{} {}", found.entry.id, found.entry.version);
    let token = found.source.token_for(&url)?;
    let received = settings.web()?.archive(&url, token.as_deref(), &part, &what, &cx.output);
    received.and_then(|sha256| {
        fs::rename(&part, archive).context(archive.display())?;
        Ok((archive.to_owned(), sha256))
    })
}

/// Compares with what the registry says and, if it says nothing, with what was installed before: an archive does not change.
fn check(way: &Way, before: Option<&Installed>, version: &str, sha256: &str) -> Result<()> {
    if let Some(wanted) = &way.sha256
        && wanted != sha256
    {
        return Err(Failure::runtime(format_args!(
            "the archive is not the one that the registry describes: its SHA-256 is {sha256}, not {wanted}"
        ))
        .detail("CHECKSUM_MISMATCH")
        .hint("nothing was installed; tell the maintainers of the registry"));
    }
    let same = before.filter(|before| before.version == version && before.from == way.from);
    if let Some(known) = same.and_then(|before| before.sha256.as_ref())
        && way.sha256.is_none()
        && known != sha256
    {
        return Err(Failure::runtime(format_args!(
            "the archive has changed without a new version: its SHA-256 was {known} and is {sha256} now"
        ))
        .detail("CHECKSUM_MISMATCH")
        .hint("if you know why, `attache registry remove` it and install it again"));
    }
    Ok(())
}

/// `./bin/tool` as a path within the archive.
fn program(command: &str) -> Result<PathBuf> {
    let mut path = PathBuf::new();
    for part in Path::new(command).components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) => path.push(part),
            _ => {
                return Err(Failure::runtime(format_args!(
                    "its command `{command}` is not a file of its archive"
                )));
            }
        }
    }
    if path.as_os_str().is_empty() {
        return Err(Failure::runtime("the registry does not say which file of the archive is the program"));
    }
    Ok(path)
}

/// The program where it was said to be, or the same within the one directory that the archive is wrapped in.
fn find_program(root: &Path, program: &Path) -> Result<PathBuf> {
    let is_file = |path: &Path| root.join(path).is_file();
    if is_file(program) {
        return Ok(program.to_owned());
    }
    let inner: Vec<PathBuf> =
        fs::read_dir(root).context(root.display())?.flatten().map(|inner| inner.path()).collect();
    if let [only] = inner.as_slice()
        && let Some(name) = only.file_name()
    {
        let wrapped = Path::new(name).join(program);
        if is_file(&wrapped) {
            return Ok(wrapped);
        }
    }
    let names: Vec<String> = inner
        .iter()
        .filter_map(|path| path.file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let list = names.iter().take(8).map(String::as_str).collect::<Vec<_>>().join(", ");
    let program = program.display();
    Err(Failure::runtime(format_args!("`{program}` is not in the archive, which holds {list}")))
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).context(path.display())
}

#[cfg(not(unix))]
fn make_executable(_path: &Path) -> Result<()> {
    Ok(())
}
