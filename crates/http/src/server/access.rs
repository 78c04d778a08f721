//! Who may connect: tokens, origins, host names.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN, SEC_WEBSOCKET_PROTOCOL};
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

/// Who may connect to a server.
///
/// Example: [`Options`](super::Options).
#[derive(Clone)]
pub enum Access {
    /// Everyone who can reach the address, which must be a loopback address.
    Open,
    /// Owners of a token.
    Token(Arc<dyn Authenticate>),
}

impl Access {
    /// Whether the owner of a connection has lost its token.
    pub(super) fn is_revoked(&self, identity: Option<&Identity>) -> bool {
        match self {
            Access::Open => false,
            Access::Token(access) => identity.is_some_and(|identity| access.is_revoked(identity)),
        }
    }

    /// Access with tokens.
    pub fn tokens(tokens: Tokens) -> Access {
        Access::Token(Arc::new(tokens))
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Open => "Open",
            Access::Token(_) => "Token",
        })
    }
}

/// The check of a token.
///
/// Example: [`Tokens`] implements it.
pub trait Authenticate: Send + Sync {
    /// Returns the owner of a token, or `None` if it is unknown.
    fn authenticate(&self, token: &str) -> Option<Identity>;

    /// Whether an owner that had a token has none any more. The server then closes its connections.
    fn is_revoked(&self, identity: &Identity) -> bool {
        let _ = identity;
        false
    }
}

/// The owner of a token.
///
/// Example: [`Tokens`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    name: Arc<str>,
    /// Words of the form `KEY=VALUE`.
    attributes: Arc<[String]>,
}

impl Identity {
    /// An identity with a name.
    pub fn new(name: &str) -> Identity {
        Identity { name: Arc::from(name), attributes: Arc::default() }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns an attribute of the token, such as `role`. The server gives them no meaning.
    pub fn attribute(&self, key: &str) -> Option<&str> {
        let value = |word: &'_ String| word.split_once('=').is_some_and(|(name, _)| name == key);
        let word = self.attributes.iter().find(|word| value(word))?;
        word.split_once('=').map(|(_, value)| value)
    }
}

/// A list of tokens, of which only hashes are kept. In a file it has a line for each: its name, a
/// space, the SHA-256 hash in hex, and attributes of the form `KEY=VALUE`.
///
/// ```
/// use attache_http::server::{Authenticate, Tokens};
///
/// let (token, entry) = Tokens::generate("laptop")?;
/// let tokens = Tokens::parse(&entry)?;
/// assert_eq!(tokens.authenticate(&token).unwrap().name(), "laptop");
/// assert!(tokens.authenticate("guess").is_none());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    entries: Vec<(Identity, [u8; SHA256_OUTPUT_LEN])>,
}

impl Tokens {
    /// Makes a token of 256 random bits. Returns it with the line for the file.
    ///
    /// # Errors
    /// The name is not a single word, or the system has no random numbers.
    pub fn generate(name: &str) -> io::Result<(String, String)> {
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control() || c == '#') {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name of a token is one word"));
        }
        let mut bytes = [0; 32];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| io::Error::other("the system has no random numbers"))?;
        let token = URL_SAFE_NO_PAD.encode(bytes);
        let entry = format!("{name} {}\n", hex(&hash(&token)));
        Ok((token, entry))
    }

    /// Reads the lines of a file. Blank lines and lines that begin with `#` are skipped.
    ///
    /// # Errors
    /// A line has another form.
    pub fn parse(text: &str) -> io::Result<Tokens> {
        let mut entries = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some(entry) = entry(line) else {
                // The line may be a token that was pasted here, so it is not repeated.
                let why = format!("line {} is not a name and a SHA-256 hash", number + 1);
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            };
            entries.push(entry);
        }
        Ok(Tokens { entries })
    }

    /// Whether there is no token.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the owners.
    pub fn identities(&self) -> impl Iterator<Item = &Identity> {
        self.entries.iter().map(|(identity, _)| identity)
    }
}

impl Authenticate for Tokens {
    fn authenticate(&self, token: &str) -> Option<Identity> {
        let hash = hash(token);
        let mut found = None;
        // All entries are compared, each in constant time.
        for (identity, known) in &self.entries {
            let differing = known.iter().zip(&hash).fold(0, |differing, (a, b)| differing | (a ^ b));
            if std::hint::black_box(differing) == 0 {
                found = Some(identity);
            }
        }
        found.cloned()
    }

    fn is_revoked(&self, identity: &Identity) -> bool {
        !self.entries.iter().any(|(known, _)| known == identity)
    }
}

/// Reads a line of a file of tokens.
fn entry(line: &str) -> Option<(Identity, [u8; SHA256_OUTPUT_LEN])> {
    let mut words = line.split_whitespace();
    let (name, hash) = (words.next()?, unhex(words.next()?)?);
    let attributes: Vec<String> = words.map(str::to_owned).collect();
    let is_attribute = |word: &String| word.split_once('=').is_some_and(|(key, _)| !key.is_empty());
    let identity = Identity { attributes: attributes.into(), ..Identity::new(name) };
    identity.attributes.iter().all(is_attribute).then_some((identity, hash))
}

fn hash(token: &str) -> [u8; SHA256_OUTPUT_LEN] {
    let mut hash = [0; SHA256_OUTPUT_LEN];
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; SHA256_OUTPUT_LEN]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let bytes: Option<Vec<u8>> =
        pairs.iter().map(|&[high, low]| Some((digit(high)? * 16 + digit(low)?) as u8)).collect();
    bytes?.try_into().ok()
}

/// The subprotocol of browsers' clients; it may be named back, a token never.
pub(super) const SUBPROTOCOL: &str = "acp.v1";
/// The cookie that carries a token.
const TOKEN_COOKIE: &str = "acp_token";

/// All tokens of a request: bearer header, WebSocket subprotocol, cookie.
// Browsers cannot set headers of a WebSocket, so their clients put the token into the list of
// subprotocols.
fn tokens(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let bearer = text(headers, &AUTHORIZATION).filter_map(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    let protocols =
        text(headers, &SEC_WEBSOCKET_PROTOCOL).flat_map(|value| value.split(',')).filter_map(|name| {
            let name = name.trim();
            if let Some(encoded) =
                name.strip_prefix("acp-bearer.").or_else(|| name.strip_prefix("qwen-bearer."))
            {
                let bytes =
                    URL_SAFE_NO_PAD.decode(encoded).or_else(|_| STANDARD_NO_PAD.decode(encoded)).ok()?;
                return String::from_utf8(bytes).ok();
            }
            name.strip_prefix("bearer.").map(str::to_owned)
        });
    let cookies = text(headers, &COOKIE).flat_map(|value| value.split(';')).filter_map(|cookie| {
        let (name, value) = cookie.trim().split_once('=')?;
        (name == TOKEN_COOKIE).then(|| value.to_owned())
    });
    bearer.chain(protocols).chain(cookies).collect::<Vec<_>>().into_iter()
}

fn text<'a>(headers: &'a HeaderMap, name: &hyper::header::HeaderName) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok())
}

/// Why a request is refused before it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// 403: the `Host` is not a name of this server.
    Host,
    /// 403: a web page of another site sent it.
    Origin,
    /// 401: there is no token, or an unknown one.
    Token,
}

/// Checks a request. Returns the owner of its token. `bound` is the address that the client uses.
// HTTP-33, HTTP-36: `Origin` and the ids in headers are no credentials.
pub(super) fn check(
    headers: &HeaderMap,
    authority: Option<&str>,
    bound: IpAddr,
    options: &super::Options,
) -> Result<Option<Identity>, Refusal> {
    let host = authority.or_else(|| text(headers, &HOST).next());
    if !is_own_host(host, bound, &options.hosts) {
        return Err(Refusal::Host);
    }
    for origin in headers.get_all(ORIGIN) {
        let origin = origin.to_str().unwrap_or_default();
        let is_listed = options.origins.iter().any(|known| known.eq_ignore_ascii_case(origin));
        if !is_listed && !host.is_some_and(|host| is_own_origin(origin, host, options.tls.is_some())) {
            return Err(Refusal::Origin);
        }
    }
    match &options.access {
        Access::Open => Ok(None),
        Access::Token(access) => {
            tokens(headers).find_map(|token| access.authenticate(&token)).map(Some).ok_or(Refusal::Token)
        }
    }
}

/// Whether a page comes from the server that `host` names.
fn is_own_origin(origin: &str, host: &str, has_tls: bool) -> bool {
    let Some((scheme, name)) = origin.split_once("://") else { return false };
    // A page without TLS may be from anyone in between. A server without TLS may have a proxy in
    // front that has it.
    let is_scheme = scheme.eq_ignore_ascii_case("https") || !has_tls && scheme.eq_ignore_ascii_case("http");
    is_scheme && name.eq_ignore_ascii_case(host)
}

/// Whether a `Host` header names this server. A page of another site can make a name of its own
/// point to a loopback address, so there only known names are accepted.
fn is_own_host(host: Option<&str>, bound: IpAddr, known: &[String]) -> bool {
    let Some(host) = host else {
        // Only HTTP/1.0 has none, which no browser speaks.
        return true;
    };
    let name = without_port(host);
    if known.iter().any(|known| known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(host)) {
        return true;
    }
    if !bound.is_loopback() {
        return known.is_empty();
    }
    let ip = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if !host.ends_with(']') => host.get(..colon).unwrap_or(host),
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Options;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn verdict(options: &Options, pairs: &[(&'static str, &str)]) -> Result<Option<Identity>, Refusal> {
        check(&headers(pairs), None, IpAddr::from([127, 0, 0, 1]), options)
    }

    #[test]
    fn names_of_other_sites_are_refused_on_loopback() {
        let options = Options { hosts: vec!["box.example".to_owned()], ..Options::default() };
        for host in ["127.0.0.1:80", "localhost:9", "LOCALHOST", "[::1]:80", "127.8.9.1", "box.example:443"] {
            assert_eq!(verdict(&options, &[("host", host)]), Ok(None), "{host}");
        }
        for host in ["evil.example:80", "localhost.evil.example", "10.0.0.1", "", "127.0.0.1.evil"] {
            assert_eq!(verdict(&options, &[("host", host)]), Err(Refusal::Host), "{host}");
        }
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let options = Options { origins: vec!["https://app.example".to_owned()], ..Options::default() };
        let host = ("host", "127.0.0.1:80");
        assert_eq!(verdict(&options, &[host, ("origin", "https://app.example")]), Ok(None));
        assert_eq!(verdict(&options, &[host, ("origin", "http://127.0.0.1:80")]), Ok(None));
        for origin in ["null", "https://evil.example", "http://127.0.0.1:81", "https://app.example.evil", ""]
        {
            let refused = verdict(&options, &[host, ("origin", origin)]);
            assert_eq!(refused, Err(Refusal::Origin), "{origin}");
        }
    }

    #[test]
    fn a_page_without_tls_is_none_of_a_server_with_tls() {
        let host = "agents.example:443";
        for (origin, without, with) in [
            ("https://agents.example:443", true, true),
            ("http://agents.example:443", true, false),
            ("ftp://agents.example:443", false, false),
            ("https://agents.example", false, false),
            ("agents.example:443", false, false),
        ] {
            assert_eq!(is_own_origin(origin, host, false), without, "{origin}");
            assert_eq!(is_own_origin(origin, host, true), with, "{origin}");
        }
    }

    #[test]
    fn tokens_in_all_their_places() {
        let (token, entry) = Tokens::generate("me").unwrap();
        let options =
            Options { access: Access::tokens(Tokens::parse(&entry).unwrap()), ..Options::default() };
        let host = ("host", "localhost");
        let me = Ok(Some(Identity::new("me")));
        let encoded = URL_SAFE_NO_PAD.encode(&token);
        for (name, value) in [
            ("authorization", format!("Bearer {token}")),
            ("authorization", format!("bearer  {token} ")),
            ("sec-websocket-protocol", format!("acp.v1, bearer.{token}")),
            ("sec-websocket-protocol", format!("qwen-bearer.{encoded}, x")),
            ("cookie", format!("a=b; acp_token={token}")),
        ] {
            assert_eq!(verdict(&options, &[host, (name, &value)]), me, "{name}");
        }
        for (name, value) in [
            ("authorization", format!("Basic {token}")),
            ("cookie", format!("token={token}")),
            ("x", String::new()),
        ] {
            assert_eq!(verdict(&options, &[host, (name, &value)]), Err(Refusal::Token), "{name}");
        }
    }

    #[test]
    fn tokens_have_attributes() {
        let (token, entry) = Tokens::generate("me").unwrap();
        let tokens = Tokens::parse(&format!("{} role=watch tenant=a", entry.trim_end())).unwrap();
        let me = tokens.authenticate(&token).unwrap();
        assert_eq!((me.attribute("role"), me.attribute("tenant")), (Some("watch"), Some("a")));
        assert_eq!(me.attribute("expires"), None);
        // A token with other rights is another one: its connections end.
        assert!(Tokens::parse(&entry).unwrap().is_revoked(&me));
        assert!(Tokens::parse(&format!("{} watch", entry.trim_end())).is_err());
    }

    #[test]
    fn a_bad_line_is_named_but_not_repeated() {
        let error = Tokens::parse("# mine\n\nlaptop secret\n").unwrap_err().to_string();
        assert_eq!(error, "line 3 is not a name and a SHA-256 hash");
        assert!(Tokens::generate("two words").is_err());
    }
}
