//! How far away an Internet address is: on this machine, in a local network, or on the Internet.
//!
//! A name says nothing about that: any name may have an address of this machine. So the judge of a
//! connection resolves the name once, judges the addresses, and connects to one of those very
//! addresses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// How far away an address is; the nearest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    /// This machine.
    ThisMachine,
    /// A private network, or an address that is not assigned to anybody on the Internet.
    LocalNetwork,
    /// The Internet.
    Internet,
}

/// A name lookup may take this long.
const LOOKUP_TIME: Duration = Duration::from_secs(20);

/// Judges an address by its number alone.
///
/// Only addresses that are assigned on the Internet are [`Reach::Internet`]: not those of loopback,
/// private, shared and link-local networks, multicast, documentation and tests, the metadata
/// services of clouds, nor any of them in the IPv6 forms of mapped, translated (NAT64) and
/// tunnelled (6to4, Teredo) addresses.
pub fn reach(ip: IpAddr) -> Reach {
    match ip {
        IpAddr::V4(ip) => reach_v4(ip),
        IpAddr::V6(ip) => reach_v6(ip),
    }
}

/// Judges an address like [`reach`], and recognises the addresses of this machine's own interfaces.
pub fn reach_from_here(ip: IpAddr) -> Reach {
    // Only an address of an interface can be bound to.
    let is_own = || UdpSocket::bind((ip, 0)).is_ok();
    match reach(ip) {
        Reach::ThisMachine => Reach::ThisMachine,
        other if !ip.is_multicast() && is_own() => other.min(Reach::ThisMachine),
        other => other,
    }
}

/// Judges a host by its name or number, before its addresses are known. A name that looks far away
/// may still have an address of this machine.
pub fn reach_by_name(host: &str) -> Reach {
    if let Ok(ip) = host.parse() {
        return reach_from_here(ip);
    }
    let is_or_ends_with =
        |name: &str| host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    let last = host.rsplit('.').next().unwrap_or(host);
    // A last label that begins with a digit is an old way to write a number.
    if is_or_ends_with("localhost")
        || is_or_ends_with("localdomain")
        || last.starts_with(|c: char| c.is_ascii_digit())
    {
        return Reach::ThisMachine;
    }
    let local = ["local", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa"];
    if !host.contains('.') || local.iter().any(|name| is_or_ends_with(name)) {
        return Reach::LocalNetwork;
    }
    Reach::Internet
}

fn reach_v4(ip: Ipv4Addr) -> Reach {
    let [a, b, c, d] = ip.octets();
    match (a, b, c, d) {
        (0 | 127, ..) => Reach::ThisMachine,
        (10, ..) | (172, 16..=31, ..) | (192, 168, ..) => Reach::LocalNetwork,
        // Link-local, and shared between the customers of a provider.
        (169, 254, ..) | (100, 64..=127, ..) => Reach::LocalNetwork,
        // Protocol assignments, documentation, the relays of 6to4, benchmarks.
        (192, 0, 0 | 2, _) | (198, 51, 100, _) | (203, 0, 113, _) => Reach::LocalNetwork,
        (192, 88, 99, _) | (198, 18 | 19, ..) => Reach::LocalNetwork,
        // The platform service of Azure, which only machines there can reach.
        (168, 63, 129, 16) => Reach::LocalNetwork,
        // Multicast, reserved, broadcast.
        (224..=255, ..) => Reach::LocalNetwork,
        _ => Reach::Internet,
    }
}

fn reach_v6(ip: Ipv6Addr) -> Reach {
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        reach_v4(Ipv4Addr::new(a, b, c, d))
    };
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Reach::ThisMachine,
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        // An old form that no system should route; what it stands for may be near.
        [0, 0, 0, 0, 0, 0, high, low] => embedded(high, low).min(Reach::LocalNetwork),
        [0x2002, high, low, ..] => embedded(high, low),
        // Teredo, benchmarks, identifiers that are no addresses, documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] => Reach::LocalNetwork,
        [0x3fff, 0..=0xfff, ..] => Reach::LocalNetwork,
        // All that is assigned on the Internet.
        [0x2000..=0x3fff, ..] => Reach::Internet,
        _ => Reach::LocalNetwork,
    }
}

/// Finds the addresses of a host, which may be a number. The caller judges them and connects to no
/// others.
///
/// # Errors
/// When the lookup fails or takes too long, or there is no address.
pub async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(ip) = host.parse() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let lookup = tokio::net::lookup_host((host, port));
    let found = tokio::time::timeout(LOOKUP_TIME, lookup).await.map_err(|_| io::ErrorKind::TimedOut)??;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("`{host}` has no address")));
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn of(ip: &str) -> Reach {
        reach(ip.parse().unwrap())
    }

    #[test]
    fn this_machine_has_many_names() {
        for ip in [
            "127.0.0.1",
            "127.1.2.3",
            "127.255.255.255",
            "0.0.0.0",
            "0.1.2.3",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:0.0.0.0",
            "64:ff9b::127.0.0.1",
            "2002:7f00:1::",
            "2002:7f00:0001:1::8",
            "::127.0.0.1",
        ] {
            assert_eq!(of(ip), Reach::ThisMachine, "{ip}");
        }
    }

    #[test]
    fn unassigned_addresses_are_not_public() {
        for ip in [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "192.0.0.192",
            "192.0.2.1",
            "198.51.100.7",
            "203.0.113.7",
            "198.18.0.1",
            "192.88.99.1",
            "168.63.129.16",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:20::1",
            "3fff::1",
            "100::1",
            "5f00::1",
            "64:ff9b:1::808:808",
            "::ffff:192.168.1.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:c0a8:101::1",
            "2002:a00:1::",
            "::8.8.8.8",
            "4000::1",
        ] {
            assert_eq!(of(ip), Reach::LocalNetwork, "{ip}");
        }
    }

    #[test]
    fn the_internet_is_the_rest() {
        for ip in [
            "8.8.8.8",
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "192.0.1.1",
            "223.255.255.255",
            "2606:4700::1",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
            "2001:4860:4860::8888",
        ] {
            assert_eq!(of(ip), Reach::Internet, "{ip}");
        }
    }

    #[test]
    fn nearer_is_less() {
        assert!(Reach::ThisMachine < Reach::LocalNetwork && Reach::LocalNetwork < Reach::Internet);
        assert_eq!(reach_from_here("8.8.8.8".parse().unwrap()), Reach::Internet);
        assert_eq!(reach_from_here("127.0.0.1".parse().unwrap()), Reach::ThisMachine);
        assert_eq!(reach_from_here("224.0.0.1".parse().unwrap()), Reach::LocalNetwork);
    }

    #[tokio::test]
    async fn names_and_numbers_are_found() {
        let addresses = resolve("localhost", 80).await.unwrap();
        assert!(addresses.iter().all(|address| reach(address.ip()) == Reach::ThisMachine));
        assert_eq!(resolve("[::1]", 80).await.unwrap(), ["[::1]:80".parse().unwrap()]);
        // Old ways to write a number are numbers all the same.
        for number in ["127.1", "2130706433", "0x7f000001", "0177.0.0.1"] {
            if let Ok(addresses) = resolve(number, 80).await {
                assert!(
                    addresses.iter().all(|a| reach(a.ip()) == Reach::ThisMachine),
                    "{number}: {addresses:?}"
                );
            }
        }
        assert!(resolve("no such host", 80).await.is_err());
    }

    #[test]
    fn names_alone_are_judged_with_care() {
        for host in ["localhost", "x.localhost", "localhost.localdomain", "127.1", "2130706433"] {
            assert_eq!(reach_by_name(host), Reach::ThisMachine, "{host}");
        }
        for host in ["intranet", "printer.local", "x.internal", "router.lan", "x.home.arpa"] {
            assert_eq!(reach_by_name(host), Reach::LocalNetwork, "{host}");
        }
        for host in ["example.org", "notlocalhost.org"] {
            assert_eq!(reach_by_name(host), Reach::Internet, "{host}");
        }
    }
}
