//! The guide's recipe for nginx, in a real one before our server, with our clients.

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

use crate::support::{SECOND, echo, eventually, on_loopback, open_to_all, small};

const CLIENTS: usize = 20;

/// The recipe, to listen at this port, and with this server behind.
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
    // With a master, which is what reloads.
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

/// A server of ours, at an address of its own.
fn site() -> (Sockets, SocketAddr) {
    let (sockets, (listener, address)) = (open_to_all().build().unwrap(), on_loopback());
    let server = sockets.clone();
    tokio::spawn(async move { server.serve(listener, echo).await });
    (sockets, address)
}

/// What the clients' connections have ended with, in words.
type Causes = Arc<Mutex<Vec<String>>>;

fn client(address: SocketAddr, causes: &Causes) -> Handle {
    let ms = Duration::from_millis;
    let policy = Policy::exponential(ms(20), ms(200)).jitter(Jitter::Full).spread(ms(100)).max_attempts(1_000);
    let causes = Arc::clone(causes);
    let mut client = Client::builder()
        .url(format!("ws://{address}/ws"))
        .policy(policy.build().unwrap())
        .websocket(small())
        .on_closed(move |closed| {
            let code = closed.cause.code();
            causes.lock().unwrap().push(code.map_or_else(|| closed.cause.name().to_owned(), |code| code.to_string()));
        })
        .connect();
    let handle = client.handle();
    tokio::spawn(async move { while let Some(Ok(_)) = client.next().await {} });
    handle
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_outlive_a_reload_a_drain_and_a_restart_of_nginx() {
    let (directory, port) = (tempfile::tempdir().unwrap(), Port::reserve().unwrap());
    let [(first, first_at), (second, second_at)] = [site(), site()];
    configure(directory.path(), &recipe(port.address(), first_at));
    let file = directory.path().join("nginx.conf");
    let program = Program::find("nginx").unwrap().arg("-c").arg(&file).arg("-p").arg(directory.path());
    let mut nginx = Server::start(program, Ready::Port(port.address()), 20 * SECOND).unwrap();
    let causes = Causes::default();
    let clients: Vec<_> = (0..CLIENTS).map(|_| client(port.address(), &causes)).collect();
    eventually("all are on the first server", || first.active() == CLIENTS).await;

    // From now on nginx sends everybody to the second one, and those who are there stay.
    configure(directory.path(), &recipe(port.address(), second_at));
    nginx.running().unwrap().signal(Signal::HUP).unwrap();
    let late = client(port.address(), &causes);
    timeout(20 * SECOND, late.connected()).await.expect("in time").unwrap();
    eventually("a new worker serves", || first.active() + second.active() == CLIENTS + 1).await;
    assert_eq!(causes.lock().unwrap().len(), 0, "a reload drops nobody");
    first.drain(Drain::per_second(100)).done().await;
    eventually("all are on the second server", || second.active() == CLIENTS + 1).await;
    assert!(causes.lock().unwrap().iter().filter(|cause| *cause == "1012").count() >= CLIENTS, "{causes:?}");

    // Now it is killed: nobody is told anything.
    causes.lock().unwrap().clear();
    nginx.kill();
    eventually("all have gone", || second.active() == 0).await;
    nginx.restart().unwrap();
    eventually("all are back", || second.active() == CLIENTS + 1).await;
    assert!(causes.lock().unwrap().iter().all(|cause| cause != "1012"), "{causes:?}");
    for handle in &clients {
        timeout(20 * SECOND, handle.close()).await.expect("in time");
    }
}
