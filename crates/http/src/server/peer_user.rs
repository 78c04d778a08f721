//! The user of a process at the other end of a loopback socket.
//!
//! Loopback addresses belong to all users of a machine. On Linux the kernel lists the sockets with
//! their users, also those of clients.

use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Whether a loopback client is a process of this user or of root. `true` where that is unknown.
pub(super) fn is_own(stream: &TcpStream) -> bool {
    let (Ok(client), Ok(server)) = (stream.peer_addr(), stream.local_addr()) else { return false };
    if !client.ip().is_loopback() {
        return true;
    }
    #[cfg(target_os = "linux")]
    {
        let table = if client.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
        let own = attache_conn::private::user_id();
        let Ok(table) = std::fs::read_to_string(table) else { return true };
        // A client that has left already is refused like a foreign one.
        find(&table, client, server).is_some_and(|user| user == own || user == 0)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = server;
        true
    }
}

/// Finds the user of the socket from `from` to `to` in the table of the kernel.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
fn find(table: &str, from: SocketAddr, to: SocketAddr) -> Option<u32> {
    let (from, to) = (hex(from), hex(to));
    table.lines().skip(1).find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let is_meant = words.next()? == from && words.next()? == to;
        // Behind the addresses: state, queues, timer, retransmissions, user.
        if is_meant { words.nth(4)?.parse().ok() } else { None }
    })
}

/// An address as the kernel writes it: words of four bytes in the order of this machine.
fn hex(address: SocketAddr) -> String {
    let bytes = match address {
        SocketAddr::V4(address) => address.ip().octets().to_vec(),
        SocketAddr::V6(address) => address.ip().octets().to_vec(),
    };
    let words = bytes.as_chunks::<4>().0.iter().map(|word| format!("{:08X}", u32::from_ne_bytes(*word)));
    format!("{}:{:04X}", words.collect::<String>(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn the_table_of_the_kernel() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
               0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n\
               1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0 20 4 30 10 -1\n";
        let client = "127.0.0.1:50000".parse().unwrap();
        let server = "127.0.0.1:8080".parse().unwrap();
        assert_eq!(find(table, client, server), Some(1000));
        assert_eq!(find(table, server, client), None);
        assert_eq!(hex("[::1]:1".parse().unwrap()), "00000000000000000000000001000000:0001");
    }

    #[tokio::test]
    async fn a_client_of_this_user_is_its_own() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may have no IPv6.
            let Ok(listener) = tokio::net::TcpListener::bind(address).await else { continue };
            let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            assert!(is_own(&listener.accept().await.unwrap().0));
        }
    }
}
