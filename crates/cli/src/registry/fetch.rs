//! HTTP: indexes and archives.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::Path;
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

    /// Downloads an archive into a file and gives its SHA-256.
    pub(super) fn archive(
        &self,
        url: &str,
        token: Option<&str>,
        into: &Path,
        what: &str,
        output: &Output,
    ) -> Result<String> {
        let mut request = self.agent(url)?.get(url);
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let answer = request.call().map_err(|error| explain(url, &error))?;
        if !answer.status().is_success() {
            return Err(refused(url, answer.status()));
        }
        let body = answer.into_body();
        let length = body.content_length();
        let mut progress = Progress::new(output, what, length);
        let mut reader = body.into_with_config().limit(MOST_ARCHIVE).reader();
        let (sum, received) = copy(&mut reader, into, |count| progress.add(count)).context(url)?;
        if length.is_some_and(|length| length != received) {
            return Err(Failure::runtime(format_args!("{url}: the download ended early")).hint("try again"));
        }
        Ok(sum)
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

/// Copies into a new file, which is on the disk afterwards. Gives the SHA-256 and the length.
pub(super) fn copy(
    from: &mut dyn Read,
    into: &Path,
    mut each: impl FnMut(usize),
) -> io::Result<(String, u64)> {
    let mut file = File::create(into)?;
    let mut digest = Context::new(&SHA256);
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
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
