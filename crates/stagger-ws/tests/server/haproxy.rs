//! The guide's recipe for HAProxy, run by a real one in front of this crate's server.

use std::fs;

use stagger_kit::{Port, Program, Ready, Server};

use crate::reject_by_close::{returns_by_its_reservation, serve, strict};
use crate::support::SECOND;

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
