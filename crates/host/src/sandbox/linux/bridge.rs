//! The bridge to the network proxy: a process inside of the network namespace, without a filter.
//!
//! It listens on the loopback interface, which only the command can reach, and passes every
//! connection on to the Unix socket of the proxy, which only this process can reach.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::sys::process::{self, Fork};

/// Connections at the same time; further ones are closed at once.
const MOST_CONNECTIONS: usize = 128;
const STACK_BYTES: usize = 64 * 1024;

/// Starts the bridge and returns its port. `socket` is the place of the proxy's socket.
pub(super) fn start(socket: &OwnedFd) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    match process::fork()? {
        Fork::Parent(_) => Ok(port),
        Fork::Child => {
            process::close_descriptors(0, &[listener.as_raw_fd(), socket.as_raw_fd()]);
            serve(&listener, &PathBuf::from(format!("/proc/self/fd/{}", socket.as_raw_fd())))
        }
    }
}

fn serve(listener: &TcpListener, socket: &Path) -> ! {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((client, _)) = listener.accept() else { continue };
        let slot = Slot::take(&open);
        if open.load(Ordering::Relaxed) > MOST_CONNECTIONS {
            continue;
        }
        let socket = socket.to_owned();
        // Without a thread the connection is closed.
        let _ = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            let _slot = slot;
            let _ = connect(client, &socket);
        });
    }
}

/// Counts an open connection for as long as it lives.
struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn take(open: &Arc<AtomicUsize>) -> Slot {
        open.fetch_add(1, Ordering::Relaxed);
        Slot(open.clone())
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn connect(mut client: TcpStream, socket: &Path) -> io::Result<()> {
    let mut proxy = UnixStream::connect(socket)?;
    let (mut from_client, mut to_proxy) = (client.try_clone()?, proxy.try_clone()?);
    let up = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_proxy);
        let _ = to_proxy.shutdown(Shutdown::Write);
    })?;
    let _ = io::copy(&mut proxy, &mut client);
    // The proxy is done, so the client has nothing more to say to it.
    let _ = client.shutdown(Shutdown::Both);
    let _ = up.join();
    Ok(())
}
