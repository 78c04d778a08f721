//! HTTP: indexes and archives.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ring::digest::{Context, SHA256};
use ureq::Agent;
use ureq::config::AutoHeaderValue;
use ureq::http::StatusCode;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use super::progress::Progress;
use crate::error::{Context as _, Failure, Result};
use crate::output::Output;

/// How big an index may be.
const MOST_INDEX: u64 = 64 << 20;
/// How big an archive may be.
const MOST_ARCHIVE: u64 = 4 << 30;
/// How long a server may take to answer, and to go on.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a server answers when it is asked for an index.
pub(super) enum Index {
    New {
        text: String,
        /// Names this version, so that it need not be sent again.
        tag: Option<String>,
    },
    /// The copy that we have is the newest.
    Same,
}

/// Why an index did not come: whether trying again, or a copy, makes sense.
pub(super) struct Trouble {
    pub(super) failure: Failure,
    pub(super) passing: bool,
}

/// A connection to servers.
pub(super) struct Web {
    /// Certificates to trust instead of those that are built in, in PEM.
    certificates: Option<Vec<u8>>,
}

impl Web {
    /// `certificates` is a file in PEM; without it, `SSL_CERT_FILE`.
    pub(super) fn new(certificates: Option<&Path>) -> Result<Web> {
        let from_env = std::env::var_os("SSL_CERT_FILE").filter(|file| !file.is_empty());
        let file = certificates.map(Path::to_owned).or_else(|| from_env.map(Into::into));
        let certificates = file.map(|file| fs::read(&file).context(file.display())).transpose()?;
        Ok(Web { certificates })
    }

    /// An agent that never goes from https to http on the way.
    fn agent(&self, url: &str) -> Result<Agent> {
        let mut tls = TlsConfig::builder();
        if let Some(pem) = &self.certificates {
            let mut roots = Vec::new();
            for item in parse_pem(pem) {
                if let PemItem::Certificate(certificate) = item.context("the file of certificates")? {
                    roots.push(certificate);
                }
            }
            tls = tls.root_certs(RootCerts::Specific(Arc::new(roots)));
        }
        let config = Agent::config_builder()
            .tls_config(tls.build())
            .https_only(url.starts_with("https:"))
            .http_status_as_error(false)
            .accept_encoding(AutoHeaderValue::None)
            .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(PATIENCE))
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            .build();
        Ok(config.into())
    }

    /// Asks for an index, unless it is the version of `tag`.
    pub(super) fn index(&self, url: &str, token: Option<&str>, tag: Option<&str>) -> Result<Index, Trouble> {
        let final_trouble = |failure| Trouble { failure, passing: false };
        let passing = |what: &dyn std::fmt::Display| Trouble { failure: explain(url, what), passing: true };
        let mut request = self.agent(url).map_err(final_trouble)?.get(url);
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        if let Some(tag) = tag {
            request = request.header("If-None-Match", tag);
        }
        let mut answer = request.call().map_err(|error| passing(&error))?;
        match answer.status() {
            StatusCode::NOT_MODIFIED => Ok(Index::Same),
            status if status.is_success() => {
                let tag = answer.headers().get("etag").and_then(|tag| tag.to_str().ok()).map(str::to_owned);
                let text = answer.body_mut().with_config().limit(MOST_INDEX).read_to_string();
                Ok(Index::New { text: text.map_err(|error| passing(&error))?, tag })
            }
            status => Err(Trouble { failure: refused(url, status), passing: status.is_server_error() }),
        }
    }

    /// Downloads an archive into a file and gives its SHA-256. What an interrupted download has left there is gone on with, if the
    /// server still has the same.
    pub(super) fn archive(
        &self,
        url: &str,
        token: Option<&str>,
        into: &Path,
        what: &str,
        output: &Output,
    ) -> Result<String> {
        let begun = Begun::find(into);
        let mut request = self.agent(url)?.get(url);
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        if let Some(begun) = &begun {
            request =
                request.header("Range", format!("bytes={}-", begun.length)).header("If-Range", &begun.tag);
        }
        let answer = request.call().map_err(|error| explain(url, &error))?;
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let start = match (answer.status(), begun) {
            (StatusCode::PARTIAL_CONTENT, Some(begun))
                if header("content-range")
                    .is_some_and(|range| range.starts_with(&format!("bytes {}-", begun.length))) =>
            {
                begun.length
            }
            // It is whole, or another one; either way the beginning is of no use.
            (StatusCode::RANGE_NOT_SATISFIABLE | StatusCode::PARTIAL_CONTENT, Some(_)) => {
                Begun::forget(into);
                return self.archive(url, token, into, what, output);
            }
            (status, _) if status.is_success() => {
                Begun::note(into, header("etag").or_else(|| header("last-modified")));
                0
            }
            (status, _) => return Err(refused(url, status)),
        };
        let body = answer.into_body();
        let length = body.content_length().map(|length| length + start);
        let mut progress = Progress::new(output, what, length);
        progress.add(usize::try_from(start).unwrap_or_default());
        let mut reader = body.into_with_config().limit(MOST_ARCHIVE).reader();
        let early = |what: &dyn std::fmt::Display| {
            Failure::runtime(format_args!("{url}: {what}"))
                .hint("try again; what has come so far is kept where the server can go on from there")
        };
        let received = copy(&mut reader, into, start, |count| progress.add(count));
        let (sum, received) = received.map_err(|error| early(&error))?;
        if length.is_some_and(|length| length != received) {
            return Err(early(&"the download ended early"));
        }
        let _ = fs::remove_file(Begun::tag_file(into));
        Ok(sum)
    }
}

/// A download that was interrupted.
struct Begun {
    length: u64,
    /// Names the version that the bytes are of.
    tag: String,
}

impl Begun {
    fn tag_file(into: &Path) -> PathBuf {
        into.with_extension("tag")
    }

    fn find(into: &Path) -> Option<Begun> {
        let length = fs::metadata(into).ok()?.len();
        let tag = fs::read_to_string(Begun::tag_file(into)).ok()?;
        (length > 0).then_some(Begun { length, tag })
    }

    /// Remembers which version is on its way. A weak tag does not promise the same bytes.
    fn note(into: &Path, tag: Option<&str>) {
        let file = Begun::tag_file(into);
        let _ = match tag.filter(|tag| !tag.starts_with("W/")) {
            Some(tag) => fs::write(file, tag),
            None => fs::remove_file(file),
        };
    }

    fn forget(into: &Path) {
        let _ = fs::remove_file(into);
        let _ = fs::remove_file(Begun::tag_file(into));
    }
}

/// Why there was no answer.
fn explain(url: &str, what: &dyn std::fmt::Display) -> Failure {
    let what = what.to_string();
    let failure = Failure::runtime(format_args!("{url}: {what}"));
    if what.contains("certificate") {
        return failure
            .hint("for a private server, `[registry] certificates` or SSL_CERT_FILE names a file in PEM");
    }
    failure.hint("`--offline` uses what was downloaded before")
}

fn refused(url: &str, status: StatusCode) -> Failure {
    let failure = Failure::runtime(format_args!("{url}: the server answers {status}"));
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => failure.hint(
            "it wants a token: `[registry] token_env` in the settings names the variable that holds one",
        ),
        StatusCode::NOT_FOUND => failure.hint("`attache registry list --refresh` gets the newest index"),
        _ => failure,
    }
}

/// Copies into a file, behind the `start` bytes that are there already; it is on the disk afterwards. Gives the SHA-256 and the
/// length of all of it.
fn copy(
    from: &mut dyn Read,
    into: &Path,
    start: u64,
    mut each: impl FnMut(usize),
) -> io::Result<(String, u64)> {
    let mut file = File::options().create(true).read(true).write(true).truncate(start == 0).open(into)?;
    let mut digest = Context::new(&SHA256);
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    while total < start {
        let count = match file.read(&mut buffer)? {
            0 => return Err(io::Error::other("the beginning is gone")),
            count => count,
        };
        digest.update(buffer.get(..count).unwrap_or_default());
        total += count as u64;
    }
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        digest.update(bytes);
        file.write_all(bytes)?;
        total += count as u64;
        each(count);
    }
    file.sync_all()?;
    Ok((hex(digest.finish().as_ref()), total))
}

/// The SHA-256 of a file.
pub(super) fn sum(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Context::new(&SHA256);
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(digest.finish().as_ref())),
            count => digest.update(buffer.get(..count).unwrap_or_default()),
        }
    }
}

/// A short name for something long.
pub(super) fn short_name(text: &str) -> String {
    let digest = ring::digest::digest(&SHA256, text.as_bytes());
    hex(digest.as_ref().get(..12).unwrap_or_default())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
