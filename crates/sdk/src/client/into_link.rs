//! Arguments of [`Client::connect`](super::Client::connect).

use std::future::Future;

use attache_conn::Link;

use crate::Result;

#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a `Link` nor a URL",
    note = "URLs need the feature `http` of the crate `attache`"
)]
/// A link, or with the feature `http` the URL of a remote agent.
///
/// ```no_run
/// # #[cfg(feature = "http")]
/// # async fn run() -> attache::Result<()> {
/// use attache::client::Client;
/// use attache::http::client::Backoff;
/// use attache::http::client::remote::{Options, connect};
/// use std::time::Duration;
///
/// // A WebSocket, or Streamable HTTP if the server has none.
/// let agent = Client::new().connect("https://agents.example.com/acp").await?;
///
/// // With a token, and five more attempts if the server cannot be reached.
/// let retry = Backoff { attempts: 5, first: Duration::from_millis(200), max: Duration::from_secs(5) };
/// let options = Options { token: Some("secret".to_owned()), retry, ..Options::default() };
/// let agent = Client::new().connect(connect("wss://agents.example.com/acp", &options).await?).await?;
/// # drop(agent); Ok(()) }
/// ```
pub trait IntoLink: Send {
    /// Connects, unless that was done before.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the agent cannot be reached.
    fn into_link(self) -> impl Future<Output = Result<Link>> + Send;
}

impl IntoLink for Link {
    async fn into_link(self) -> Result<Link> {
        Ok(self)
    }
}

#[cfg(feature = "http")]
impl IntoLink for &str {
    async fn into_link(self) -> Result<Link> {
        use attache_http::client::Backoff;
        use attache_http::client::remote::{Options, Transports, connect};
        /// Transports of all servers that this program has connected to.
        static TRANSPORTS: std::sync::LazyLock<Transports> = std::sync::LazyLock::new(Transports::default);
        let (transports, reconnect) = (TRANSPORTS.clone(), Backoff::RECONNECT);
        Ok(connect(self, &Options { transports, reconnect, ..Options::default() }).await?)
    }
}

#[cfg(feature = "http")]
impl IntoLink for String {
    async fn into_link(self) -> Result<Link> {
        self.as_str().into_link().await
    }
}
