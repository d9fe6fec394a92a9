//! The guide's recipes for nginx and HAProxy, run by real ones in front of this crate's server.

use core::net::SocketAddr;
use core::time::Duration;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use stagger::{Jitter, Policy};
use stagger_kit::{Port, Program, Ready, Server, Signal};
use stagger_ws::server::{Drain, Sockets};
use stagger_ws::{Client, Handle};
use tokio::time::timeout;

use crate::reject_by_close::{returns_by_its_reservation, serve, strict};
use crate::support::{SECOND, echo, eventually, on_loopback, small, unlimited};

const CLIENTS: usize = 20;

/// Returns the recipe with this port and this upstream server.
fn recipe(listens: SocketAddr, upstream: SocketAddr) -> String {
    let page = include_str!("../../../../docs/guide/websocket.md");
    let (_, recipe) = page.split_once("```nginx\n").expect("a recipe");
    let (recipe, _) = recipe.split_once("```").expect("its end");
    let ours = recipe.replace("listen 80 ", &format!("listen {listens} "));
    let ours = ours.replace("server 10.0.0.1:8080;", &format!("server {upstream};"));
    assert!(ours.contains(&listens.to_string()) && ours.contains(&upstream.to_string()), "{ours}");
    ours
}

fn configure(directory: &Path, recipe: &str) {
    let path = directory.display();
    // With a master process, which handles reloads.
    let config = format!(
        "daemon off; worker_processes 1; pid {path}/pid; error_log {path}/error.log;\n\
         events {{ worker_connections 1000; }}\n\
         http {{\n\
             access_log off;\n\
             client_body_temp_path {path}/a; proxy_temp_path {path}/b; fastcgi_temp_path {path}/c;\n\
             uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;\n\
             {recipe}\n\
         }}\n"
    );
    fs::write(directory.join("nginx.conf"), config).unwrap();
}

/// Starts a server of this crate at its own address.
fn site() -> (Sockets, SocketAddr) {
    let (sockets, (listener, address)) = (unlimited().build().unwrap(), on_loopback());
    let server = sockets.clone();
    tokio::spawn(async move { server.serve(listener, echo).await });
    (sockets, address)
}

/// The causes of all closed connections.
type Causes = Arc<Mutex<Vec<String>>>;

fn client(address: SocketAddr, causes: &Causes) -> Handle {
    let ms = Duration::from_millis;
    let policy = Policy::exponential(ms(20), ms(200)).jitter(Jitter::Full).spread(ms(100)).max_attempts(1_000);
    let causes = Arc::clone(causes);
    let mut client = Client::builder()
        .url(format!("ws://{address}/ws"))
        .retrier(policy.build().unwrap())
        .websocket_config(small())
        .on_closed(move |closed| {
            let code = closed.cause.close_code();
            causes.lock().unwrap().push(code.map_or_else(|| closed.cause.name().to_owned(), |code| code.to_string()));
        })
        .connect();
    let handle = client.handle();
    tokio::spawn(async move { while let Some(Ok(_)) = client.next().await {} });
    handle
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_survive_a_reload_a_drain_and_a_restart_of_nginx() {
    let (directory, port) = (tempfile::tempdir().unwrap(), Port::reserve().unwrap());
    let [(first, first_at), (second, second_at)] = [site(), site()];
    configure(directory.path(), &recipe(port.address(), first_at));
    let file = directory.path().join("nginx.conf");
    let program = Program::find("nginx").unwrap().arg("-c").arg(&file).arg("-p").arg(directory.path());
    let mut nginx = Server::start(program, Ready::Port(port.address()), 20 * SECOND).unwrap();
    let causes = Causes::default();
    let clients: Vec<_> = (0..CLIENTS).map(|_| client(port.address(), &causes)).collect();
    eventually("all clients on the first server", || first.active() == CLIENTS).await;

    // From now on nginx sends new connections to the second server; existing ones stay.
    configure(directory.path(), &recipe(port.address(), second_at));
    nginx.running().unwrap().signal(Signal::HUP).unwrap();
    let late = client(port.address(), &causes);
    timeout(20 * SECOND, late.connected()).await.expect("in time").unwrap();
    eventually("a new worker is serving", || first.active() + second.active() == CLIENTS + 1).await;
    assert_eq!(causes.lock().unwrap().len(), 0, "a reload drops no connection");
    first.drain(Drain::per_second(100)).done().await;
    eventually("all clients on the second server", || second.active() == CLIENTS + 1).await;
    assert!(causes.lock().unwrap().iter().filter(|cause| *cause == "1012").count() >= CLIENTS, "{causes:?}");

    // The kill is not announced to the clients.
    causes.lock().unwrap().clear();
    nginx.kill();
    eventually("all connections ended", || second.active() == 0).await;
    nginx.restart().unwrap();
    eventually("all clients reconnected", || second.active() == CLIENTS + 1).await;
    assert!(causes.lock().unwrap().iter().all(|cause| cause != "1012"), "{causes:?}");
    for handle in &clients {
        timeout(20 * SECOND, handle.close()).await.expect("in time");
    }
}

// A page's client behind the recipe reads the close and returns by its reservation, and the proxy drops neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_behind_nginx_reads_its_reservation_and_returns_by_it() {
    let (directory, port) = (tempfile::tempdir().unwrap(), Port::reserve().unwrap());
    let sockets = strict().build().unwrap();
    let (upstream, _tasks) = serve(&sockets, false);
    configure(directory.path(), &recipe(port.address(), upstream));
    let file = directory.path().join("nginx.conf");
    let program = Program::find("nginx").unwrap().arg("-c").arg(&file).arg("-p").arg(directory.path());
    let _nginx = Server::start(program, Ready::Port(port.address()), 20 * SECOND).unwrap();
    returns_by_its_reservation(&sockets, port.address(), "/ws").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_behind_haproxy_reads_its_reservation_and_returns_by_it() {
    let (directory, port) = (tempfile::tempdir().unwrap(), Port::reserve().unwrap());
    let sockets = strict().build().unwrap();
    let (upstream, _tasks) = serve(&sockets, false);
    let page = include_str!("../../../../docs/guide/websocket.md");
    let (_, recipe) = page.split_once("```haproxy\n").expect("a recipe");
    let (recipe, _) = recipe.split_once("```").expect("its end");
    // One server, which has no path for health checks.
    let only = |line: &&str| !line.contains("httpchk") && !line.contains("server b");
    let recipe = recipe.lines().filter(only).collect::<Vec<_>>().join("\n");
    let recipe = recipe.replace("bind :80", &format!("bind {}", port.address()));
    let recipe = recipe.replace("10.0.0.1:8080 check slowstart 60s", &upstream.to_string());
    assert!(recipe.contains(&upstream.to_string()) && recipe.contains(&port.address().to_string()), "{recipe}");
    let file = directory.path().join("haproxy.cfg");
    fs::write(&file, format!("defaults\n    mode http\n    timeout connect 5s\n{recipe}\n")).unwrap();
    let program = Program::find("haproxy").unwrap().arg("-db").arg("-f").arg(&file);
    let _haproxy = Server::start(program, Ready::Port(port.address()), 20 * SECOND).unwrap();
    returns_by_its_reservation(&sockets, port.address(), "/ws").await;
}
