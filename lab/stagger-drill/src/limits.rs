//! The limits of the system that many clients on one machine meet.

use core::net::Ipv4Addr;
use std::fs;

use stagger_terminal::output::error::CliError;
use stagger_terminal::plot::Unit;

use super::args::CLIENTS;

/// Number of files that a process of a drill opens in addition to its connections.
const RESERVED_FILES: u64 = 200;

/// Returns the number of clients that the open-file limit allows. If no number was requested and the limit is too low
/// for the default, returns a lower number and a note. Raises the soft limit of this process, which the server
/// inherits. Each client has `connections` of a process; a relay has two.
pub(super) fn clients(requested: Option<u32>, connections: u64) -> Result<(u32, Option<String>), CliError> {
    let wanted = requested.unwrap_or(CLIENTS);
    let needed = u64::from(wanted) * connections + RESERVED_FILES;
    let Err(limit) = descriptors(needed) else { return Ok((wanted, None)) };
    let allowed = u32::try_from(limit.saturating_sub(RESERVED_FILES) / connections).unwrap_or(u32::MAX);
    let remedy = format!(
        "raise the limit as root: ulimit -Hn {needed} (permanently: `* hard nofile {needed}` in \
         /etc/security/limits.conf)"
    );
    if requested.is_none() && allowed > 0 {
        return clients(Some(allowed), connections).map(|(clients, _)| {
            let note = format!(
                "the limit of {limit} open files allows {} clients instead of {}; for more, {remedy}",
                count(clients),
                count(wanted),
            );
            (clients, Some(note))
        });
    }
    let lower = if allowed > 0 { format!("lower --clients to {allowed}, or ") } else { String::new() };
    Err(CliError::usage(format_args!(
        "{} clients need {needed} open files in each of two processes, but the hard limit is {limit}; {lower}{remedy}",
        count(wanted),
    )))
}

/// Raises the soft limit of open files to `needed`; fails with the hard limit if that is lower.
#[cfg(unix)]
fn descriptors(needed: u64) -> Result<(), u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limits = getrlimit(Resource::Nofile);
    // Without a limit there is nothing to raise.
    let Some(soft) = limits.current else { return Ok(()) };
    if soft >= needed {
        return Ok(());
    }
    if let Some(hard) = limits.maximum
        && hard < needed
    {
        return Err(hard);
    }
    // Not to the hard limit: on some systems the kernel rejects its value.
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), ..limits }).map_err(|_| soft)
}

#[cfg(not(unix))]
fn descriptors(_: u64) -> Result<(), u64> {
    Ok(())
}

/// Returns the source addresses of the clients: one, or more if its ports may run out, since up to half of them may be
/// in TIME_WAIT. `None` lets the system choose the address.
pub(super) fn sources(clients: u32, to_loopback: bool) -> Result<Vec<Option<Ipv4Addr>>, CliError> {
    // Other systems than Linux do not have the file.
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let Some(ports) = range(&text) else { return Ok(vec![None]) };
    let addresses = clients.div_ceil((ports / 2).max(1));
    match addresses {
        0 | 1 => Ok(vec![None]),
        // On Linux, all of 127.0.0.0/8 is local.
        2..=250 if to_loopback => Ok((1..=addresses).map(|last| Some(Ipv4Addr::new(127, 0, 0, last as u8))).collect()),
        _ => Err(CliError::usage(format_args!(
            "{} clients need twice as many ports, but there are only {}; lower --clients, or widen the range as root: \
             sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"",
            count(clients),
            count(ports),
        ))),
    }
}

/// Returns the number of ports in a range such as `32768 60999`.
fn range(text: &str) -> Option<u32> {
    let mut ends = text.split_ascii_whitespace().map_while(|word| word.parse::<u32>().ok());
    let (first, last) = (ends.next()?, ends.next()?);
    Some(last.checked_sub(first)? + 1)
}

/// Returns the listen backlog for the server, and a note if the kernel limits it to fewer connections than may arrive
/// at once. A requested value beyond the limit is an error: the kernel would reduce it silently.
pub(super) fn listen_backlog(requested: Option<u32>, clients: u32) -> Result<(u32, Option<String>), CliError> {
    // Other systems than Linux do not have the file.
    let text = fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    clamp_listen_backlog(requested, clients, text.trim().parse().ok())
}

fn clamp_listen_backlog(
    requested: Option<u32>,
    clients: u32,
    somaxconn: Option<u32>,
) -> Result<(u32, Option<String>), CliError> {
    let (wanted, limit) = (requested.unwrap_or(clients), somaxconn.unwrap_or(u32::MAX));
    if wanted <= limit {
        return Ok((wanted, None));
    }
    let remedy = format!("raise the limit as root: sysctl -w net.core.somaxconn={wanted}");
    if requested.is_some() {
        return Err(CliError::usage(format_args!(
            "--listen-backlog: {wanted} exceeds the kernel's limit of {limit} (net.core.somaxconn); lower it, or \
             {remedy}",
        )));
    }
    let note = format!(
        "the kernel queues up to {} connections for the server, but {} may arrive at once, and it drops the excess \
         silently; if that happens, {remedy}",
        count(limit),
        count(wanted),
    );
    Ok((limit, Some(note)))
}

fn count(number: u32) -> String {
    Unit::Count.label(f64::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_range_includes_both_ends() {
        assert_eq!(
            [range("32768\t60999\n"), range("5 5"), range("9 5"), range("")],
            [Some(28_232), Some(1), None, None]
        );
    }

    #[test]
    fn the_listen_backlog_never_exceeds_the_kernel_limit() {
        assert_eq!(clamp_listen_backlog(None, 3_000, Some(4_096)).unwrap(), (3_000, None));
        assert_eq!(clamp_listen_backlog(None, 3_000, None).unwrap(), (3_000, None));
        let (backlog, note) = clamp_listen_backlog(None, 5_000, Some(4_096)).unwrap();
        assert_eq!(backlog, 4_096);
        assert!(note.is_some_and(|note| note.contains("sysctl -w net.core.somaxconn=5000")));
        let refused = clamp_listen_backlog(Some(5_000), 10, Some(128)).unwrap_err().to_string();
        assert!(refused.contains("128") && refused.contains("somaxconn=5000"), "{refused}");
    }

    #[test]
    fn further_addresses_are_used_if_one_has_too_few_ports() {
        // On any machine, 100 clients fit and 70 million do not.
        assert_eq!(sources(100, true).unwrap(), [None]);
        if cfg!(target_os = "linux") {
            assert!(sources(70_000_000, true).unwrap_err().to_string().contains("ip_local_port_range"));
            assert!(sources(100_000, true).unwrap().contains(&Some(Ipv4Addr::new(127, 0, 0, 2))));
            assert!(sources(100_000, false).is_err());
        }
    }
}
