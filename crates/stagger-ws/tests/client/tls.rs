//! `wss`, over real sockets.

use std::io;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use stagger::StopReason;
use stagger_ws::{ClientBuilder, ConnectionError, TcpConnector};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::peer::Step::{Hang, Send, Upgrade};
use super::peer::close;
use super::reconnect_loop::run;
use super::scripted_server::ScriptedServer;

/// Starts a TLS server with a certificate for this name. Returns a builder of a client that trusts it or not.
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

fn normal_end() -> Vec<super::peer::Step> {
    vec![Upgrade, close(1000, ""), Hang]
}

#[tokio::test]
async fn a_trusted_certificate_connects() {
    let server = ScriptedServer::new([normal_end()]);
    run(&mut secured(&server, "localhost", true).await.reconnect_loop()).await.unwrap();
    assert!(server.arrivals()[0].head.contains("localhost"));
}

#[tokio::test]
async fn an_untrusted_certificate_or_name_stops_the_client() {
    for (name, is_trusted) in [("localhost", false), ("other.test", true)] {
        let server = ScriptedServer::new([normal_end(), normal_end()]);
        let fatal = run(&mut secured(&server, name, is_trusted).await.reconnect_loop()).await.unwrap_err();
        assert_eq!((fatal.stop_reason(), fatal.attempts()), (StopReason::Permanent, 1));
        assert!(matches!(fatal.cause(), ConnectionError::Tls(_)), "{fatal}");
        assert_eq!(server.arrivals().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn io_errors_and_invalid_data_during_the_tls_handshake_are_retried() {
    for steps in [vec![], vec![Send(b"220 this is mail\r\n".to_vec()), Hang]] {
        // The server does not speak TLS, so no attempt succeeds.
        let server = ScriptedServer::new(vec![steps; 6]);
        let port = server.listen(|stream| async { io::Result::Ok(stream) }).await;
        let mut reconnect = trusting(&server, port, RootCertStore::empty()).reconnect_loop();
        let fatal = run(&mut reconnect).await.unwrap_err();
        assert_eq!(
            (fatal.stop_reason(), fatal.cause().name(), server.arrivals().len()),
            (StopReason::Attempts, "io", 6)
        );
    }
}
