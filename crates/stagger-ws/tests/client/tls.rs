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

use super::peer::Step::{Hang, Send, Upgrade};
use super::peer::close;
use super::reconnect_loop::run;
use super::scripted_server::ScriptedServer;

/// A server whose certificate is for this name, and a client that trusts it, or does not.
async fn secured(server: &ScriptedServer, name: &str, is_trusted: bool) -> ClientBuilder {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let server_config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key.into())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(server_config));
    let port = server.listen(move |stream| acceptor.clone().accept(stream)).await;

    let mut roots = RootCertStore::empty();
    if is_trusted {
        roots.add(cert.der().clone()).unwrap();
    }
    trusting(server, port, roots)
}

fn trusting(server: &ScriptedServer, port: u16, roots: RootCertStore) -> ClientBuilder {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    server
        .fast_retries()
        .url(format!("wss://localhost:{port}/"))
        .connector(TcpConnector::new().tls_config(Arc::new(config)))
}

fn at_last() -> Vec<super::peer::Step> {
    vec![Upgrade, close(1000, ""), Hang]
}

#[tokio::test]
async fn a_certificate_that_is_trusted_connects() {
    let server = ScriptedServer::new([at_last()]);
    run(&mut secured(&server, "localhost", true).await.reconnect_loop()).await.unwrap();
    assert!(server.arrivals()[0].head.contains("localhost"));
}

#[tokio::test]
async fn a_certificate_or_a_name_that_is_not_trusted_stops_the_client() {
    for (name, is_trusted) in [("localhost", false), ("other.test", true)] {
        let server = ScriptedServer::new([at_last(), at_last()]);
        let fatal = run(&mut secured(&server, name, is_trusted).await.reconnect_loop()).await.unwrap_err();
        assert_eq!((fatal.stop_reason(), fatal.attempts()), (Stop::Permanent, 1));
        assert!(matches!(fatal.cause(), ConnectionError::Tls(_)), "{fatal}");
        assert_eq!(server.arrivals().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_or_babbles_during_the_tls_handshake_is_tried_again() {
    for steps in [vec![], vec![Send(b"220 this is mail\r\n".to_vec()), Hang]] {
        // It speaks no TLS, and nobody gets through.
        let server = ScriptedServer::new(vec![steps; 6]);
        let port = server.listen(|stream| async { io::Result::Ok(stream) }).await;
        let mut reconnect = trusting(&server, port, RootCertStore::empty()).reconnect_loop();
        let fatal = run(&mut reconnect).await.unwrap_err();
        assert_eq!((fatal.stop_reason(), fatal.cause().name(), server.arrivals().len()), (Stop::Attempts, "io", 6));
    }
}
