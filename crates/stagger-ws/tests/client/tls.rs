//! `wss`, over real sockets.

use std::io;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use stagger::Stop;
use stagger_ws::{ClientBuilder, ConnectionError, TcpConnector};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::bench::Bench;
use super::low::run;
use super::peer::Deed::{Hang, Send, Upgrade};
use super::peer::close;

/// A server whose certificate is for this name, and a client that trusts it, or does not.
async fn secured(bench: &Bench, name: &str, is_trusted: bool) -> ClientBuilder {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let port = bench.listen(move |stream| acceptor.clone().accept(stream)).await;

    let mut roots = RootCertStore::empty();
    if is_trusted {
        roots.add(cert.der().clone()).unwrap();
    }
    trusting(bench, port, roots)
}

fn trusting(bench: &Bench, port: u16, roots: RootCertStore) -> ClientBuilder {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    bench.brisk().url(format!("wss://localhost:{port}/")).connector(TcpConnector::new().tls_config(Arc::new(config)))
}

fn at_last() -> Vec<super::peer::Deed> {
    vec![Upgrade, close(1000, ""), Hang]
}

#[tokio::test]
async fn a_certificate_that_is_trusted_connects() {
    let bench = Bench::new([at_last()]);
    run(&mut secured(&bench, "localhost", true).await.reconnect_loop()).await.unwrap();
    assert!(bench.arrivals()[0].head.contains("localhost"));
}

#[tokio::test]
async fn a_certificate_or_a_name_that_is_not_trusted_stops_the_client() {
    for (name, is_trusted) in [("localhost", false), ("other.test", true)] {
        let bench = Bench::new([at_last(), at_last()]);
        let fatal = run(&mut secured(&bench, name, is_trusted).await.reconnect_loop()).await.unwrap_err();
        assert_eq!((fatal.stop_reason(), fatal.attempts()), (Stop::Permanent, 1));
        assert!(matches!(fatal.cause(), ConnectionError::Tls(_)), "{fatal}");
        assert_eq!(bench.arrivals().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_or_babbles_during_the_tls_handshake_is_tried_again() {
    for deeds in [vec![], vec![Send(b"220 this is mail\r\n".to_vec()), Hang]] {
        // It speaks no TLS, and nobody gets through.
        let bench = Bench::new(vec![deeds; 6]);
        let port = bench.listen(|stream| async { io::Result::Ok(stream) }).await;
        let mut links = trusting(&bench, port, RootCertStore::empty()).reconnect_loop();
        let fatal = run(&mut links).await.unwrap_err();
        assert_eq!((fatal.stop_reason(), fatal.cause().name(), bench.arrivals().len()), (Stop::Attempts, "io", 6));
    }
}
