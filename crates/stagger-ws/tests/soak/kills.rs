//! The test itself.

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::collections::HashMap;
use std::time::Instant;
use std::{env, fs, process};

use stagger_kit::{Port, Ready, Server, Stream, raise_descriptor_limit};
use tokio::time::{sleep, timeout};

use super::fleet::Fleet;
use super::plan::Plan;
use super::{server, store};

/// Memory is measured after the kill with this number, when it has reached its maximum.
const SETTLED: u32 = 10;

#[test]
fn every_client_reconnects_after_every_kill_and_every_message_is_stored_once() {
    let plan = Plan::from_env();
    raise_descriptor_limit(plan.clients as u64)
        .expect("file descriptors for all connections, in this process and in the server");
    let path = env::temp_dir().join(format!("stagger-ws-soak-{}", process::id()));
    let port = Port::reserve().unwrap();
    let ready = Ready::Line(Stream::Stdout, server::READY.into());
    let mut server = Server::start(server::program(port.number(), &path), ready, Duration::from_secs(30)).unwrap();

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let begin = Instant::now();
    let (mut settled, mut back) = (None, Vec::new());
    let fleet = runtime.block_on(async { Fleet::launch(plan.clients, port.number(), plan.every) });
    runtime.block_on(fleet.all_connected());
    for kill in 1..=plan.kills {
        runtime.block_on(async { sleep(plan.calm).await });
        server.kill();
        runtime.block_on(fleet.all_disconnected());
        server.restart().unwrap();
        let restarted = Instant::now();
        runtime.block_on(fleet.all_connected());
        back.push(restarted.elapsed());
        println!("kill {kill}: all clients reconnected after {:?}", restarted.elapsed());
        if kill == SETTLED {
            runtime.block_on(async { sleep(plan.calm).await });
            settled = Some(resident_kib());
        }
    }
    runtime.block_on(async { sleep(plan.calm).await });
    let last = resident_kib();
    let seen = std::sync::Arc::clone(&fleet.seen);
    let sent = runtime.block_on(fleet.finish());
    // A task that has ended is still counted for a moment.
    let left = runtime.block_on(async {
        let none_left = async {
            while tokio::runtime::Handle::current().metrics().num_alive_tasks() > 0 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(Duration::from_secs(10), none_left).await
    });
    server.kill();

    back.sort();
    println!(
        "{} kills with {} clients in {:.1} s: {} connections, {} messages sent, {} of them resent, {} received; \
         all clients reconnected after {:?} (minimum), {:?} (median), {:?} (maximum); {last} KiB resident{}",
        plan.kills,
        plan.clients,
        begin.elapsed().as_secs_f64(),
        seen.opened.load(Ordering::Relaxed),
        sent.iter().sum::<u64>(),
        seen.resent.load(Ordering::Relaxed),
        seen.ticks.load(Ordering::Relaxed),
        back[0],
        back[back.len() / 2],
        back[back.len() - 1],
        settled.map_or_else(String::new, |kib| format!(", {kib} after kill {SETTLED}")),
    );
    assert!(left.is_ok(), "a task is left");
    assert_eq!(seen.opened.load(Ordering::Relaxed), plan.clients as u64 * u64::from(plan.kills + 1));
    assert!(seen.ticks.load(Ordering::Relaxed) >= plan.clients as u64);
    let mut stored: HashMap<String, Vec<u64>> = HashMap::new();
    for (client, number) in store::read(&path).unwrap() {
        stored.entry(client).or_default().push(number);
    }
    for (n, last) in sent.into_iter().enumerate() {
        assert_eq!(stored[&format!("client-{n}")], Vec::from_iter(1..=last), "client {n}");
    }
    if let Some(settled) = settled.filter(|_| plan.kills > SETTLED) {
        assert!(last.abs_diff(settled) * 10 <= settled, "{settled} KiB after kill {SETTLED}, {last} KiB at the end");
    }
    fs::remove_file(path).unwrap();
}

/// Returns the resident memory of this process.
fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line VmRSS");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
