//! One TLS configuration for all endpoints, with a session store for each.

#[cfg(feature = "rustls-no-provider")]
mod with_rustls {
    use std::sync::Arc;

    use rustls::client::Resumption;
    use rustls::crypto::CryptoProvider;
    use rustls::{ClientConfig, RootCertStore};
    use rustls_platform_verifier::BuilderVerifierExt;

    use crate::error::{Error, Kind};

    /// The application's choice, else the one that reqwest would take.
    fn provider() -> Result<Arc<CryptoProvider>, Error> {
        if let Some(provider) = CryptoProvider::get_default() {
            return Ok(provider.clone());
        }
        #[cfg(feature = "rustls")]
        return Ok(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
        #[cfg(not(feature = "rustls"))]
        Err(Error::new(
            Kind::Config,
            "no rustls CryptoProvider is installed; install one or enable the feature `rustls`",
        ))
    }

    /// A client's configuration with the system's roots.
    pub(crate) fn system_roots() -> Result<ClientConfig, Error> {
        let provider = provider()?;
        let builder = || {
            ClientConfig::builder_with_provider(provider.clone())
                .with_safe_default_protocol_versions()
                .map_err(|error| {
                    Error::new(Kind::Client, "no TLS version is usable").with_source(error)
                })
        };
        let config = match builder()?.with_platform_verifier() {
            Ok(builder) => builder.with_no_client_auth(),
            Err(error) => {
                tracing::warn!(%error, "no system certificates: TLS connections will fail");
                builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
            }
        };
        Ok(config)
    }

    /// TLS sessions that an endpoint's client remembers.
    const SESSIONS: usize = 8;

    /// What clients of all endpoints share.
    #[derive(Clone)]
    pub(crate) struct Tls(ClientConfig);

    impl Tls {
        /// The system's roots, as reqwest itself uses them.
        pub(crate) fn system() -> Result<Self, Error> {
            system_roots().map(Self::from_config)
        }

        /// A configuration of the caller's own; ALPN is set to what reqwest speaks.
        pub(crate) fn from_config(mut config: ClientConfig) -> Self {
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            Self(config)
        }

        /// A ticket from one endpoint must not be shown through another: it would tie two exits
        /// together.
        pub(crate) fn apply(&self, builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
            let mut config = self.0.clone();
            config.resumption = Resumption::in_memory_sessions(SESSIONS);
            builder.tls_backend_preconfigured(config)
        }
    }
}

#[cfg(feature = "rustls-no-provider")]
pub(crate) use with_rustls::Tls;
#[cfg(feature = "redis-tls")]
pub(crate) use with_rustls::system_roots;

/// Without a TLS feature https targets fail.
#[cfg(not(feature = "rustls-no-provider"))]
#[derive(Clone)]
pub(crate) struct Tls;

#[cfg(not(feature = "rustls-no-provider"))]
impl Tls {
    pub(crate) fn system() -> Result<Self, crate::error::Error> {
        Ok(Self)
    }

    pub(crate) fn apply(&self, builder: reqwest::ClientBuilder) -> reqwest::ClientBuilder {
        builder
    }
}
