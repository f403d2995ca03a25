//! A verifier of certificates for connections whose other end is checked in another way.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};

/// Checks less than the certificate and the name.
#[derive(Debug)]
pub(crate) struct LaxVerifier {
    /// Accepts certificates of these authorities for any name; `None` accepts all certificates.
    authorities: Option<Arc<dyn ServerCertVerifier>>,
    ring: Arc<CryptoProvider>,
}

impl LaxVerifier {
    /// Accepts all certificates.
    pub(crate) fn of_any_certificate() -> LaxVerifier {
        LaxVerifier { authorities: None, ring: Arc::new(rustls::crypto::ring::default_provider()) }
    }

    /// Accepts the certificates that `authorities` accepts, for any name.
    pub(crate) fn of_any_name(authorities: Arc<dyn ServerCertVerifier>) -> LaxVerifier {
        LaxVerifier { authorities: Some(authorities), ..LaxVerifier::of_any_certificate() }
    }
}

impl ServerCertVerifier for LaxVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let Some(authorities) = &self.authorities else { return Ok(ServerCertVerified::assertion()) };
        match authorities.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.ring.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.ring.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.ring.signature_verification_algorithms.supported_schemes()
    }
}
