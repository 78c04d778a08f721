//! Cookies of one server.

use std::sync::Arc;

use parking_lot::Mutex;

use super::super::date;

/// Cookies kept in total; a server that sets more loses the oldest.
const MAX_COOKIES: usize = 64;

/// Cookies of one server, shared by all clones.
///
/// ```
/// use attache_http::client::remote::Cookies;
///
/// let cookies = Cookies::default();
/// cookies.store("route=a1; Path=/; HttpOnly");
/// assert_eq!(cookies.header().as_deref(), Some("route=a1"));
/// ```
// HTTP-24: load balancers route by cookies. HTTP-25: they live as long as this value.
#[derive(Clone, Default)]
pub struct Cookies(Arc<Mutex<Vec<(String, String)>>>);

impl Cookies {
    /// Stores or deletes the cookie of a `set-cookie` header.
    pub fn store(&self, header: &str) {
        let mut parts = header.split(';').map(str::trim);
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { return };
        let (mut age, mut expires) = (None, None);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim().to_ascii_lowercase().as_str() {
                "max-age" => age = value.trim().parse::<i64>().ok().or(age),
                "expires" => expires = date::parse(value).or(expires),
                _ => {}
            }
        }
        // RFC 6265 §5.3: `max-age` counts before `expires`.
        let is_deleted = match (age, expires) {
            (Some(age), _) => age <= 0,
            (None, Some(end)) => end <= date::now(),
            (None, None) => false,
        };
        let mut cookies = self.0.lock();
        cookies.retain(|(known, _)| known != name);
        if !is_deleted && !name.is_empty() {
            if cookies.len() == MAX_COOKIES {
                cookies.remove(0);
            }
            cookies.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Returns the value of the `cookie` header; `None` without cookies.
    pub fn header(&self) -> Option<String> {
        let cookies = self.0.lock();
        let pairs: Vec<String> = cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

/// Without the values.
impl std::fmt::Debug for Cookies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.lock().iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_replaced_and_deleted() {
        let cookies = Cookies::default();
        assert_eq!(cookies.header(), None);
        for header in ["a=1; Path=/", "b=x=y", "a=2; Secure", "nonsense", "c=3", "c=; Max-Age=0"] {
            cookies.store(header);
        }
        assert_eq!(cookies.header().as_deref(), Some("b=x=y; a=2"));
        assert_eq!(format!("{cookies:?}"), r#"["b", "a"]"#);
        for header in [
            "b=; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/",
            "a=; expires=Thursday, 01-Jan-70 00:00:00 GMT",
            "d=4; Expires=Fri, 31 Dec 9999 23:59:59 GMT",
            "e=5; Expires=never",
            "f=6; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=60",
            "g=7; Max-Age=0; Expires=Fri, 31 Dec 9999 23:59:59 GMT",
        ] {
            cookies.store(header);
        }
        assert_eq!(cookies.header().as_deref(), Some("d=4; e=5; f=6"));
    }
}
