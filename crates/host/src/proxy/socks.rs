//! SOCKS5 without authentication (RFC 1928): `CONNECT` to names and numbers.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::destination::{Refusal, Traffic, approve};
use super::{Shared, relay};

/// The first byte of a connection.
pub(super) const VERSION: u8 = 5;

const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

#[derive(Debug, Clone, Copy)]
enum Reply {
    Succeeded = 0,
    Failed = 1,
    NotAllowed = 2,
    HostUnreachable = 4,
    Refused = 5,
    CommandNotSupported = 7,
    AddressNotSupported = 8,
}

/// Serves a connection whose first byte has been read.
pub(super) async fn serve(mut client: UnixStream, shared: &Shared) -> io::Result<()> {
    let patience = shared.options.patience;
    let Some((host, port)) = tokio::time::timeout(patience, read_request(&mut client)).await?? else {
        return Ok(());
    };
    let mut pending = Vec::new();
    let work = async {
        let destination = approve(&host, port, Traffic::Tunnel, shared).await?;
        shared.connect(&destination).await
    };
    let connected = relay::unless_gone(&mut client, &mut pending, shared.options.head_bytes, work).await?;
    let server = match connected {
        Ok(server) => server,
        Err(refusal) => {
            return reply(
                &mut client,
                match &refusal {
                    Refusal::Denied => Reply::NotAllowed,
                    Refusal::Unreachable(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                        Reply::Refused
                    }
                    Refusal::Unreachable(_) | Refusal::Unknown(_) => Reply::HostUnreachable,
                    Refusal::Invalid => Reply::Failed,
                },
            )
            .await;
        }
    };
    reply(&mut client, Reply::Succeeded).await?;
    relay::tunnel(client, pending, server, shared.options.idle).await
}

/// Reads the greeting and the request. `None` if it was answered with a refusal.
async fn read_request(client: &mut UnixStream) -> io::Result<Option<(String, u16)>> {
    let mut methods = vec![0; usize::from(client.read_u8().await?)];
    client.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        client.write_all(&[VERSION, NO_METHOD]).await?;
        return Ok(None);
    }
    client.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let [version, command, _, kind] = client.read_u32().await?.to_be_bytes();
    if version != VERSION {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let host = match kind {
        IPV4 => Ipv4Addr::from_bits(client.read_u32().await?).to_string(),
        IPV6 => Ipv6Addr::from_bits(client.read_u128().await?).to_string(),
        NAME => {
            let mut name = vec![0; usize::from(client.read_u8().await?)];
            client.read_exact(&mut name).await?;
            String::from_utf8_lossy(&name).into_owned()
        }
        _ => {
            reply(client, Reply::AddressNotSupported).await?;
            return Ok(None);
        }
    };
    let port = client.read_u16().await?;
    if command != CONNECT {
        reply(client, Reply::CommandNotSupported).await?;
        return Ok(None);
    }
    Ok(Some((host, port)))
}

/// Answers a request. The address that the connection comes from is nothing that a command has to
/// know.
async fn reply(client: &mut UnixStream, reply: Reply) -> io::Result<()> {
    client.write_all(&[VERSION, reply as u8, 0, IPV4, 0, 0, 0, 0, 0, 0]).await
}
