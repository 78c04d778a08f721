//! Relative URLs.

use super::Target;

/// Resolves the location of a redirect or another relative URL.
pub(crate) fn absolute(base: &str, location: &str) -> String {
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
pub(crate) fn same_server(one: &str, other: &str) -> bool {
    match (Target::of(one), Target::of(other)) {
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
