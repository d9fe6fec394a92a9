//! The machine and the versions that the figures were measured with.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use crate::lockfile;

/// The machine, the compiler and the versions of the peers.
#[derive(Debug, serde::Serialize)]
pub(super) struct Machine {
    pub(super) cpu: String,
    pub(super) cores: usize,
    pub(super) compiler: String,
    pub(super) peers: BTreeMap<&'static str, &'static str>,
}

impl Machine {
    pub(super) fn current() -> Self {
        let peers = if cfg!(feature = "peers") { &lockfile::PEERS[..] } else { &[] };
        Self {
            cpu: cpu().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            compiler: compiler().unwrap_or_else(|| "an unknown compiler".to_owned()),
            peers: peers.iter().filter_map(|name| Some((*name, lockfile::version(name)?))).collect(),
        }
    }
}

fn cpu() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn compiler() -> Option<String> {
    let output = Command::new("rustc").arg("--version").output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
