//! Downloads indexes and archives over HTTP.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use attache_http::client::{self, ErrorKind, HttpClient, HttpError, Request, Response, Timeouts};
use attache_http::proxy::Proxies;
use ring::digest::{Context, SHA256};
use tokio::runtime::{Builder, Runtime};

use crate::error::{Context as _, Error, Result};
use crate::{Event, OnEvent};

/// Largest index.
const MAX_INDEX: usize = 64 << 20;
/// Largest archive.
const MAX_ARCHIVE: u64 = 4 << 30;
/// Time for each step of a request, and for each read.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Redirects that are followed.
const MAX_REDIRECTS: usize = 10;

const UNAUTHORIZED: u16 = 401;
const FORBIDDEN: u16 = 403;
const NOT_FOUND: u16 = 404;
const PARTIAL_CONTENT: u16 = 206;
const NOT_MODIFIED: u16 = 304;
const RANGE_NOT_SATISFIABLE: u16 = 416;

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

/// Downloads files. Its methods block, so they must not be called from async code.
pub(crate) struct Downloader {
    client: HttpClient,
    runtime: Option<Runtime>,
}

impl Downloader {
    /// `certificates` is a file in PEM, trusted in addition to Mozilla's authorities; the default
    /// is `SSL_CERT_FILE`.
    pub(crate) fn new(certificates: Option<&Path>) -> Result<Downloader> {
        let client = match certificates {
            Some(file) => HttpClient::new(Some(file)).map(|client| client.with_proxies(Proxies::from_env())),
            None => HttpClient::from_env(),
        };
        let timeouts = Timeouts { connect: TIMEOUT, response: Some(TIMEOUT), silence: Some(TIMEOUT) };
        let client = client.map_err(Error::new)?.with_timeouts(timeouts);
        let runtime = Builder::new_current_thread().enable_all().build().context("the runtime")?;
        Ok(Downloader { client, runtime: Some(runtime) })
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, HttpError>>) -> Result<T, HttpError> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(work),
            None => unreachable!("it is taken only by drop"),
        }
    }

    /// Sends a request and follows redirects, but never from https to http. Only the first server
    /// gets the token.
    fn send(&self, url: &str, token: Option<&str>, headers: Vec<(String, String)>) -> Result<Response> {
        let mut url = url.to_owned();
        let mut authorization = token.map(|token| ("authorization".to_owned(), format!("Bearer {token}")));
        for _ in 0..=MAX_REDIRECTS {
            let mut request = Request { headers: headers.clone(), ..Request::get(&url) };
            request.headers.extend(authorization.take());
            let response = self.wait(self.client.send(request)).map_err(|error| {
                tracing::debug!(server = server(&url), kind = ?error.kind(), "no response");
                no_response(&url, &error)
            })?;
            tracing::debug!(server = server(&url), status = response.status, "response");
            let location = match response.status {
                301 | 302 | 303 | 307 | 308 => response.header("location"),
                _ => None,
            };
            let Some(location) = location else { return Ok(response) };
            let target = client::absolute(&url, location);
            if url.starts_with("https:") && !target.starts_with("https:") {
                return Err(Error::new(format_args!("{url}: the server redirects to plain http")));
            }
            url = target;
        }
        Err(Error::new(format_args!("{url}: too many redirects")))
    }

    /// Requests an index, unless its `ETag` is still this one.
    pub(crate) fn index(
        &self,
        url: &str,
        token: Option<&str>,
        etag: Option<&str>,
    ) -> Result<IndexResponse, FetchError> {
        let transient = |error| FetchError { error, transient: true };
        let condition = etag.map(|etag| ("if-none-match".to_owned(), etag.to_owned()));
        let mut response = self.send(url, token, condition.into_iter().collect()).map_err(transient)?;
        match response.status {
            NOT_MODIFIED => Ok(IndexResponse::NotModified),
            200..300 => {
                let etag = response.header("etag").map(str::to_owned);
                let body = self.wait(response.body.bytes(MAX_INDEX));
                let body = body.map_err(|error| transient(no_response(url, &error)))?;
                let text = String::from_utf8(body)
                    .map_err(|_| transient(Error::new(format_args!("{url}: the index is not UTF-8"))))?;
                Ok(IndexResponse::New { text, etag })
            }
            status => Err(FetchError { error: refused(url, status), transient: status >= 500 }),
        }
    }

    /// Downloads an archive into a file and returns its SHA-256. An interrupted download is resumed
    /// if the server still has the same version.
    pub(crate) fn archive(
        &self,
        url: &str,
        token: Option<&str>,
        into: &Path,
        name: &str,
        on_event: OnEvent<'_>,
    ) -> Result<String> {
        let partial = PartialDownload::find(into);
        let mut headers = Vec::new();
        if let Some(partial) = &partial {
            headers.push(("range".to_owned(), format!("bytes={}-", partial.length)));
            headers.push(("if-range".to_owned(), partial.tag.clone()));
        }
        let mut response = self.send(url, token, headers)?;
        let start = match (response.status, partial) {
            (PARTIAL_CONTENT, Some(partial))
                if response
                    .header("content-range")
                    .is_some_and(|range| range.starts_with(&format!("bytes {}-", partial.length))) =>
            {
                partial.length
            }
            // The archive is complete or has changed; either way the first part is of no use.
            (RANGE_NOT_SATISFIABLE | PARTIAL_CONTENT, Some(_)) => {
                PartialDownload::forget(into);
                return self.archive(url, token, into, name, on_event);
            }
            (200..300, _) => {
                let tag = response.header("etag").or_else(|| response.header("last-modified"));
                PartialDownload::note(into, tag);
                0
            }
            (status, _) => return Err(refused(url, status)),
        };
        let length = response.header("content-length").and_then(|length| length.parse::<u64>().ok());
        let length = length.map(|length| length + start);
        tracing::debug!(name, start, total = length, "download started");
        on_event(Event::DownloadStarted { name, total: length });
        on_event(Event::Downloaded(start));
        let interrupted = |what: &dyn std::fmt::Display| {
            Error::new(format_args!("{url}: {what}"))
                .hint("try again; the download resumes if the server supports it")
        };
        let next = || self.wait(response.body.chunk()).map_err(io::Error::from);
        let received = copy(next, into, start, |count| on_event(Event::Downloaded(count)));
        on_event(Event::DownloadEnded);
        let (sum, received) = received.map_err(|error| {
            tracing::debug!(name, %error, "download interrupted");
            interrupted(&error)
        })?;
        tracing::debug!(name, received, "download ended");
        if length.is_some_and(|length| length != received) {
            return Err(interrupted(&"the download ended early"));
        }
        let _ = fs::remove_file(PartialDownload::tag_file(into));
        Ok(sum)
    }
}

impl Drop for Downloader {
    fn drop(&mut self) {
        // A name lookup that does not end must not keep the program.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
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
fn no_response(url: &str, cause: &HttpError) -> Error {
    let error = Error::new(format_args!("{url}: {cause}"));
    if cause.kind() == ErrorKind::Tls {
        return error.hint(
            "for a private server, set `certificates` under `[registry]`, or SSL_CERT_FILE, to a file in PEM",
        );
    }
    error.hint("--offline uses earlier downloads")
}

fn refused(url: &str, status: u16) -> Error {
    let error = Error::new(format_args!("{url}: the server responded with HTTP status {status}"));
    match status {
        UNAUTHORIZED | FORBIDDEN => {
            error.hint("set `token_env` under `[registry]` to the variable that holds a token")
        }
        NOT_FOUND => error.hint("get the newest index: attache registry list --refresh"),
        _ => error,
    }
}

/// Appends chunks to a file after its first `start` bytes and syncs it. Returns the SHA-256 and the
/// length of all of it.
fn copy<C: AsRef<[u8]>>(
    mut next: impl FnMut() -> io::Result<Option<C>>,
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
    while let Some(chunk) = next()? {
        let bytes = chunk.as_ref();
        total += bytes.len() as u64;
        if total > MAX_ARCHIVE {
            return Err(io::Error::other("the archive is too large"));
        }
        digest.update(bytes);
        file.write_all(bytes)?;
        on_bytes(bytes.len() as u64);
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

/// Returns host and port of an address; empty for a path. Logs show no more of it: the rest may
/// hold a password or a token.
pub(crate) fn server(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    // A user name before an @ is not the host.
    authority.rsplit('@').next().unwrap_or_default()
}

/// Returns a short file name for an address.
pub(crate) fn short_name(text: &str) -> String {
    let digest = ring::digest::digest(&SHA256, text.as_bytes());
    hex(digest.as_ref().get(..12).unwrap_or_default())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_name_the_server_alone() {
        for (url, expected) in [
            ("https://user:key@example.com:8443/r.json?token=t", "example.com:8443"),
            ("https://example.com", "example.com"),
            ("https://example.com?token=a@b", "example.com"),
            ("http://[::1]:8/x", "[::1]:8"),
            ("/srv/registry.json", ""),
        ] {
            assert_eq!(server(url), expected, "{url}");
        }
    }
}
