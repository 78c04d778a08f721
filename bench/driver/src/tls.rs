//! The client's end of TLS, in two halves. Certificates are not checked: the server makes its own.

use crate::socket::Socket;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, OnceLock};

/// Both halves share the state; no lock is held while a socket blocks.
type Shared = Arc<Mutex<ClientConnection>>;

/// Shakes hands on a socket.
pub fn connect(mut stream: Socket) -> io::Result<(Writer, Reader)> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("version 1.3")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Trusting(provider)))
            .with_no_client_auth();
        Arc::new(config)
    });
    let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
    let mut tls = ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)?;
    while tls.is_handshaking() {
        tls.complete_io(&mut stream)?;
    }
    let tls = Arc::new(Mutex::new(tls));
    Ok((
        Writer(Arc::clone(&tls), stream.clone()),
        Reader { tls, stream, bytes: vec![0; 32 << 10], rest: 0..0 },
    ))
}

pub struct Writer(Shared, Socket);

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut tls = self.0.lock().expect("no panic");
        let count = tls.writer().write(bytes)?;
        while tls.wants_write() {
            tls.write_tls(&mut self.1)?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub struct Reader {
    tls: Shared,
    stream: Socket,
    bytes: Vec<u8>,
    /// The part of `bytes` that is not decrypted.
    rest: std::ops::Range<usize>,
}

impl Read for Reader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            {
                let mut tls = self.tls.lock().expect("no panic");
                loop {
                    match tls.reader().read(buf) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        other => return other,
                    }
                    if self.rest.is_empty() {
                        break;
                    }
                    self.rest.start += tls.read_tls(&mut &self.bytes[self.rest.clone()])?;
                    tls.process_new_packets().map_err(io::Error::other)?;
                }
            }
            self.rest = 0..self.stream.read(&mut self.bytes)?;
            if self.rest.is_empty() {
                return Ok(0);
            }
        }
    }
}

#[derive(Debug)]
struct Trusting(Arc<CryptoProvider>);

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only version 1.3 is offered".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
