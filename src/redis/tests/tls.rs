//! Connections through TLS.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

use super::server::{Server, free_port};
use super::*;

#[tokio::test]
async fn a_certificate_is_checked_and_the_call_goes_through() {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = (directory.path().join("cert"), directory.path().join("key"));
    std::fs::write(&certificate, certified.cert.pem()).unwrap();
    std::fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let port = free_port();
    let _server = Server::start(&[
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        certificate.to_str().unwrap(),
        "--tls-key-file",
        key.to_str().unwrap(),
        "--tls-auth-clients",
        "no",
    ]);
    let options = |trusted: bool| {
        let mut roots = RootCertStore::empty();
        if trusted {
            roots.add(certified.cert.der().clone()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut options = ConnectOptions::new(Secret::new(format!("rediss://localhost:{port}")));
        options.tls = Some(config);
        options
    };
    let connection = Connection::connect(options(true)).await.unwrap();
    assert_eq!(count(&connection).await, Ok(1));
    let error = Connection::connect(options(false)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the store cannot be reached: no TLS with it, or its certificate is not trusted"
    );
}
