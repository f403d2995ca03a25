//! The cache of HTTP clients, and the causes of their errors.

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, NoProxy, Proxy};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;

use super::address::is_public;
use super::certificates::certificate_problem;
use crate::workspace::read_small_text;

/// How long a model's stream may be silent before it counts as interrupted.
const MODEL_IDLE: Duration = Duration::from_secs(180);
/// [`MODEL_IDLE`] for a server on this machine, which may process a long prompt first.
const MODEL_LOCAL_IDLE: Duration = Duration::from_secs(900);
/// How long an idle connection to a model's host stays open.
const MODEL_KEEP_ALIVE: Duration = Duration::from_secs(90);
/// Timeout for connecting to a model's host.
const MODEL_CONNECT: Duration = Duration::from_secs(15);
/// [`MODEL_CONNECT`] for a server on this machine.
const MODEL_LOCAL_CONNECT: Duration = Duration::from_secs(5);
/// Timeout for connecting to the host of a page.
const FETCH_CONNECT: Duration = Duration::from_secs(10);

/// The HTTP clients of the process, shared by all clones. Each is created on first use (about 2
/// ms).
#[derive(Clone, Debug, Default)]
pub struct HttpClients(Arc<ClientPool>);

#[derive(Debug, Default)]
struct ClientPool {
    /// The clients without options, by destination.
    usual: [OnceLock<Client>; 7],
    /// The clients with options. Their number is bounded by the number of providers in the
    /// settings.
    others: Mutex<HashMap<(Destination, ClientOptions), Client>>,
    /// The proxies of the environment.
    proxies: Vec<Proxy>,
    /// The configuration of clients without additional certificates.
    tls: OnceLock<ClientConfig>,
}

impl ClientPool {
    /// Returns the configuration that trusts the certificates of the system and `more`.
    fn tls(&self, more: Vec<CertificateDer<'static>>) -> ClientConfig {
        if more.is_empty() { self.tls.get_or_init(|| tls(Vec::new())).clone() } else { tls(more) }
    }
}

/// How a client connects, if not as usual for its destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientOptions {
    /// PEM file with additional trusted certificates.
    pub ca_file: Option<PathBuf>,
    /// URL of a proxy, or `none`.
    pub proxy: Option<String>,
    pub connect_timeout: Option<Duration>,
    /// Maximum time without a byte of the response.
    pub idle_timeout: Option<Duration>,
}

/// The kind of server that a client connects to. It determines proxy, name resolution and timeouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Destination {
    /// The API of a model provider.
    ModelProvider,
    /// A model server on this machine. Without a proxy, and with a longer timeout.
    LocalModel,
    /// A page at a public IP address. Without a proxy; other addresses are refused.
    PublicPage,
    /// A page of a host that the settings allow. Without a proxy.
    AllowedPage,
    /// An MCP server. Its responses may stay open without a byte.
    McpServer,
    /// The server of a hosted agent on this machine. Without a proxy; its responses may stay open.
    HostedAgent,
    /// Another nuncio server. Its responses may stay open.
    Nuncio,
}

impl HttpClients {
    /// Creates clients that use the proxies in the variables HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and
    /// NO_PROXY, also in lower case, as curl(1) does. Invalid URLs are ignored.
    pub(crate) fn new<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> HttpClients {
        let value = |name: &str| variable(&name.to_lowercase()).or_else(|| variable(name));
        let except = value("NO_PROXY").and_then(NoProxy::from_string);
        let proxy = |name, create: fn(&str) -> reqwest::Result<Proxy>| Some(create(value(name)?).ok()?.no_proxy(except.clone()));
        let https = proxy("HTTPS_PROXY", |url| Proxy::https(url));
        // A CGI program gets HTTP_PROXY from the header `Proxy` of a request.
        let http = if variable("REQUEST_METHOD").is_some() { None } else { proxy("HTTP_PROXY", |url| Proxy::http(url)) };
        let proxies = [https, http, proxy("ALL_PROXY", |url| Proxy::all(url))].into_iter().flatten().collect();
        HttpClients(Arc::new(ClientPool { proxies, ..ClientPool::default() }))
    }

    /// Returns the client for a destination. It follows no redirections.
    pub(crate) fn client(&self, destination: Destination) -> Result<Client, reqwest::Error> {
        let slot = &self.0.usual[destination as usize];
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let client = builder(destination, &self.0.proxies).tls_backend_preconfigured(self.0.tls(Vec::new())).build()?;
        Ok(slot.get_or_init(|| client).clone())
    }

    /// Returns the client for a destination with options. The error is a message.
    pub(crate) fn client_with(&self, destination: Destination, options: &ClientOptions) -> Result<Client, String> {
        if *options == ClientOptions::default() {
            return self.client(destination).map_err(|error| causes(&error));
        }
        let key = (destination, options.clone());
        let mut others = self.0.others.lock();
        if let Some(client) = others.get(&key) {
            return Ok(client.clone());
        }
        let client = build_with(destination, options, &self.0)?;
        others.insert(key, client.clone());
        Ok(client)
    }
}

fn build_with(destination: Destination, options: &ClientOptions, pool: &ClientPool) -> Result<Client, String> {
    let certificates = match &options.ca_file {
        Some(path) => certificates(path).map_err(|problem| format!("reading ca_file {}: {problem}", path.display()))?,
        None => Vec::new(),
    };
    let proxy = match options.proxy.as_deref() {
        None | Some(NO_PROXY) => None,
        Some(url) => Some(Proxy::all(url).map_err(|error| format!("invalid proxy: {}", causes(&error)))?),
    };
    let mut builder = builder(destination, &pool.proxies).tls_backend_preconfigured(pool.tls(certificates));
    if options.proxy.is_some() {
        builder = builder.no_proxy();
    }
    if let Some(proxy) = proxy {
        builder = builder.proxy(proxy);
    }
    if let Some(timeout) = options.connect_timeout {
        builder = builder.connect_timeout(timeout);
    }
    if let Some(timeout) = options.idle_timeout {
        builder = builder.read_timeout(timeout);
    }
    builder.build().map_err(|error| causes(&error))
}

/// Value of the setting `proxy` for a direct connection.
const NO_PROXY: &str = "none";

/// Reads the certificates of a PEM file.
fn certificates(path: &std::path::Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = read_small_text(path).map_err(|error| error.to_string())?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let certificates = certificates.map_err(|error| error.to_string())?;
    if certificates.is_empty() { Err("the file has no certificate".to_owned()) } else { Ok(certificates) }
}

/// Prepares a client. `proxies` apply to destinations on other machines, except pages.
fn builder(destination: Destination, proxies: &[Proxy]) -> ClientBuilder {
    let builder = Client::builder().user_agent(concat!("nuncio/", env!("CARGO_PKG_VERSION"))).redirect(Policy::none()).http1_only();
    // reqwest would read the environment of the process.
    let builder = proxies.iter().fold(builder.no_proxy(), |builder, proxy| builder.proxy(proxy.clone()));
    let model =
        |builder: ClientBuilder| builder.tcp_nodelay(true).connect_timeout(MODEL_CONNECT).pool_idle_timeout(MODEL_KEEP_ALIVE);
    let page = |builder: ClientBuilder| builder.no_proxy().no_gzip().referer(false).connect_timeout(FETCH_CONNECT);
    match destination {
        Destination::ModelProvider => model(builder).read_timeout(MODEL_IDLE),
        Destination::LocalModel => model(builder).no_proxy().connect_timeout(MODEL_LOCAL_CONNECT).read_timeout(MODEL_LOCAL_IDLE),
        Destination::PublicPage => page(builder).dns_resolver(Arc::new(PublicOnly)),
        Destination::AllowedPage => page(builder),
        Destination::HostedAgent => builder.tcp_nodelay(true).no_proxy().connect_timeout(MODEL_LOCAL_CONNECT),
        Destination::McpServer | Destination::Nuncio => {
            builder.tcp_nodelay(true).connect_timeout(MODEL_CONNECT).pool_idle_timeout(MODEL_KEEP_ALIVE)
        }
    }
}

/// Creates a configuration that trusts the certificates of the system and `more` ([`SystemRoots`]).
/// It does not depend on the default `CryptoProvider` of the process.
fn tls(more: Vec<CertificateDer<'static>>) -> ClientConfig {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let roots = SystemRoots { more, ring: ring.clone(), verifier: OnceLock::new() };
    ClientConfig::builder_with_provider(ring)
        .with_safe_default_protocol_versions()
        .expect("ring has the default versions of TLS")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(roots))
        .with_no_client_auth()
}

/// Verifies certificates with the root certificates of the system, or Mozilla's if the system has
/// none, and `more`. Reads them at the first connection with TLS, which many processes never open.
#[derive(Debug)]
struct SystemRoots {
    more: Vec<CertificateDer<'static>>,
    ring: Arc<CryptoProvider>,
    verifier: OnceLock<Arc<dyn ServerCertVerifier>>,
}

impl SystemRoots {
    fn verifier(&self) -> &dyn ServerCertVerifier {
        let create = || -> Arc<dyn ServerCertVerifier> {
            match Verifier::new_with_extra_roots(self.more.clone(), self.ring.clone()) {
                Ok(verifier) => Arc::new(verifier),
                Err(_) => {
                    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
                    roots.add_parsable_certificates(self.more.clone());
                    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), self.ring.clone());
                    builder.build().expect("Mozilla's root certificates are not empty, and there are no revocation lists")
                }
            }
        };
        &**self.verifier.get_or_init(create)
    }
}

impl ServerCertVerifier for SystemRoots {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.verifier().verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier().verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier().verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.ring.signature_verification_algorithms.supported_schemes()
    }
}

/// The error for a host without a public IP address.
pub(super) const NOT_PUBLIC: &str = "the host is not on the public web; the setting tools.fetch_allowed_hosts lists the exceptions";

/// A DNS resolver that returns public IP addresses only.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(NOT_PUBLIC.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Returns the sources of an error, from the outermost to the innermost.
fn chain(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |error: &&(dyn Error + 'static)| (*error).source())
}

/// Returns the message of the innermost source, which names the actual reason; `timed out` for a
/// timeout.
pub(crate) fn causes(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "timed out".to_owned();
    }
    let cause = chain(error).last().map_or_else(|| error.to_string(), |error| error.to_string());
    certificate_problem(&cause).map_or(cause, String::from)
}
