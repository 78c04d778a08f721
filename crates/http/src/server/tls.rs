//! Certificates of a server.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Certificate and private key of a server.
///
/// ```no_run
/// use attache_http::server::{Options, Tls};
/// use std::path::Path;
///
/// let tls = Tls::from_files(Path::new("cert.pem"), Path::new("key.pem"))?;
/// let options = Options { tls: Some(tls), ..Options::default() };
/// # drop(options);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Tls(pub(super) TlsAcceptor);

impl Tls {
    /// Reads a certificate chain and a private key in PEM form.
    ///
    /// # Errors
    /// A file cannot be read, or key and certificate do not fit.
    pub fn from_files(certificates: &Path, key: &Path) -> io::Result<Tls> {
        let unusable = |path: &Path, why: &dyn fmt::Display| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display()))
        };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificates)
            .and_then(Iterator::collect)
            .map_err(|error| unusable(certificates, &error))?;
        if chain.is_empty() {
            return Err(unusable(certificates, &"there is no certificate in it"));
        }
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
        Tls::new(chain, secret)
    }

    /// Makes a certificate for names and addresses of this machine, signed by itself. Clients must
    /// be given the certificate.
    ///
    /// # Errors
    /// A name is invalid.
    #[cfg(feature = "self-signed")]
    pub fn self_signed(names: Vec<String>) -> io::Result<SelfSigned> {
        let made = rcgen::generate_simple_self_signed(names)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        Ok(SelfSigned { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() })
    }

    /// Takes a certificate chain and its private key.
    ///
    /// # Errors
    /// Key and certificate do not fit.
    pub fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> io::Result<Tls> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(invalid)?;
        // HTTP-04: HTTP/2 where the client can, HTTP/1.1 for the others and for WebSockets.
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }
}

/// A certificate that is signed by itself, in PEM form; see [`Tls::self_signed`].
#[cfg(feature = "self-signed")]
pub struct SelfSigned {
    /// The certificate, which is public.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

#[cfg(feature = "self-signed")]
impl fmt::Debug for SelfSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelfSigned").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
