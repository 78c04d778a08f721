//! URLs: the server that a request goes to, and relative ones.

use hyper::Uri;

use super::HttpError;

/// The server and the resource of a request.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) uri: Uri,
}

impl Target {
    pub(super) fn parse(url: &str) -> Result<Self, HttpError> {
        let wrong = |why: &str| HttpError::invalid(format!("{why}; write `https://host/path`"));
        let uri: Uri = url.parse().map_err(|_| wrong("this is not a URL"))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("the URL is neither http nor https")),
        };
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(wrong("the URL contains a user name"));
        }
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err(wrong("the URL has no host"));
        }
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Ok(Target { tls, host, port, uri })
    }

    pub(super) fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }

    /// The value of the header `host`.
    pub(super) fn host_header(&self) -> &str {
        self.uri.authority().map_or(self.host.as_str(), |authority| authority.as_str())
    }
}

/// Checks that a URL can be requested.
///
/// # Errors
/// It is not a URL of `http` or `https`, or has no host, or contains a user name.
pub fn check_url(url: &str) -> Result<(), HttpError> {
    Target::parse(url).map(|_| ())
}

/// Resolves the location of a redirect or another relative URL.
pub fn absolute(base: &str, location: &str) -> String {
    if location.contains("://") {
        return location.to_owned();
    }
    let scheme = base.split("://").next().unwrap_or("https");
    if let Some(rest) = location.strip_prefix("//") {
        return format!("{scheme}://{rest}");
    }
    let start = scheme.len() + 3;
    let path = base.get(start..).and_then(|rest| rest.find('/')).map_or(base.len(), |at| start + at);
    if location.starts_with('/') {
        return format!("{}{location}", &base[..path]);
    }
    let directory = base[path..].split(['?', '#']).next().unwrap_or_default();
    let directory = &directory[..directory.rfind('/').map_or(0, |at| at + 1)];
    format!("{}{}{location}", &base[..path], if directory.is_empty() { "/" } else { directory })
}

/// Whether two URLs have the same scheme, host and port.
pub fn same_server(one: &str, other: &str) -> bool {
    match (Target::parse(one), Target::parse(other)) {
        (Ok(one), Ok(other)) => (one.tls, one.host, one.port) == (other.tls, other.host, other.port),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirections_are_resolved() {
        let at = |location| absolute("https://a.b/c/d?e", location);
        assert_eq!(at("/x"), "https://a.b/x");
        assert_eq!(at("x"), "https://a.b/c/x");
        assert_eq!(at("//c.d/x"), "https://c.d/x");
        assert_eq!(at("http://e/f"), "http://e/f");
        assert_eq!(absolute("https://a.b", "x"), "https://a.b/x");
    }

    #[test]
    fn a_server_is_its_scheme_host_and_port() {
        assert!(same_server("http://a/x", "http://a:80/y?z"));
        for other in ["https://a/x", "http://a:81/x", "http://ab/x", "a", ""] {
            assert!(!same_server("http://a/x", other), "{other}");
        }
    }
}
