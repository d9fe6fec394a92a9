//! What the tests wait for. A scene is prepared when the wait starts, and begins when the test says so.

use core::any::Any;
use core::net::SocketAddr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use stagger_kit::{Port, Postgres, Program, Ready, Server};

use crate::certificate::Certificate;
use crate::support::{Files, PATIENCE, Running, eventually};

/// What a scene needs until the wait has ended.
pub(super) type Guard = Box<dyn Any>;

/// Something that can be waited for, and is not ready yet.
pub(super) struct Scene {
    /// Variables of the lines that wait for it.
    pub(super) variables: Vec<(&'static str, String)>,
    /// Makes it ready.
    pub(super) begin: Box<dyn FnOnce() -> Guard>,
}

impl Scene {
    fn new(variables: Vec<(&'static str, String)>, begin: impl FnOnce() -> Guard + 'static) -> Self {
        Self { variables, begin: Box::new(begin) }
    }
}

fn port_variable(name: &'static str, port: &Port) -> (&'static str, String) {
    (name, port.number().to_string())
}

fn listen(port: &Port) -> TcpListener {
    let mut listener = TcpListener::bind(port.address());
    // A process that is being started may have a copy of the last listener until it calls exec.
    eventually("the port is free", || {
        if listener.is_err() {
            listener = TcpListener::bind(port.address());
        }
        listener.is_ok()
    });
    listener.expect("the scene is prepared")
}

pub(super) fn port(_: &Files) -> Scene {
    let port = Port::reserve().expect("the scene is prepared");
    Scene::new(vec![port_variable("PORT", &port)], move || Box::new((listen(&port), port)))
}

pub(super) fn two_ports(_: &Files) -> Scene {
    let (one, two) = (Port::reserve().expect("the scene is prepared"), Port::reserve().expect("the scene is prepared"));
    let variables = vec![port_variable("PORT", &one), port_variable("PORT2", &two)];
    Scene::new(variables, move || Box::new((listen(&one), listen(&two), one, two)))
}

pub(super) fn the_second_of_two_ports(_: &Files) -> Scene {
    let (one, two) = (Port::reserve().expect("the scene is prepared"), Port::reserve().expect("the scene is prepared"));
    let variables = vec![port_variable("PORT", &one), port_variable("PORT2", &two)];
    Scene::new(variables, move || Box::new((listen(&two), one, two)))
}

pub(super) fn a_port_that_closes(_: &Files) -> Scene {
    let port = Port::reserve().expect("the scene is prepared");
    let listener = listen(&port);
    Scene::new(vec![port_variable("PORT", &port)], move || {
        drop(listener);
        Box::new(port)
    })
}

/// Serves HTTP in a thread: `respond` is called with the head of each request.
pub(super) fn serve(listener: TcpListener, respond: impl Fn(&str) -> String + Send + 'static) {
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let head = head(&mut reader);
            let _ = reader.get_mut().write_all(respond(&head).as_bytes());
        }
    });
}

fn head(reader: &mut impl BufRead) -> String {
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|n| n > 2) {}
    head
}

pub(super) fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn http(before: Option<&'static str>, respond: fn(&str) -> String) -> Scene {
    let port = Port::reserve().expect("the scene is prepared");
    let variables = vec![port_variable("PORT", &port)];
    let Some(before) = before else {
        return Scene::new(variables, move || {
            serve(listen(&port), respond);
            Box::new(port)
        });
    };
    // The server answers all the time, and its answer changes.
    let began = Arc::new(core::sync::atomic::AtomicBool::new(false));
    let has_begun = Arc::clone(&began);
    serve(listen(&port), move |head| {
        if has_begun.load(core::sync::atomic::Ordering::SeqCst) { respond(head) } else { before.to_owned() }
    });
    Scene::new(variables, move || {
        began.store(true, core::sync::atomic::Ordering::SeqCst);
        Box::new(port)
    })
}

pub(super) fn unavailable_with_retry_after(_: &Files) -> Scene {
    const BEFORE: &str = "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    http(Some(BEFORE), |_| response("200 OK", "", "ok"))
}

pub(super) fn a_body_that_changes(_: &Files) -> Scene {
    const BEFORE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 16\r\nConnection: close\r\n\r\n{\"status\":\"down\"";
    http(Some(BEFORE), |_| response("200 OK", "", "{\"status\": \"up\"}"))
}

pub(super) fn a_login_page(_: &Files) -> Scene {
    http(None, |_| response("401 Unauthorized", "WWW-Authenticate: Basic\r\n", ""))
}

pub(super) fn a_redirect(_: &Files) -> Scene {
    http(None, |head| match head.split(' ').nth(1) {
        Some("/") => response("302 Found", "Location: /there\r\n", ""),
        _ => response("200 OK", "", "there"),
    })
}

pub(super) fn a_virtual_host(_: &Files) -> Scene {
    http(None, |head| {
        let known = head.lines().any(|line| line.eq_ignore_ascii_case("host: app.example"));
        response(if known { "200 OK" } else { "404 Not Found" }, "", "")
    })
}

/// A proxy, which alone knows the name of the service, and is asked for its full URL.
pub(super) fn a_service_behind_a_proxy(_: &Files) -> Scene {
    http(None, |head| match head.lines().next() {
        Some("GET http://service.invalid/ HTTP/1.1") => response("200 OK", "", ""),
        other => response("400 Bad Request", "", other.unwrap_or_default()),
    })
}

/// An HTTPS server with a certificate of a CA of its own, which is in `ca.pem`.
pub(super) fn https(files: &Files) -> Scene {
    let port = Port::reserve().expect("the scene is prepared");
    let variables = vec![port_variable("PORT", &port)];
    let config = Arc::new(tls(files));
    Scene::new(variables, move || {
        let listener = listen(&port);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Ok(connection) = ServerConnection::new(Arc::clone(&config)) else { continue };
                let mut reader = BufReader::new(StreamOwned::new(connection, stream));
                // A client that does not trust the certificate sends no request.
                if !head(&mut reader).is_empty() {
                    let stream = reader.get_mut();
                    let _ = stream.write_all(response("200 OK", "", "ok").as_bytes());
                    stream.conn.send_close_notify();
                    let _ = stream.flush();
                }
            }
        });
        Box::new(port)
    })
}

fn tls(files: &Files) -> ServerConfig {
    let Certificate { pem, key } = Certificate::issue(files);
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).expect("the scene is prepared");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("the scene is prepared");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the scene is prepared");
    config.with_no_client_auth().with_single_cert(vec![certificate], key).expect("the scene is prepared")
}

/// Starts an nginx that serves files of the directory.
pub(super) fn nginx(files: &Files) -> Scene {
    let port = Port::reserve().expect("the scene is prepared");
    let directory = files.path("nginx");
    fs::create_dir(&directory).expect("the scene is prepared");
    fs::write(directory.join("index.html"), "hello").expect("the scene is prepared");
    let path = directory.display();
    let config = format!(
        "daemon off; master_process off; pid {path}/pid; error_log {path}/error.log; user root;\n\
         events {{ }}\n\
         http {{ access_log off; client_body_temp_path {path}; proxy_temp_path {path}; fastcgi_temp_path {path};\n\
         uwsgi_temp_path {path}; scgi_temp_path {path}; server {{ listen {}; root {path}; }} }}\n",
        port.address()
    );
    let file = files.write("nginx.conf", config);
    let program = Program::find("nginx").expect("the scene is prepared").arg("-c").arg(&file).arg("-p").arg(&directory);
    Scene::new(vec![port_variable("PORT", &port)], move || {
        let ready = Ready::Port(port.address());
        Box::new((Server::start(program, ready, PATIENCE).expect("the scene is prepared"), port))
    })
}

/// A PostgreSQL server that was killed, and recovers.
pub(super) fn postgres(_: &Files) -> Scene {
    let mut postgres = Postgres::start().expect("the scene is prepared");
    postgres.server().kill();
    Scene::new(vec![("PORT", postgres.port().to_string())], move || {
        postgres.server().restart().expect("the scene is prepared");
        Box::new(postgres)
    })
}

pub(super) fn redis(files: &Files) -> Scene {
    let port = Port::reserve().expect("the scene is prepared");
    let variables = vec![port_variable("PORT", &port)];
    let program = Program::find("redis-server").expect("the scene is prepared");
    let program = program.args(["--port", &port.number().to_string(), "--bind", "127.0.0.1", "--save", ""]);
    let program = program.directory(files.path("."));
    Scene::new(variables, move || {
        let ready = Ready::Port(SocketAddr::from(([127, 0, 0, 1], port.number())));
        Box::new((Server::start(program, ready, PATIENCE).expect("the scene is prepared"), port))
    })
}

pub(super) fn socket(files: &Files) -> Scene {
    let path = files.path("socket");
    Scene::new(vec![], move || Box::new(UnixListener::bind(path).expect("the scene is prepared")))
}

pub(super) fn file(files: &Files) -> Scene {
    let path = files.path("ready");
    Scene::new(vec![], move || {
        fs::write(path, "done").expect("the scene is prepared");
        Box::new(())
    })
}

pub(super) fn lock(files: &Files) -> Scene {
    let path = files.write("lock", "");
    Scene::new(vec![], move || {
        fs::remove_file(path).expect("the scene is prepared");
        Box::new(())
    })
}

pub(super) fn process(_: &Files) -> Scene {
    let child = Command::new("sleep")
        .arg("1000")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("the scene is prepared");
    let mut child = Running { child };
    let pid = child.child.id().to_string();
    Scene::new(vec![("PID", pid)], move || {
        child.child.kill().expect("the scene is prepared");
        child.child.wait().expect("the scene is prepared");
        Box::new(child)
    })
}

/// Reads lines until one contains `text`, and returns what was read.
pub(crate) fn read_until(reader: &mut BufReader<impl Read>, text: &str) -> String {
    let mut read = String::new();
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(1..) => read.push_str(&line),
            _ => panic!("{text:?} is not in {read:?}"),
        }
        if line.contains(text) {
            return read;
        }
    }
}
