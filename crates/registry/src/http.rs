//! Downloads indexes and archives over HTTP.

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

use crate::error::{Context as _, Error, Result};
use crate::{Event, OnEvent};

/// Largest index.
const MAX_INDEX: u64 = 64 << 20;
/// Largest archive.
const MAX_ARCHIVE: u64 = 4 << 30;
/// Time for each step of a request, and for each read.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A response to a request for an index.
pub(crate) enum IndexResponse {
    New { text: String, etag: Option<String> },
    NotModified,
}

/// A failed request; after a transient error a cached copy may be used.
pub(crate) struct FetchError {
    pub(crate) error: Error,
    pub(crate) transient: bool,
}

/// An HTTP client.
pub(crate) struct HttpClient {
    /// Certificates to trust instead of the built-in ones, in PEM.
    certificates: Option<Vec<u8>>,
}

impl HttpClient {
    /// `certificates` is a file in PEM; the default is `SSL_CERT_FILE`.
    pub(crate) fn new(certificates: Option<&Path>) -> Result<HttpClient> {
        let from_env = std::env::var_os("SSL_CERT_FILE").filter(|file| !file.is_empty());
        let file = certificates.map(Path::to_owned).or_else(|| from_env.map(Into::into));
        let certificates = file.map(|file| fs::read(&file).context(file.display())).transpose()?;
        Ok(HttpClient { certificates })
    }

    /// Builds an agent that never follows a redirect from https to http.
    fn agent(&self, url: &str) -> Result<Agent> {
        let mut tls = TlsConfig::builder();
        if let Some(pem) = &self.certificates {
            let mut roots = Vec::new();
            for item in parse_pem(pem) {
                if let PemItem::Certificate(certificate) = item.context("the certificates")? {
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
            .timeout_resolve(Some(TIMEOUT))
            .timeout_connect(Some(TIMEOUT))
            .timeout_recv_response(Some(TIMEOUT))
            .timeout_per_read(Some(TIMEOUT))
            .build();
        Ok(config.into())
    }

    /// Requests an index, unless its `ETag` is still this one.
    pub(crate) fn index(
        &self,
        url: &str,
        token: Option<&str>,
        etag: Option<&str>,
    ) -> Result<IndexResponse, FetchError> {
        let permanent = |error| FetchError { error, transient: false };
        let transient =
            |what: &dyn std::fmt::Display| FetchError { error: no_response(url, what), transient: true };
        let mut request = self.agent(url).map_err(permanent)?.get(url);
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        if let Some(etag) = etag {
            request = request.header("If-None-Match", etag);
        }
        let mut response = request.call().map_err(|error| transient(&error))?;
        match response.status() {
            StatusCode::NOT_MODIFIED => Ok(IndexResponse::NotModified),
            status if status.is_success() => {
                let etag =
                    response.headers().get("etag").and_then(|etag| etag.to_str().ok()).map(str::to_owned);
                let text = response.body_mut().with_config().limit(MAX_INDEX).read_to_string();
                Ok(IndexResponse::New { text: text.map_err(|error| transient(&error))?, etag })
            }
            status => Err(FetchError { error: refused(url, status), transient: status.is_server_error() }),
        }
    }

    /// Downloads an archive into a file and returns its SHA-256. An interrupted download is resumed if the
    /// server still has the same version.
    pub(crate) fn archive(
        &self,
        url: &str,
        token: Option<&str>,
        into: &Path,
        name: &str,
        on_event: OnEvent<'_>,
    ) -> Result<String> {
        let partial = PartialDownload::find(into);
        let mut request = self.agent(url)?.get(url);
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        if let Some(partial) = &partial {
            request = request
                .header("Range", format!("bytes={}-", partial.length))
                .header("If-Range", &partial.tag);
        }
        let response = request.call().map_err(|error| no_response(url, &error))?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let start = match (response.status(), partial) {
            (StatusCode::PARTIAL_CONTENT, Some(partial))
                if header("content-range")
                    .is_some_and(|range| range.starts_with(&format!("bytes {}-", partial.length))) =>
            {
                partial.length
            }
            // The archive is complete or has changed; either way the first part is of no use.
            (StatusCode::RANGE_NOT_SATISFIABLE | StatusCode::PARTIAL_CONTENT, Some(_)) => {
                PartialDownload::forget(into);
                return self.archive(url, token, into, name, on_event);
            }
            (status, _) if status.is_success() => {
                PartialDownload::note(into, header("etag").or_else(|| header("last-modified")));
                0
            }
            (status, _) => return Err(refused(url, status)),
        };
        let body = response.into_body();
        let length = body.content_length().map(|length| length + start);
        on_event(Event::DownloadStarted { name, total: length });
        on_event(Event::Downloaded(start));
        let mut reader = body.into_with_config().limit(MAX_ARCHIVE).reader();
        let interrupted = |what: &dyn std::fmt::Display| {
            Error::new(format_args!("{url}: {what}"))
                .hint("try again; the download resumes if the server supports it")
        };
        let received = copy(&mut reader, into, start, |count| on_event(Event::Downloaded(count)));
        on_event(Event::DownloadEnded);
        let (sum, received) = received.map_err(|error| interrupted(&error))?;
        if length.is_some_and(|length| length != received) {
            return Err(interrupted(&"the download ended early"));
        }
        let _ = fs::remove_file(PartialDownload::tag_file(into));
        Ok(sum)
    }
}

/// An interrupted download.
struct PartialDownload {
    length: u64,
    /// The `ETag` or date of the version that the bytes are of.
    tag: String,
}

impl PartialDownload {
    fn tag_file(into: &Path) -> PathBuf {
        into.with_extension("tag")
    }

    fn find(into: &Path) -> Option<PartialDownload> {
        let length = fs::metadata(into).ok()?.len();
        let tag = fs::read_to_string(PartialDownload::tag_file(into)).ok()?;
        (length > 0).then_some(PartialDownload { length, tag })
    }

    /// Notes which version is downloaded. A weak tag does not promise the same bytes.
    fn note(into: &Path, tag: Option<&str>) {
        let file = PartialDownload::tag_file(into);
        let _ = match tag.filter(|tag| !tag.starts_with("W/")) {
            Some(tag) => fs::write(file, tag),
            None => fs::remove_file(file),
        };
    }

    fn forget(into: &Path) {
        let _ = fs::remove_file(into);
        let _ = fs::remove_file(PartialDownload::tag_file(into));
    }
}

/// The error of a request without a response.
fn no_response(url: &str, what: &dyn std::fmt::Display) -> Error {
    let what = what.to_string();
    let error = Error::new(format_args!("{url}: {what}"));
    if what.contains("certificate") {
        return error.hint(
            "for a private server, set `certificates` under `[registry]`, or SSL_CERT_FILE, to a file in PEM",
        );
    }
    error.hint("--offline uses earlier downloads")
}

fn refused(url: &str, status: StatusCode) -> Error {
    let error = Error::new(format_args!("{url}: the server responded {status}"));
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            error.hint("set `token_env` under `[registry]` to the variable that holds a token")
        }
        StatusCode::NOT_FOUND => error.hint("get the newest index: attache registry list --refresh"),
        _ => error,
    }
}

/// Appends to a file after its first `start` bytes and syncs it. Returns the SHA-256 and the length of
/// all of it.
fn copy(
    from: &mut dyn Read,
    into: &Path,
    start: u64,
    mut on_bytes: impl FnMut(u64),
) -> io::Result<(String, u64)> {
    let mut file = File::options().create(true).read(true).write(true).truncate(start == 0).open(into)?;
    let mut digest = Context::new(&SHA256);
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    while total < start {
        let count = match file.read(&mut buffer)? {
            0 => return Err(io::Error::other("the partial download has changed meanwhile")),
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
        on_bytes(count as u64);
    }
    file.sync_all()?;
    Ok((hex(digest.finish().as_ref()), total))
}

/// Returns the SHA-256 of a file.
pub(crate) fn sha256_of(path: &Path) -> io::Result<String> {
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

/// Returns a short file name for an address.
pub(crate) fn short_name(text: &str) -> String {
    let digest = ring::digest::digest(&SHA256, text.as_bytes());
    hex(digest.as_ref().get(..12).unwrap_or_default())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
