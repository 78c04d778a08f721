//! Installs an agent: downloads, verifies, unpacks, and records it in one step.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::archive::{self, ArchiveKind};
use crate::error::{Context as _, Error, ErrorKind, Result};
use crate::format::{Distribution, Entry, Method, platform};
use crate::http::{sha256_of, short_name};
use crate::index::{ArchiveLocation, AvailableAgent};
use crate::lock::{InstalledAgent, Transaction, private_dir};
use crate::program::on_path;
use crate::{OnEvent, Registry, npm};

/// Options of an installation.
#[derive(Debug, Clone, Copy, Default)]
pub struct InstallOptions {
    /// The method; the best one by default.
    pub method: Option<Method>,
    /// Lets npm download the package now, instead of npx at each start.
    pub preinstall: bool,
    /// Installs again even if this version is installed.
    pub force: bool,
}

/// The result of an installation.
#[derive(Debug)]
pub enum Outcome {
    /// The agent was installed.
    Installed(InstalledAgent),
    /// This version was installed before.
    UpToDate(InstalledAgent),
}

impl Registry {
    /// Installs an agent.
    ///
    /// # Errors
    /// If a download fails, a checksum does not match, or no distribution works on this machine.
    pub fn install(
        &self,
        found: &AvailableAgent,
        options: InstallOptions,
        on_event: OnEvent<'_>,
    ) -> Result<Outcome> {
        let mut transaction = Transaction::begin(&self.data)?;
        let entry = &found.entry;
        let before = transaction.agents.get(&entry.id).cloned();
        let distribution = choose(entry, options.method)?;
        if let Some(before) = &before
            && !options.force
            && is_same(before, found, distribution, options.preinstall)
            && is_complete(before, &self.data)
        {
            return Ok(Outcome::UpToDate(before.clone()));
        }
        let mut agent = InstalledAgent {
            id: entry.id.clone(),
            name: entry.name.clone(),
            version: entry.version.clone(),
            source: found.source.location.clone(),
            method: distribution.method,
            from: distribution.from.clone(),
            sha256: None,
            verified: None,
            dir: None,
            argv: Vec::new(),
            env: distribution.env.clone(),
            installed_at: format!("{:.3}", jiff::Timestamp::now()),
        };
        let staging = transaction.staging_dir(&entry.id);
        let installed = match distribution.method {
            Method::Binary => {
                self.install_archive(found, distribution, before.as_ref(), &staging, &mut agent, on_event)
            }
            Method::Npx if options.preinstall => {
                npm::preinstall(distribution, &staging, &mut agent, on_event)
            }
            Method::Npx => {
                agent.argv = runner(&["npx", "-y"], "--package", distribution);
                Ok(())
            }
            Method::Uvx => {
                agent.argv = runner(&["uvx"], "--from", distribution);
                Ok(())
            }
        };
        let committed = installed.and_then(|()| {
            if staging.exists() {
                agent.dir = Some(transaction.publish(&staging, &entry.id, &entry.version)?);
            }
            transaction.agents.insert(entry.id.clone(), agent.clone());
            transaction.commit()
        });
        if committed.is_err() {
            let _ = fs::remove_dir_all(&staging);
        }
        let (id, version, method) = (&entry.id, &entry.version, distribution.method.name());
        committed.map_err(|error| {
            tracing::debug!(id, version, method, "agent not installed");
            error.context(format_args!("{id} {version}"))
        })?;
        tracing::info!(id, version, method, verified = agent.verified, "agent installed");
        // The archive of the previous version is of no use any more.
        if let Some(before) = before.filter(|before| before.from != agent.from) {
            forget_archive(&self.cache, &before);
        }
        Ok(Outcome::Installed(agent))
    }

    fn install_archive(
        &self,
        found: &AvailableAgent,
        distribution: &Distribution,
        before: Option<&InstalledAgent>,
        staging: &Path,
        agent: &mut InstalledAgent,
        on_event: OnEvent<'_>,
    ) -> Result<()> {
        let kind = ArchiveKind::of(&distribution.from)?;
        let program = program_path(distribution.command.as_deref().unwrap_or_default())?;
        if self.options.require_checksum && distribution.sha256.is_none() {
            return Err(Error::new("the registry has no checksum for it")
                .hint("to install it anyway, leave out --require-checksum and `require_checksum`"));
        }
        let archive = archive_path(&self.cache, &distribution.from);
        let (file, sha256) = self.fetch_archive(found, distribution, &archive, on_event)?;
        verify(distribution, before, &found.entry.version, &sha256).inspect_err(|_| {
            tracing::warn!(
                id = agent.id,
                version = agent.version,
                "the checksum of the archive does not match"
            );
            let _ = fs::remove_file(&archive);
        })?;
        let _ = fs::remove_dir_all(staging);
        archive::unpack(&file, kind, staging, &program.to_string_lossy())?;
        let program = find_program(staging, &program)?;
        make_executable(&staging.join(&program))?;
        agent.argv = vec![program.to_string_lossy().into_owned()];
        agent.argv.extend(distribution.args.iter().cloned());
        agent.verified = Some(distribution.sha256.is_some());
        agent.sha256 = Some(sha256);
        Ok(())
    }

    /// Returns the archive as a file, and its hash. Local files are not copied; downloads are
    /// cached.
    fn fetch_archive(
        &self,
        found: &AvailableAgent,
        distribution: &Distribution,
        archive: &Path,
        on_event: OnEvent<'_>,
    ) -> Result<(PathBuf, String)> {
        let url = match found.source.resolve(&distribution.from)? {
            ArchiveLocation::File(path) => {
                let sha256 = sha256_of(&path).context(path.display())?;
                return Ok((path, sha256));
            }
            ArchiveLocation::Web(url) => url,
        };
        // A cached archive is used if its hash is the wanted one, or if there is no other way.
        if let Ok(sha256) = sha256_of(archive)
            && (distribution.sha256.as_ref() == Some(&sha256) || self.options.offline)
        {
            tracing::debug!(id = found.entry.id, "the archive is in the cache");
            return Ok((archive.to_owned(), sha256));
        }
        if self.options.offline {
            return Err(Error::new(format_args!(
                "{url} is not in the cache, and --offline forbids downloads"
            )));
        }
        self.options.check_http(&url, distribution.sha256.is_some())?;
        if let Some(dir) = archive.parent() {
            private_dir(dir)?;
        }
        let part = archive.with_extension("part");
        let name = format!("{} {}", found.entry.id, found.entry.version);
        let token = found.source.token_for(&url)?;
        let sha256 = self.options.http()?.archive(&url, token.as_deref(), &part, &name, on_event)?;
        fs::rename(&part, archive).context(archive.display())?;
        Ok((archive.to_owned(), sha256))
    }
}

/// Chooses the best distribution that works on this machine.
fn choose(entry: &Entry, wanted: Option<Method>) -> Result<&Distribution> {
    let id = &entry.id;
    let distributions: Vec<&Distribution> = entry
        .distributions_here()
        .into_iter()
        .filter(|distribution| wanted.is_none_or(|wanted| wanted == distribution.method))
        .collect();
    if distributions.is_empty() {
        let mut there: Vec<&str> = entry
            .distributions
            .iter()
            .map(|distribution| distribution.platform.as_deref().unwrap_or(distribution.method.name()))
            .collect();
        there.dedup();
        let wanted = wanted.map(|method| format!(" via {}", method.name())).unwrap_or_default();
        let here = platform();
        return Err(Error::new(format_args!(
            "{id} is not available for {here}{wanted}, only as {}",
            there.join(", ")
        )));
    }
    let works = |distribution: &&&Distribution| match distribution.method {
        Method::Binary => true,
        Method::Npx => on_path("npx").is_some(),
        Method::Uvx => on_path("uvx").is_some(),
    };
    distributions.iter().find(works).copied().ok_or_else(|| {
        let tools: Vec<&str> = distributions.iter().map(|distribution| distribution.method.name()).collect();
        let mut error = Error::new(format_args!("{id} needs {}, which is not in PATH", tools.join(" or ")));
        for distribution in &distributions {
            error = error.hint(match distribution.method {
                Method::Npx => "npx comes with Node.js: https://nodejs.org",
                _ => "uvx comes with uv: https://docs.astral.sh/uv",
            });
        }
        error
    })
}

fn runner(runner: &[&str], option: &str, distribution: &Distribution) -> Vec<String> {
    let mut argv: Vec<String> = runner.iter().map(|&word| word.to_owned()).collect();
    match &distribution.command {
        Some(command) => argv.extend([option.to_owned(), distribution.from.clone(), command.clone()]),
        None => argv.push(distribution.from.clone()),
    }
    argv.extend(distribution.args.iter().cloned());
    argv
}

fn is_same(
    before: &InstalledAgent,
    found: &AvailableAgent,
    distribution: &Distribution,
    preinstall: bool,
) -> bool {
    let sum = distribution.sha256.is_none() || distribution.sha256 == before.sha256;
    let place = distribution.method != Method::Npx || before.dir.is_some() == preinstall;
    before.version == found.entry.version
        && before.method == distribution.method
        && before.from == distribution.from
        && sum
        && place
}

/// Returns whether the installed program still exists.
fn is_complete(before: &InstalledAgent, data: &Path) -> bool {
    before.dir.is_none() || before.command(data).first().is_some_and(|program| Path::new(program).exists())
}

/// Returns the path of a cached archive, which can be installed again without the network.
fn archive_path(cache: &Path, from: &str) -> PathBuf {
    cache.join("registry").join("archives").join(short_name(from))
}

/// Removes the cached archive of an agent.
pub(crate) fn forget_archive(cache: &Path, agent: &InstalledAgent) {
    let _ = fs::remove_file(archive_path(cache, &agent.from));
}

/// Compares the hash with that of the index or, without one, with that of the installed version: an
/// archive must not change.
fn verify(
    distribution: &Distribution,
    before: Option<&InstalledAgent>,
    version: &str,
    sha256: &str,
) -> Result<()> {
    if let Some(wanted) = &distribution.sha256
        && wanted != sha256
    {
        return Err(Error::new(format_args!(
            "checksum mismatch: the SHA-256 of the archive is {sha256}, the registry says {wanted}"
        ))
        .kind_of(ErrorKind::ChecksumMismatch)
        .hint("nothing was installed; report it to the maintainers of the registry"));
    }
    let same = before.filter(|before| before.version == version && before.from == distribution.from);
    if let Some(known) = same.and_then(|before| before.sha256.as_ref())
        && distribution.sha256.is_none()
        && known != sha256
    {
        return Err(Error::new(format_args!(
            "the archive has changed without a new version: its SHA-256 was {known} and is {sha256} now"
        ))
        .kind_of(ErrorKind::ChecksumMismatch)
        .hint("if you expected this, remove the agent and install it again: attache registry remove"));
    }
    Ok(())
}

/// Reads `./bin/tool` as a path in the archive.
fn program_path(command: &str) -> Result<PathBuf> {
    let mut path = PathBuf::new();
    for part in Path::new(command).components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) => path.push(part),
            _ => {
                return Err(Error::new(format_args!("its command `{command}` is not a path in its archive")));
            }
        }
    }
    if path.as_os_str().is_empty() {
        return Err(Error::new("the registry does not name the program in the archive"));
    }
    Ok(path)
}

/// Finds the program, which may be in a single top-level directory of the archive.
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
    Err(Error::new(format_args!("`{program}` is not in the archive, which contains {list}")))
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
