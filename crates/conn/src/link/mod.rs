//! A transport as a value.

mod net;
mod reader;
mod stdio;
mod threads;
mod writer;

pub use net::Listener;
pub use net::listen_tcp;
#[cfg(unix)]
pub use net::listen_unix;
pub(crate) use reader::Found;
pub use reader::FrameReader;
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

/// A way to exchange frames with a peer: standard streams, a child process, a socket, memory, or anything else that reads
/// and writes.
///
/// STDIO-12, STDIO-13: whatever carries the bytes, the messages and their order are the same. Making a link does
/// not start anything but what its name says; [`open`](crate::open) or [`Link::split`] begin to use it.
pub struct Link {
    kind: Kind,
    tap: Option<Tap>,
}

/// Which way a line went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The peer sent it.
    In,
    /// We sent it.
    Out,
}

/// Hears every line of a connection; see [`Link::tap`].
pub(crate) type Tap = Box<dyn FnMut(Flow, &[u8]) + Send>;

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

    /// Lets `tap` hear every line of the connection that is [opened](crate::open) on this link, without its line end, in
    /// the order of the wire: what is read before it is looked at, also what is no message; what is sent before it is
    /// written. It runs in the driver: it must not block. Those who [`split`](Self::split) a link see its lines anyway.
    #[must_use]
    pub fn tap(mut self, tap: impl FnMut(Flow, &[u8]) + Send + 'static) -> Link {
        self.tap = Some(Box::new(tap));
        self
    }

    pub(crate) fn take_tap(&mut self) -> Option<Tap> {
        self.tap.take()
    }

    /// The standard input and output of this process: what an agent talks over.
    ///
    /// STDIO-08: from here on they belong to the link. Where the platform allows it (Unix), descriptor 1 is pointed at
    /// stderr and descriptor 0 at nothing, so that a stray `println!` or a tool that reads its inherited input cannot damage the stream.
    /// A second call gives a link that is at its end.
    pub fn stdio() -> Link {
        Link::new(Kind::Stdio(Stdio::take()))
    }

    /// Two links in memory, each the other end of the other, with room for 64 KiB each way.
    pub fn pair() -> (Link, Link) {
        let (a, b) = tokio::io::duplex(64 << 10);
        let link = |end| {
            let (reader, writer) = tokio::io::split(end);
            Link::from_io(reader, writer)
        };
        (link(a), link(b))
    }

    /// Starts `program` and talks to it over its stdin and stdout (STDIO-03). For arguments, environment and more see
    /// [`Link::command`].
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn spawn(program: impl AsRef<OsStr>) -> io::Result<Link> {
        Link::command(Command::new(program))
    }

    /// Starts what `command` says and talks to it over its stdin and stdout.
    ///
    /// # Errors
    /// When the program cannot be started.
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

    /// Any transport that carries messages whole, a WebSocket for example. A frame is one message without a line feed.
    pub fn from_frames(
        stream: impl Stream<Item = io::Result<Vec<u8>>> + Send + 'static,
        sink: impl Sink<Vec<u8>, Error = io::Error> + Send + 'static,
    ) -> Link {
        Link::new(Kind::Halves(Source::Frames(Box::pin(stream)), Drain::Frames(Box::pin(sink))))
    }

    /// The two halves, for those who forward frames and do not need a [`Peer`](crate::Peer). Must be called within a tokio runtime.
    ///
    /// The frame limit is that of [`Limits::default`]; see [`FrameReader::with_limit`].
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
            Kind::Halves(..) => "Link(frames)",
            Kind::Child(_) => "Link(child)",
        })
    }
}
