//! Where indexes come from: addresses, files, directories; and the copies of them that work without a network.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::fetch::{Index, Web, short_name};
use super::format::{self, Entry};
use crate::cx::Cx;
use crate::error::{Context as _, Failure, Result};
use crate::paths::replace;

/// The public registry of the protocol.
const PUBLIC: &str = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json";
/// How old a copy may be before the server is asked again.
const MAX_AGE: Duration = Duration::from_secs(3600);

/// `[registry]` in the settings, with flags and environment on top.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) sources: Vec<Source>,
    max_age: Duration,
    /// Whether an index or an archive may come over http, where anybody on the way can change it.
    allow_http: bool,
    pub(super) require_checksum: bool,
    certificates: Option<PathBuf>,
    offline: bool,
    refresh: bool,
}

/// One index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// An http address, or a path.
    pub(super) place: String,
    /// The variable that holds the token for it.
    token_env: Option<String>,
}

/// Where an archive is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Web(String),
    File(PathBuf),
}

/// An agent and the index that it is from.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) entry: Entry,
    pub(super) source: Source,
}

impl Settings {
    pub(super) fn new(cx: &Cx) -> Result<Settings> {
        let mut settings = Settings {
            sources: Vec::new(),
            max_age: MAX_AGE,
            allow_http: false,
            require_checksum: cx.flags.registry.require_checksum,
            certificates: None,
            offline: cx.flags.registry.offline,
            refresh: cx.flags.registry.refresh,
        };
        if let Some(setting) = cx.config.tables.get("registry") {
            settings.read(&setting.value).map_err(|what| {
                Failure::usage(format_args!("`[registry]` in {}: {what}", cx.config.user_file.display()))
            })?;
        }
        // Said more closely, it replaces what was said before.
        let from_env = std::env::var("ATTACHE_REGISTRY").unwrap_or_default();
        let from_env: Vec<&str> =
            from_env.split(',').map(str::trim).filter(|place| !place.is_empty()).collect();
        let from_flags: Vec<&str> = cx.flags.registry.sources.iter().map(String::as_str).collect();
        for places in [from_env, from_flags].into_iter().filter(|places| !places.is_empty()) {
            let known = std::mem::take(&mut settings.sources);
            settings.sources = places
                .into_iter()
                .map(|place| {
                    let said = known.iter().find(|source| source.place == place);
                    said.cloned().unwrap_or_else(|| Source::new(place))
                })
                .collect();
        }
        if settings.sources.is_empty() {
            settings.sources.push(Source::new(PUBLIC));
        }
        for source in &mut settings.sources {
            source.settle(&cx.cwd);
        }
        Ok(settings)
    }

    fn read(&mut self, value: &toml::Value) -> Result<(), String> {
        for (key, value) in value.as_table().into_iter().flatten() {
            let wrong = |wanted: &str| format!("`{key}` is {wanted}");
            match key.as_str() {
                "url" => {
                    let list = match value {
                        toml::Value::Array(list) => list.as_slice(),
                        one => std::slice::from_ref(one),
                    };
                    let sources: Option<Vec<Source>> = list.iter().map(Source::read).collect();
                    self.sources = sources.ok_or_else(|| wrong("an address, or a list of them"))?;
                }
                "max_age" => {
                    let seconds = value.as_integer().and_then(|seconds| u64::try_from(seconds).ok());
                    self.max_age = Duration::from_secs(seconds.ok_or_else(|| wrong("a number of seconds"))?);
                }
                "allow_http" => self.allow_http = value.as_bool().ok_or_else(|| wrong("true or false"))?,
                "require_checksum" => {
                    self.require_checksum |= value.as_bool().ok_or_else(|| wrong("true or false"))?;
                }
                "certificates" => {
                    self.certificates = Some(value.as_str().ok_or_else(|| wrong("a file in PEM"))?.into());
                }
                _ => {
                    let known = ["url", "max_age", "allow_http", "require_checksum", "certificates"];
                    return Err(format!("there is no `{key}`, only {}", known.join(", ")));
                }
            }
        }
        Ok(())
    }

    pub(super) fn web(&self) -> Result<Web> {
        Web::new(self.certificates.as_deref())
    }

    pub(super) fn offline(&self) -> bool {
        self.offline
    }

    /// Whether something may come from this address.
    pub(super) fn check_http(&self, url: &str, checked: bool) -> Result<()> {
        if url.starts_with("https://") || self.allow_http || checked || is_loopback(url) {
            return Ok(());
        }
        Err(Failure::runtime(format_args!("{url}: over http anybody on the way could change it"))
            .hint("use https, or say `allow_http = true` under `[registry]` in the settings"))
    }

    /// All agents of all indexes; of several with one id, the first index counts. What is wrong is told on stderr.
    pub(super) fn agents(&self, cx: &Cx) -> Result<Vec<Found>> {
        let mut all: Vec<Found> = Vec::new();
        let mut failures = Vec::new();
        for source in &self.sources {
            match self.load(source, cx) {
                Ok(entries) => {
                    for entry in entries {
                        if !all.iter().any(|found| found.entry.id == entry.id) {
                            all.push(Found { entry, source: source.clone() });
                        }
                    }
                }
                Err(failure) => failures.push(failure),
            }
        }
        // One index that is out of reach does not hide the others.
        if failures.len() == self.sources.len()
            && let Some(failure) = failures.pop()
        {
            return Err(failure);
        }
        for failure in failures {
            cx.output.warn(failure);
        }
        all.sort_by(|a, b| a.entry.id.cmp(&b.entry.id));
        Ok(all)
    }

    fn load(&self, source: &Source, cx: &Cx) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for text in self.texts(source, cx)? {
            let (read, slips) = format::read(&text)
                .map_err(|what| Failure::runtime(format_args!("{}: {what}", source.place)))?;
            entries.extend(read);
            if cx.output.verbose {
                slips.iter().for_each(|slip| cx.output.warn(format_args!("{}: {slip}", source.place)));
            }
        }
        Ok(entries)
    }

    /// The texts of an index: one, or one per agent if it is a directory of them.
    fn texts(&self, source: &Source, cx: &Cx) -> Result<Vec<String>> {
        if source.is_web() {
            return self.cached(source, cx).map(|text| vec![text]);
        }
        let path = Path::new(&source.place);
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

    /// The index at an address: the copy while it is young, else what the server says, else the copy however old.
    fn cached(&self, source: &Source, cx: &Cx) -> Result<String> {
        let url = &source.place;
        self.check_http(url, false)?;
        let copy = Copy::at(&cx.paths.cache, url);
        let (text, tag, age) = match copy.read() {
            Some((text, tag, age)) => (Some(text), tag, age),
            None => (None, None, Duration::MAX),
        };
        if let Some(text) = &text
            && (self.offline || (age < self.max_age && !self.refresh))
        {
            return Ok(text.clone());
        }
        if self.offline {
            return Err(Failure::runtime(format_args!("there is no copy of {url} here"))
                .hint("run `attache registry list` once with a network"));
        }
        match self.web()?.index(url, source.token()?.as_deref(), tag.as_deref()) {
            Ok(Index::New { text, tag }) => {
                // What is no registry must not replace a copy that is one.
                format::read(&text).map_err(|what| Failure::runtime(format_args!("{url}: {what}")))?;
                copy.write(url, &text, tag.as_deref())?;
                Ok(text)
            }
            Ok(Index::Same) => {
                let text =
                    text.ok_or_else(|| Failure::runtime(format_args!("{url}: the server sent nothing")))?;
                copy.write(url, &text, tag.as_deref())?;
                Ok(text)
            }
            Err(trouble) => match text.filter(|_| trouble.passing) {
                Some(text) => {
                    let hours = age.as_secs() / 3600;
                    cx.output.warn(format_args!("{}; using the copy of {hours} hours ago", trouble.failure));
                    Ok(text)
                }
                None => Err(trouble.failure),
            },
        }
    }
}

impl Source {
    pub(super) fn new(place: &str) -> Source {
        Source { place: place.to_owned(), token_env: None }
    }

    /// An address, or `{ url = …, token_env = … }`.
    fn read(value: &toml::Value) -> Option<Source> {
        if let Some(place) = value.as_str() {
            return Some(Source::new(place));
        }
        let table = value.as_table()?;
        let token_env = match table.get("token_env") {
            None => None,
            Some(name) => Some(name.as_str()?.to_owned()),
        };
        Some(Source { place: table.get("url")?.as_str()?.to_owned(), token_env })
    }

    pub(super) fn is_web(&self) -> bool {
        self.place.starts_with("https://") || self.place.starts_with("http://")
    }

    /// A path becomes absolute, so that an agent can be updated from anywhere.
    fn settle(&mut self, cwd: &Path) {
        if self.is_web() {
            return;
        }
        let path = self.place.strip_prefix("file://").unwrap_or(&self.place);
        let path = match path.strip_prefix("~/") {
            Some(rest) => crate::paths::home().join(rest),
            None => cwd.join(path),
        };
        self.place = path.to_string_lossy().into_owned();
    }

    fn token(&self) -> Result<Option<String>> {
        let Some(name) = &self.token_env else { return Ok(None) };
        match std::env::var(name) {
            Ok(token) if !token.is_empty() => Ok(Some(token)),
            _ => Err(Failure::usage(format_args!("{} needs a token in the variable {name}", self.place))),
        }
    }

    /// The token for an archive: only for the server that the index is from.
    pub(super) fn token_for(&self, url: &str) -> Result<Option<String>> {
        if origin(&self.place).is_some() && origin(&self.place) == origin(url) {
            self.token()
        } else {
            Ok(None)
        }
    }

    /// Where an archive of this index is. Relative ones are beside the index.
    pub(super) fn resolve(&self, archive: &str) -> Result<Place> {
        let wrong = |what: &str| Failure::runtime(format_args!("{archive}: {what}"));
        if archive.starts_with("https://") || archive.starts_with("http://") {
            return Ok(Place::Web(archive.to_owned()));
        }
        if !self.is_web() {
            let path = archive.strip_prefix("file://").unwrap_or(archive);
            if path.contains("://") {
                return Err(wrong("addresses of this kind are not understood"));
            }
            let base = Path::new(&self.place);
            let dir = if base.is_dir() { base } else { base.parent().unwrap_or(base) };
            return Ok(Place::File(dir.join(path)));
        }
        if archive.contains(':') {
            return Err(wrong("an index on the web cannot point to this"));
        }
        let origin = origin(&self.place).unwrap_or_default();
        Ok(Place::Web(match archive.strip_prefix('/') {
            Some(path) => format!("{origin}/{path}"),
            None => {
                let index = self.place.split(['?', '#']).next().unwrap_or_default();
                let dir = index.rsplit_once('/').map_or(index, |(dir, _)| dir);
                format!("{dir}/{archive}")
            }
        }))
    }
}

/// `https://example.com:8080`
fn origin(url: &str) -> Option<&str> {
    let start = url.find("://")? + 3;
    let end = url.get(start..)?.find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    url.get(..end)
}

/// Whether an address leads to this machine, where nobody is on the way.
fn is_loopback(url: &str) -> bool {
    let host = origin(url).and_then(|origin| origin.split_once("://")).map_or("", |(_, host)| host);
    // A name before an @ is not the host.
    let host = host.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The copy of an index.
struct Copy {
    text: PathBuf,
    meta: PathBuf,
}

impl Copy {
    fn at(cache: &Path, url: &str) -> Copy {
        let name = short_name(url);
        let dir = cache.join("registry");
        Copy { text: dir.join(format!("{name}.json")), meta: dir.join(format!("{name}.meta.json")) }
    }

    /// The text, its tag, and how old it is.
    fn read(&self) -> Option<(String, Option<String>, Duration)> {
        let text = fs::read_to_string(&self.text).ok()?;
        let meta: Value = serde_json::from_str(&fs::read_to_string(&self.meta).ok()?).ok()?;
        let fetched = UNIX_EPOCH.checked_add(Duration::from_secs(meta.get("fetched")?.as_u64()?))?;
        // A clock that went back makes a copy old, not young for ever.
        let age = SystemTime::now().duration_since(fetched).unwrap_or(Duration::MAX);
        Some((text, meta.get("tag").and_then(Value::as_str).map(str::to_owned), age))
    }

    fn write(&self, url: &str, text: &str, tag: Option<&str>) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        replace(&self.text, text.as_bytes()).context("the cache")?;
        let meta = json!({ "url": url, "tag": tag, "fetched": now }).to_string();
        replace(&self.meta, meta.as_bytes()).context("the cache")
    }
}

/// What the copies of indexes say about an agent, without asking anybody: for hints.
pub(crate) fn hint_for(cache: &Path, id: &str) -> Option<Entry> {
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
        assert_eq!(at("a/b.tgz"), Place::Web("https://example.com/r/v1/a/b.tgz".to_owned()));
        assert_eq!(at("/b.tgz"), Place::Web("https://example.com/b.tgz".to_owned()));
        assert_eq!(at("https://other.org/b"), Place::Web("https://other.org/b".to_owned()));
        assert!(web.resolve("file:///etc/passwd").is_err());
        let file = Source::new("/srv/registry.json");
        assert_eq!(file.resolve("b.tgz").unwrap(), Place::File("/srv/b.tgz".into()));
        assert_eq!(file.resolve("file:///b.tgz").unwrap(), Place::File("/b.tgz".into()));
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
            place: "https://a.example/r.json".to_owned(),
            token_env: Some("NO_SUCH_TOKEN".to_owned()),
        };
        assert!(source.token_for("https://a.example/x.tgz").is_err());
        assert_eq!(source.token_for("https://b.example/x.tgz").unwrap(), None);
        assert_eq!(source.token_for("http://a.example/x.tgz").unwrap(), None);
    }
}
