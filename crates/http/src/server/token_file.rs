//! A token file that is read again when it changes.

use super::access::{Authenticate, Identity, Tokens};
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The tokens of a file. A line that is added counts at once; a line that is removed also ends the
/// connections of its token.
///
/// ```
/// use attache_http::server::{Authenticate, TokenFile, Tokens};
///
/// # fn main() -> std::io::Result<()> {
/// # let path = std::env::temp_dir().join(format!("attache-tokens-{}", std::process::id()));
/// let (token, entry) = Tokens::generate("laptop")?;
/// std::fs::write(&path, entry)?;
/// let tokens = TokenFile::open(&path)?;
/// assert!(tokens.authenticate(&token).is_some());
/// std::fs::remove_file(&path)?;
/// assert!(tokens.authenticate(&token).is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    current: Mutex<(Version, Tokens)>,
}

/// Time and length of a file; `None` if there is none.
type Version = Option<(SystemTime, u64)>;

impl TokenFile {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or a line is invalid.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<TokenFile> {
        let path = path.into();
        let version = version(&path);
        let tokens = Tokens::parse(&std::fs::read_to_string(&path)?)?;
        Ok(TokenFile { path, current: Mutex::new((version, tokens)) })
    }

    /// Calls `f` with the tokens of now.
    fn with<T>(&self, f: impl FnOnce(&Tokens) -> T) -> T {
        let mut current = self.current.lock();
        let now = version(&self.path);
        if now != current.0 {
            let read = std::fs::read_to_string(&self.path).and_then(|text| Tokens::parse(&text));
            match read {
                Ok(tokens) => *current = (now, tokens),
                // Without a file there is no access; one that is half written is read at the next
                // change.
                Err(error) if error.kind() == io::ErrorKind::NotFound => *current = (now, Tokens::default()),
                Err(error) => {
                    tracing::warn!(%error, path = %self.path.display(), "the token file cannot be read; the tokens stay");
                    current.0 = now;
                }
            }
        }
        f(&current.1)
    }
}

fn version(path: &Path) -> Version {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

impl Authenticate for TokenFile {
    fn authenticate(&self, token: &str) -> Option<Identity> {
        self.with(|tokens| tokens.authenticate(token))
    }

    fn is_revoked(&self, identity: &Identity) -> bool {
        self.with(|tokens| tokens.is_revoked(identity))
    }
}
