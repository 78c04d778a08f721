//! Finds indexes: by address, file or directory, with cached copies that work offline.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::error::{Context as _, Error, ErrorKind, Result};
use crate::format::{self, Entry};
use crate::http::{Downloader, IndexResponse, server, short_name};
use crate::lock::replace;
use crate::{Event, OnEvent, Options, Registry};

/// The public registry of the protocol.
const PUBLIC_REGISTRY: &str = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json";

/// One index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// An http address, or a path.
    pub location: String,
    /// The variable that holds the token for it.
    pub token_env: Option<String>,
}

/// The location of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArchiveLocation {
    Web(String),
    File(PathBuf),
}

/// An agent in an index.
#[derive(Debug, Clone)]
pub struct AvailableAgent {
    /// Its description.
    pub entry: Entry,
    /// The index.
    pub source: Source,
}

impl Options {
    pub(crate) fn http(&self) -> Result<Downloader> {
        Downloader::new(self.certificates.as_deref())
    }

    /// Refuses plain http, where others can change the data, unless a checksum protects it.
    pub(crate) fn check_http(&self, url: &str, has_checksum: bool) -> Result<()> {
        if url.starts_with("https://") || self.allow_http || has_checksum || is_loopback(url) {
            return Ok(());
        }
        Err(Error::new(format_args!("{url}: plain http is not protected against changes"))
            .hint("use https, or set `allow_http = true` under `[registry]` in the settings"))
    }
}

impl Registry {
    /// Reads all indexes. If several describe an agent, the first one counts. Fails only if no
    /// index can be read.
    ///
    /// # Errors
    /// The last error, if every index failed.
    pub fn agents(&self, on_event: OnEvent<'_>) -> Result<Vec<AvailableAgent>> {
        let mut all: Vec<AvailableAgent> = Vec::new();
        let mut errors = Vec::new();
        for source in &self.options.sources {
            match self.load(source, on_event) {
                Ok(entries) => {
                    for entry in entries {
                        if !all.iter().any(|found| found.entry.id == entry.id) {
                            all.push(AvailableAgent { entry, source: source.clone() });
                        }
                    }
                }
                Err(error) => errors.push(error),
            }
        }
        // One unreachable index does not hide the others.
        if errors.len() == self.options.sources.len()
            && let Some(error) = errors.pop()
        {
            return Err(error);
        }
        errors.iter().for_each(|error| on_event(Event::Warning(error.to_string())));
        all.sort_by(|a, b| a.entry.id.cmp(&b.entry.id));
        Ok(all)
    }

    fn load(&self, source: &Source, on_event: OnEvent<'_>) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut skipped = 0;
        for text in self.texts(source, on_event)? {
            let (valid, invalid) = format::read(&text).context(&source.location)?;
            entries.extend(valid);
            skipped += invalid.len();
            for entry in invalid {
                on_event(Event::InvalidEntry(format!("{}: {entry}", source.location)));
            }
        }
        tracing::debug!(server = server(&source.location), agents = entries.len(), skipped, "index read");
        Ok(entries)
    }

    /// Reads an index: one text, or one for each agent of a directory.
    fn texts(&self, source: &Source, on_event: OnEvent<'_>) -> Result<Vec<String>> {
        if source.is_web() {
            return self.cached(source, on_event).map(|text| vec![text]);
        }
        let path = Path::new(&source.location);
        if !path.is_dir() {
            return Ok(vec![fs::read_to_string(path).context(path.display())?]);
        }
        let whole = path.join("registry.json");
        if whole.is_file() {
            return Ok(vec![fs::read_to_string(&whole).context(whole.display())?]);
        }
        let mut texts = Vec::new();
        for inner in fs::read_dir(path).context(path.display())? {
            let inner = inner.context(path.display())?.path();
            let hidden = inner.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['.', '_']));
            let file = inner.join("agent.json");
            if !hidden && file.is_file() {
                texts.push(fs::read_to_string(&file).context(file.display())?);
            }
        }
        Ok(texts)
    }

    /// Returns the index at an address: the copy while it is fresh, else the response of the
    /// server, else the old copy.
    fn cached(&self, source: &Source, on_event: OnEvent<'_>) -> Result<String> {
        let url = &source.location;
        let options = &self.options;
        options.check_http(url, false)?;
        let copy = CachedIndex::at(&self.cache, url);
        let (text, tag, age) = match copy.read() {
            Some((text, tag, age)) => (Some(text), tag, age),
            None => (None, None, Duration::MAX),
        };
        if let Some(text) = &text
            && (options.offline || (age < options.max_age && !options.refresh))
        {
            tracing::debug!(server = server(url), age = age.as_secs(), "the copy of the index is used");
            return Ok(text.clone());
        }
        if options.offline {
            return Err(Error::new(format_args!("no cached copy of {url}"))
                .hint("run once without --offline: attache registry list"));
        }
        match options.http()?.index(url, source.token()?.as_deref(), tag.as_deref()) {
            Ok(IndexResponse::New { text, etag: tag }) => {
                // Only a valid index replaces a cached one.
                format::read(&text).context(url)?;
                copy.write(url, &text, tag.as_deref())?;
                Ok(text)
            }
            Ok(IndexResponse::NotModified) => {
                let text = text.ok_or_else(|| Error::new(format_args!("{url}: the server sent no index")))?;
                copy.write(url, &text, tag.as_deref())?;
                Ok(text)
            }
            Err(failed) => match text.filter(|_| failed.transient) {
                Some(text) => {
                    tracing::warn!(
                        server = server(url),
                        age = age.as_secs(),
                        "the index cannot be fetched; its copy is used"
                    );
                    let hours = age.as_secs() / 3600;
                    on_event(Event::Warning(format!(
                        "{}; using the copy of {hours} hours ago",
                        failed.error
                    )));
                    Ok(text)
                }
                None => Err(failed.error),
            },
        }
    }
}

impl Source {
    /// An index without a token.
    pub fn new(location: &str) -> Source {
        Source { location: location.to_owned(), token_env: None }
    }

    /// The public registry of the protocol.
    pub fn public() -> Source {
        Source::new(PUBLIC_REGISTRY)
    }

    fn is_web(&self) -> bool {
        self.location.starts_with("https://") || self.location.starts_with("http://")
    }

    /// Makes a path absolute, so that an agent can be updated from any directory.
    pub fn make_absolute(&mut self, cwd: &Path) {
        if self.is_web() {
            return;
        }
        let path = self.location.strip_prefix("file://").unwrap_or(&self.location);
        let path = match path.strip_prefix("~/") {
            Some(rest) => std::env::home_dir().unwrap_or_else(|| PathBuf::from("/")).join(rest),
            None => cwd.join(path),
        };
        self.location = path.to_string_lossy().into_owned();
    }

    fn token(&self) -> Result<Option<String>> {
        let Some(name) = &self.token_env else { return Ok(None) };
        match std::env::var(name) {
            Ok(token) if !token.is_empty() => Ok(Some(token)),
            _ => Err(Error::new(format_args!("{}: the variable {name} has no token", self.location))
                .kind_of(ErrorKind::Settings)),
        }
    }

    /// Returns the token for an archive, which goes to the server of the index only.
    pub(crate) fn token_for(&self, url: &str) -> Result<Option<String>> {
        if origin(&self.location).is_some() && origin(&self.location) == origin(url) {
            self.token()
        } else {
            Ok(None)
        }
    }

    /// Locates an archive; a relative address starts at the index.
    pub(crate) fn resolve(&self, archive: &str) -> Result<ArchiveLocation> {
        let wrong = |what: &str| Error::new(format_args!("{archive}: {what}"));
        if archive.starts_with("https://") || archive.starts_with("http://") {
            return Ok(ArchiveLocation::Web(archive.to_owned()));
        }
        if !self.is_web() {
            let path = archive.strip_prefix("file://").unwrap_or(archive);
            if path.contains("://") {
                return Err(wrong("this kind of address is not supported"));
            }
            let base = Path::new(&self.location);
            let dir = if base.is_dir() { base } else { base.parent().unwrap_or(base) };
            return Ok(ArchiveLocation::File(dir.join(path)));
        }
        if archive.contains(':') {
            return Err(wrong("a remote index cannot use this kind of address"));
        }
        let origin = origin(&self.location).unwrap_or_default();
        Ok(ArchiveLocation::Web(match archive.strip_prefix('/') {
            Some(path) => format!("{origin}/{path}"),
            None => {
                let index = self.location.split(['?', '#']).next().unwrap_or_default();
                let dir = index.rsplit_once('/').map_or(index, |(dir, _)| dir);
                format!("{dir}/{archive}")
            }
        }))
    }
}

/// Returns scheme, host and port: `https://example.com:8080`.
fn origin(url: &str) -> Option<&str> {
    let start = url.find("://")? + 3;
    let end = url.get(start..)?.find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    url.get(..end)
}

/// Returns whether an address is on this machine, where no network is in between.
fn is_loopback(url: &str) -> bool {
    let host = server(url);
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The cached copy of an index.
struct CachedIndex {
    text: PathBuf,
    meta: PathBuf,
}

impl CachedIndex {
    fn at(cache: &Path, url: &str) -> CachedIndex {
        let name = short_name(url);
        let dir = cache.join("registry");
        CachedIndex { text: dir.join(format!("{name}.json")), meta: dir.join(format!("{name}.meta.json")) }
    }

    /// Returns the text, its `ETag`, and its age.
    fn read(&self) -> Option<(String, Option<String>, Duration)> {
        let text = fs::read_to_string(&self.text).ok()?;
        let meta: Value = serde_json::from_str(&fs::read_to_string(&self.meta).ok()?).ok()?;
        let fetched = UNIX_EPOCH.checked_add(Duration::from_secs(meta.get("fetched")?.as_u64()?))?;
        // A clock that went back makes a copy old, not fresh for ever.
        let age = SystemTime::now().duration_since(fetched).unwrap_or(Duration::MAX);
        Some((text, meta.get("tag").and_then(Value::as_str).map(str::to_owned), age))
    }

    fn write(&self, url: &str, text: &str, tag: Option<&str>) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        replace(&self.text, text.as_bytes())?;
        let meta = json!({ "url": url, "tag": tag, "fetched": now }).to_string();
        replace(&self.meta, meta.as_bytes())
    }
}

/// Finds an agent in the cached indexes, without the network.
pub fn cached_entry(cache: &Path, id: &str) -> Option<Entry> {
    for file in fs::read_dir(cache.join("registry")).ok()?.flatten() {
        let path = file.path();
        let name = file.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".json") || name.ends_with(".meta.json") {
            continue;
        }
        let entries = fs::read_to_string(&path).ok().and_then(|text| format::read(&text).ok());
        if let Some(entry) = entries.into_iter().flat_map(|(entries, _)| entries).find(|entry| entry.id == id)
        {
            return Some(entry);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn archives_beside_their_index() {
        let web = Source::new("https://example.com/r/v1/registry.json?x=/y");
        let at = |archive: &str| web.resolve(archive).unwrap();
        assert_eq!(at("a/b.tgz"), ArchiveLocation::Web("https://example.com/r/v1/a/b.tgz".to_owned()));
        assert_eq!(at("/b.tgz"), ArchiveLocation::Web("https://example.com/b.tgz".to_owned()));
        assert_eq!(at("https://other.org/b"), ArchiveLocation::Web("https://other.org/b".to_owned()));
        assert!(web.resolve("file:///etc/passwd").is_err());
        let file = Source::new("/srv/registry.json");
        assert_eq!(file.resolve("b.tgz").unwrap(), ArchiveLocation::File("/srv/b.tgz".into()));
        assert_eq!(file.resolve("file:///b.tgz").unwrap(), ArchiveLocation::File("/b.tgz".into()));
        assert!(file.resolve("ftp://x/b.tgz").is_err());
    }

    #[test]
    fn this_machine_by_its_names() {
        for url in ["http://127.0.0.1:80/x", "http://localhost/x", "http://[::1]:8/x"] {
            assert!(is_loopback(url), "{url}");
        }
        for url in [
            "http://example.com",
            "http://localhost.example.com/",
            "http://localhost@example.com/",
            "localhost",
        ] {
            assert!(!is_loopback(url), "{url}");
        }
    }

    #[test]
    fn a_token_is_for_its_own_server() {
        let source = Source {
            location: "https://a.example/r.json".to_owned(),
            token_env: Some("NO_SUCH_TOKEN".to_owned()),
        };
        assert!(source.token_for("https://a.example/x.tgz").is_err());
        assert_eq!(source.token_for("https://b.example/x.tgz").unwrap(), None);
        assert_eq!(source.token_for("http://a.example/x.tgz").unwrap(), None);
    }
}
