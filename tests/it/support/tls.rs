//! A certificate authority for one test.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::local::Listening;

/// An authority and the one certificate that it signed.
pub(crate) struct Authority {
    root: CertificateDer<'static>,
    root_pem: String,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Authority {
    /// A new one, whose certificate holds for these names and addresses.
    pub(crate) fn new(names: &[&str]) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let leaf_key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(names).unwrap().signed_by(&leaf_key, &issuer).unwrap();
        Self {
            root: root.der().clone(),
            root_pem: root.pem(),
            chain: vec![leaf.der().clone()],
            key: PrivateKeyDer::Pkcs8(leaf_key.serialize_der().into()),
        }
    }

    /// The authority's own certificate.
    pub(crate) fn root_pem(&self) -> &str {
        &self.root_pem
    }

    /// For a server.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.acceptor_of(&[b"http/1.1"])
    }

    /// For a server that speaks these protocols.
    pub(crate) fn acceptor_of(&self, protocols: &[&[u8]]) -> TlsAcceptor {
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(self.chain.clone(), self.key.clone_key())
                .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }

    /// For a client that trusts nobody else.
    pub(crate) fn client_config(&self) -> ClientConfig {
        trusting([self])
    }
}

/// For a client that trusts these and nobody else.
pub(crate) fn trusting<'a>(authorities: impl IntoIterator<Item = &'a Authority>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority.root.clone()).unwrap();
    }
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// TLS in front of a server that speaks plain text.
pub(crate) struct TlsFront {
    listening: Listening,
}

impl TlsFront {
    /// Starts one with a certificate of this authority.
    pub(crate) async fn start(authority: &Authority, behind: SocketAddr) -> Self {
        let acceptor = authority.acceptor();
        let listening = Listening::start(move |stream, _, _| {
            let acceptor = acceptor.clone();
            async move {
                let Ok(mut client) = acceptor.accept(stream).await else { return };
                let Ok(mut server) = TcpStream::connect(behind).await else { return };
                // Either end may hang up as it likes.
                let _ = copy_bidirectional(&mut client, &mut server).await;
            }
        });
        Self { listening: listening.await.unwrap() }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.listening.address())
    }
}
