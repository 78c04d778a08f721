//! System calls that commands of a model try: `attacks probe WHAT ARGUMENTS…`. Prints `probe: done`
//! if they succeed.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};
use std::process::ExitCode;
use std::time::Duration;

use rustix::net::{AddressFamily, Protocol, SocketType, connect, ipproto, send, socket};

/// Printed if a system call succeeded that must not.
pub(crate) const DONE: &str = "probe: done";

pub(crate) fn run(args: &[String]) -> ExitCode {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match probe(&words) {
        Ok(()) => {
            println!("{DONE}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("probe failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn probe(words: &[&str]) -> std::io::Result<()> {
    match words {
        ["tcp", to] => {
            let mut stream = TcpStream::connect_timeout(&address(to)?, Duration::from_secs(5))?;
            stream.write_all(b"GET /probe HTTP/1.1\r\n\r\n")
        }
        ["udp", to] => {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.send_to(b"probe", address(to)?).map(drop)
        }
        ["mptcp", to] => stream(ipproto::MPTCP, to),
        ["sctp", to] => stream(ipproto::SCTP, to),
        // A connection that begins with data.
        ["fastopen", to] => {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
            let to = address(to)?;
            let flags = rustix::net::SendFlags::from_bits_retain(0x2000_0000);
            rustix::net::sendto(&socket, b"GET /probe HTTP/1.1\r\n\r\n", flags, &to)?;
            Ok(())
        }
        ["family", number, kind] => {
            let family = AddressFamily::from_raw(number.parse().unwrap_or(0));
            let kind = match *kind {
                "raw" => SocketType::RAW,
                "dgram" => SocketType::DGRAM,
                "seqpacket" => SocketType::SEQPACKET,
                _ => SocketType::STREAM,
            };
            socket(family, kind, None).map(drop)?;
            Ok(())
        }
        ["icmp"] => {
            socket(AddressFamily::INET, SocketType::DGRAM, Some(ipproto::ICMP)).map(drop)?;
            Ok(())
        }
        ["unix", path, text @ ..] => speak(UnixStream::connect(path)?, text),
        ["abstract", name, text @ ..] => {
            speak(UnixStream::connect_addr(&UnixAddr::from_abstract_name(name)?)?, text)
        }
        // Through the proxy that a sandbox offers, as `curl` would.
        ["proxy", to] => {
            let proxy = std::env::var("http_proxy").or_else(|_| std::env::var("HTTP_PROXY"));
            let proxy = proxy.map_err(|_| std::io::Error::other("no proxy"))?;
            let place = proxy.trim_start_matches("http://").trim_end_matches('/').to_owned();
            let mut stream = TcpStream::connect(place)?;
            write!(stream, "CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n")?;
            stream.set_read_timeout(Some(Duration::from_secs(15)))?;
            let mut answer = [0; 64];
            let count = stream.read(&mut answer)?;
            let answer = String::from_utf8_lossy(&answer[..count]).into_owned();
            if !answer.contains(" 200") {
                return Err(std::io::Error::other(answer));
            }
            stream.write_all(b"GET /probe HTTP/1.1\r\n\r\n")
        }
        _ => Err(std::io::Error::other(format!("no such probe: {words:?}"))),
    }
}

fn stream(protocol: Protocol, to: &str) -> std::io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, Some(protocol))?;
    connect(&socket, &address(to)?)?;
    send(&socket, b"GET /probe HTTP/1.1\r\n\r\n", rustix::net::SendFlags::empty())?;
    Ok(())
}

fn speak(mut stream: UnixStream, lines: &[&str]) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    for line in lines {
        stream.write_all(format!("{line}\n").as_bytes())?;
    }
    if !lines.is_empty() {
        let mut answer = vec![0; 4096];
        let count = stream.read(&mut answer).unwrap_or(0);
        println!("answer: {}", String::from_utf8_lossy(&answer[..count]));
    }
    Ok(())
}

fn address(text: &str) -> std::io::Result<SocketAddr> {
    text.parse().map_err(std::io::Error::other)
}
