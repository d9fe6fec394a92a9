use core::net::Ipv4Addr;
use std::fs;

use super::settings::CLIENTS;
use crate::error::CliError;
use crate::plot::Unit;

/// What else a process of a drill has open besides its connections.
const RESERVED_FILES: u64 = 200;

/// How many clients there are, if their descriptors can be had; if nobody asked for a number, fewer, and a remark why.
/// Raises what this process may open, and with it the server that it starts.
///
/// # Errors
/// There are too few descriptors for what was asked for.
pub(super) fn clients(asked: Option<u32>) -> Result<(u32, Option<String>), CliError> {
    let wanted = asked.unwrap_or(CLIENTS);
    let Err(most) = descriptors(u64::from(wanted) + RESERVED_FILES) else { return Ok((wanted, None)) };
    let fitting = u32::try_from(most.saturating_sub(RESERVED_FILES)).unwrap_or(u32::MAX);
    let needed = u64::from(wanted) + RESERVED_FILES;
    let remedy = format!(
        "for more, raise it as root: ulimit -Hn {needed} (for good: `* hard nofile {needed}` in /etc/security/limits.conf)"
    );
    if asked.is_none() && fitting > 0 {
        return clients(Some(fitting)).map(|(clients, _)| {
            let remark = format!(
                "a process may open {most} files here, so there are {} clients instead of {}; {remedy}",
                count(clients),
                count(wanted),
            );
            (clients, Some(remark))
        });
    }
    Err(CliError::usage(format_args!(
        "{} clients need {needed} open files in each of two processes, and the hard limit is {most}; lower --clients to {fitting}, or {remedy}",
        count(wanted),
    )))
}

/// Raises the soft limit of open files to what is needed.
///
/// # Errors
/// The hard limit, if that is less.
#[cfg(unix)]
fn descriptors(needed: u64) -> Result<(), u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= needed) {
        return Ok(());
    }
    if let Some(hard) = limit.maximum
        && hard < needed
    {
        return Err(hard);
    }
    // Not to the hard limit, which is no number that the kernel takes on every system.
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), ..limit }).map_err(|_| limit.current.unwrap_or(0))
}

#[cfg(not(unix))]
fn descriptors(_: u64) -> Result<(), u64> {
    Ok(())
}

/// Where the clients connect from: one address, and more where its ports would not be enough, half of which may wait for
/// the last packets of connections that are over. `None` stands for the one that the system chooses.
///
/// # Errors
/// There are too few ports, and no further addresses.
pub(super) fn sources(clients: u32, to_loopback: bool) -> Result<Vec<Option<Ipv4Addr>>, CliError> {
    let Some(ports) = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok().and_then(|text| range(&text))
    else {
        return Ok(vec![None]);
    };
    let addresses = clients.div_ceil((ports / 2).max(1));
    match addresses {
        0 | 1 => Ok(vec![None]),
        // All of 127.0.0.0/8 is this machine on Linux.
        2..=250 if to_loopback => Ok((1..=addresses).map(|last| Some(Ipv4Addr::new(127, 0, 0, last as u8))).collect()),
        _ => Err(CliError::usage(format_args!(
            "{} clients need twice as many ports, and there are {}; lower --clients, or widen the range as root: \
             sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"",
            count(clients),
            count(ports),
        ))),
    }
}

/// How many ports a line like `32768 60999` has.
fn range(text: &str) -> Option<u32> {
    let mut ends = text.split_ascii_whitespace().map_while(|word| word.parse::<u32>().ok());
    let (first, last) = (ends.next()?, ends.next()?);
    Some(last.checked_sub(first)? + 1)
}

/// How many connections the kernel is asked to keep for the server, and a remark if it keeps fewer than may come at once.
///
/// # Errors
/// The kernel would keep fewer than were asked for, without a word.
pub(super) fn listen_backlog(asked: Option<u32>, clients: u32) -> Result<(u32, Option<String>), CliError> {
    let somaxconn = fs::read_to_string("/proc/sys/net/core/somaxconn").ok().and_then(|text| text.trim().parse().ok());
    clamp_listen_backlog(asked, clients, somaxconn)
}

fn clamp_listen_backlog(
    asked: Option<u32>,
    clients: u32,
    somaxconn: Option<u32>,
) -> Result<(u32, Option<String>), CliError> {
    let (wanted, most) = (asked.unwrap_or(clients), somaxconn.unwrap_or(u32::MAX));
    if wanted <= most {
        return Ok((wanted, None));
    }
    let remedy = format!("raise it as root: sysctl -w net.core.somaxconn={wanted}");
    if asked.is_some() {
        return Err(CliError::usage(format_args!(
            "--listen-backlog: the kernel keeps {most} connections at most (net.core.somaxconn), whoever asks for more; lower it, or {remedy}",
        )));
    }
    let remark = format!(
        "the kernel keeps {} connections that nobody has accepted, and {} may come at once: those beyond would be dropped \
         without a word; if that happens, {remedy}",
        count(most),
        count(wanted),
    );
    Ok((most, Some(remark)))
}

fn count(number: u32) -> String {
    Unit::Count.label(f64::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_ports_has_both_its_ends() {
        assert_eq!(
            [range("32768\t60999\n"), range("5 5"), range("9 5"), range("")],
            [Some(28_232), Some(1), None, None]
        );
    }

    #[test]
    fn nobody_asks_the_kernel_for_more_than_it_keeps() {
        assert_eq!(clamp_listen_backlog(None, 3_000, Some(4_096)).unwrap(), (3_000, None));
        assert_eq!(clamp_listen_backlog(None, 3_000, None).unwrap(), (3_000, None));
        let (backlog, remark) = clamp_listen_backlog(None, 5_000, Some(4_096)).unwrap();
        assert_eq!(backlog, 4_096);
        assert!(remark.is_some_and(|remark| remark.contains("sysctl -w net.core.somaxconn=5000")));
        let refused = clamp_listen_backlog(Some(5_000), 10, Some(128)).unwrap_err().to_string();
        assert!(refused.contains("128") && refused.contains("somaxconn=5000"), "{refused}");
    }

    #[test]
    fn more_addresses_are_used_where_one_has_too_few_ports() {
        // Whatever the range is here, a handful fits, and 70 million do not.
        assert_eq!(sources(100, true).unwrap(), [None]);
        if cfg!(target_os = "linux") {
            assert!(sources(70_000_000, true).unwrap_err().to_string().contains("ip_local_port_range"));
            assert!(sources(100_000, true).unwrap().contains(&Some(Ipv4Addr::new(127, 0, 0, 2))));
            assert!(sources(100_000, false).is_err());
        }
    }
}
