//! Transports.

mod net;
mod reader;
mod stdio;
mod threads;
mod writer;

#[cfg(unix)]
pub use net::{ActivatedSocket, activated_sockets, listen_unix};
pub use net::{Listener, SocketListener, listen_tcp};
pub(crate) use reader::Received;
pub use reader::{FrameReader, KeepAlive};
pub use writer::FrameWriter;

use crate::Limits;
use crate::process::{Child, Command};
use futures_core::Stream;
use futures_sink::Sink;
use reader::Source;
use std::ffi::OsStr;
use std::io;
use stdio::Stdio;
use tokio::io::{AsyncRead, AsyncWrite};
use writer::Drain;

/// A transport: standard streams, a child process, a socket, memory, or any other pair of streams.
///
/// [`open`](crate::open) or [`Link::split`] start to use it.
///
/// ```
/// use attache_conn::{Flow, Link};
///
/// // Two ends in memory, for tests. The tap prints every line of one of them.
/// let (near, far) = Link::pair();
/// let near = near.tap(|flow, line| {
///     let mark = if flow == Flow::In { '<' } else { '>' };
///     println!("{mark} {}", String::from_utf8_lossy(line));
/// });
/// # drop((near, far));
/// ```
// STDIO-12, STDIO-13: messages and their order are the same on every transport.
pub struct Link {
    kind: Kind,
    tap: Option<Tap>,
}

/// Direction of a line.
///
/// Example: [`Link`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The peer sent it.
    In,
    /// We sent it.
    Out,
}

/// Observer of all lines.
///
/// Example: [`Link`].
pub type Tap = Box<dyn FnMut(Flow, &[u8]) + Send>;

enum Kind {
    Stdio(Stdio),
    Bytes(Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>),
    Halves(Source, Drain),
    Child(Child),
}

impl Link {
    fn new(kind: Kind) -> Link {
        Link { kind, tap: None }
    }

    /// Calls `tap` with every line of the connection that is [opened](crate::open) on this link,
    /// without its line end and in the order of the wire. Received lines are passed before they are
    /// parsed, sent lines before they are written. It runs in the driver and must not block.
    /// Several taps are called in the order in which they were set. [`split`](Self::split) ignores
    /// them.
    #[must_use]
    pub fn tap(mut self, mut tap: impl FnMut(Flow, &[u8]) + Send + 'static) -> Link {
        self.tap = Some(match self.tap.take() {
            None => Box::new(tap),
            Some(mut first) => Box::new(move |flow, line| {
                first(flow, line);
                tap(flow, line);
            }),
        });
        self
    }

    /// Takes the [taps](Self::tap), for code that splits the link and calls them itself.
    pub fn take_tap(&mut self) -> Option<Tap> {
        self.tap.take()
    }

    /// The standard input and output of this process, for agents.
    ///
    /// From here on they belong to the link. On Unix, descriptor 1 is redirected to stderr and
    /// descriptor 0 to `/dev/null`, so that a stray `println!` or a tool that reads its inherited
    /// input cannot damage the stream. A second call returns a link that is at its end.
    // STDIO-08
    pub fn stdio() -> Link {
        Link::new(Kind::Stdio(Stdio::take()))
    }

    /// Two connected links in memory, with a buffer of 64 KiB in each direction.
    pub fn pair() -> (Link, Link) {
        let (a, b) = tokio::io::duplex(64 << 10);
        let link = |end| {
            let (reader, writer) = tokio::io::split(end);
            Link::from_io(reader, writer)
        };
        (link(a), link(b))
    }

    /// Starts `program` and connects to its stdin and stdout. [`Link::command`] also sets arguments
    /// and environment.
    ///
    /// # Errors
    /// The program cannot be started.
    // STDIO-03
    pub fn spawn(program: impl AsRef<OsStr>) -> io::Result<Link> {
        Link::command(Command::new(program))
    }

    /// Starts a program and connects to its stdin and stdout.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn command(command: Command) -> io::Result<Link> {
        command.spawn().map(Link::from)
    }

    /// Any pair of byte streams.
    pub fn from_io(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Link {
        Link::new(Kind::Bytes(Box::new(reader), Box::new(writer)))
    }

    /// A pair of byte streams whose source is also polled while the connection pauses; see
    /// [`KeepAlive`].
    ///
    /// ```
    /// use attache_conn::{KeepAlive, Link};
    /// use tokio::io::AsyncWrite;
    ///
    /// fn connection(reader: impl KeepAlive + 'static, writer: impl AsyncWrite + Send + Unpin + 'static) -> Link {
    ///     Link::from_keep_alive(reader, writer)
    /// }
    /// ```
    pub fn from_keep_alive(
        reader: impl KeepAlive + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Link {
        Link::new(Kind::Halves(Source::KeepAlive(Box::new(reader)), Drain::Bytes(Box::new(writer))))
    }

    /// Any transport with message boundaries, such as a WebSocket. A frame is one message without a
    /// line feed.
    pub fn from_frames(
        stream: impl Stream<Item = io::Result<Vec<u8>>> + Send + 'static,
        sink: impl Sink<Vec<u8>, Error = io::Error> + Send + 'static,
    ) -> Link {
        Link::new(Kind::Halves(Source::Frames(Box::pin(stream)), Drain::Frames(Box::pin(sink))))
    }

    /// Splits the link into its halves, for forwarding frames without a [`Peer`](crate::Peer). Must
    /// be called within a tokio runtime.
    ///
    /// The frame limit is that of [`Limits::default`]; [`FrameReader::with_limit`] changes it.
    ///
    /// ```
    /// use attache_conn::Link;
    ///
    /// async fn forward(from: Link, to: Link) -> std::io::Result<()> {
    ///     let ((mut reader, _), (_, mut writer)) = (from.split(), to.split());
    ///     while let Some(line) = reader.next().await? {
    ///         writer.feed(line);
    ///         writer.flush().await?;
    ///     }
    ///     writer.close().await
    /// }
    /// ```
    pub fn split(self) -> (FrameReader, FrameWriter) {
        let (source, drain, guard) = match self.kind {
            Kind::Stdio(stdio) => {
                let (reader, writer) = stdio.open();
                (Source::Bytes(reader), Drain::Bytes(writer), None)
            }
            Kind::Bytes(reader, writer) => (Source::Bytes(reader), Drain::Bytes(writer), None),
            Kind::Halves(source, drain) => (source, drain, None),
            Kind::Child(child) => {
                let Child { stdin, stdout, guard } = child;
                (Source::Bytes(Box::new(stdout)), Drain::Bytes(Box::new(stdin)), Some(guard))
            }
        };
        (FrameReader::new(source, Limits::default().frame, guard), FrameWriter::new(drain))
    }
}

impl From<Child> for Link {
    fn from(child: Child) -> Link {
        Link::new(Kind::Child(child))
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.kind {
            Kind::Stdio(_) => "Link(stdio)",
            Kind::Bytes(..) => "Link(bytes)",
            Kind::Halves(Source::KeepAlive(_), _) => "Link(keep-alive)",
            Kind::Halves(..) => "Link(frames)",
            Kind::Child(_) => "Link(child)",
        })
    }
}
