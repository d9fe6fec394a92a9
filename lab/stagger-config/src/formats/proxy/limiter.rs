//! Rate limiters of nginx: `limit_req` and `limit_conn`, whose rejections another server of the same file may retry.
//!
//! Read on nginx.org: `ngx_http_limit_req_module`, `ngx_http_limit_conn_module`.

use crate::tree::Directive;

/// The status of a rejection unless `limit_req_status` or `limit_conn_status` says otherwise.
const REJECTED: &str = "503";
const MODULES: [&str; 2] = ["limit_req", "limit_conn"];

/// A server that rejects what is above its limit.
pub(super) struct Limiter<'a> {
    /// The ports and sockets at which it listens.
    at: Vec<&'a str>,
    /// The directives that apply, each with the status of its rejections.
    rejections: Vec<Rejection<'a>>,
}

#[derive(Clone, Copy)]
struct Rejection<'a> {
    module: &'static str,
    status: &'a str,
}

impl Limiter<'_> {
    /// Returns the address, the directive and the status with which this server rejects, if it is one of these
    /// addresses and one of these conditions retries that.
    fn retried<'a>(&self, addresses: &'a [String], conditions: &[&str]) -> Option<(&'a str, &'static str, String)> {
        let address = addresses.iter().find(|address| local(address).is_some_and(|at| self.at.contains(&at)))?;
        self.rejections.iter().find_map(|rejection| {
            let condition = format!("http_{}", rejection.status);
            conditions.contains(&&*condition).then_some((&**address, rejection.module, condition))
        })
    }
}

/// Returns the condition by which the rejections of a limiter are retried, and what it does.
pub(super) fn retried(limiters: &[Limiter<'_>], addresses: &[String], conditions: &[&str]) -> Option<String> {
    let (address, module, condition) = limiters.iter().find_map(|limiter| limiter.retried(addresses, conditions))?;
    Some(format!(
        "`{condition}` sends again what {module} of the server at {address} rejects, until a server takes it or the tries are used up"
    ))
}

/// Returns the servers of a file that have a limit.
pub(super) fn limiters(found: &[Directive]) -> Vec<Limiter<'_>> {
    let mut limiters = Vec::new();
    collect(found, MODULES.map(|module| Rejection { module, status: REJECTED }), &[], &mut limiters);
    limiters
}

/// Visits a block. `rejections` are those of each module with the status that is set above, and `above` those that
/// apply.
fn collect<'a>(
    block: &'a [Directive],
    rejections: [Rejection<'a>; 2],
    above: &[Rejection<'a>],
    limiters: &mut Vec<Limiter<'a>>,
) {
    let (rejections, applying) = of_block(block, rejections, above);
    for directive in block {
        if directive.name() == "server" && !directive.block.is_empty() {
            let mut found = Vec::new();
            all(&directive.block, rejections, &applying, &mut found);
            let listens = directive.block.iter().filter(|inner| inner.name() == "listen");
            let mut at: Vec<&str> = listens.map(|listen| port(listen.first())).collect();
            if at.is_empty() {
                at.push("80");
            }
            if !found.is_empty() {
                limiters.push(Limiter { at, rejections: found });
            }
        } else if directive.name() != "upstream" {
            collect(&directive.block, rejections, &applying, limiters);
        }
    }
}

/// Adds what applies somewhere within a server. The parser limits the depth.
fn all<'a>(
    block: &'a [Directive],
    rejections: [Rejection<'a>; 2],
    above: &[Rejection<'a>],
    found: &mut Vec<Rejection<'a>>,
) {
    let (rejections, applying) = of_block(block, rejections, above);
    found.extend(&applying);
    for directive in block {
        all(&directive.block, rejections, &[], found);
    }
}

/// Returns the statuses of a block, and the limits that apply in it.
fn of_block<'a>(
    block: &'a [Directive],
    rejections: [Rejection<'a>; 2],
    above: &[Rejection<'a>],
) -> ([Rejection<'a>; 2], Vec<Rejection<'a>>) {
    let rejections = rejections.map(|rejection| {
        let set = block.iter().rev().find(|inner| inner.name().strip_suffix("_status") == Some(rejection.module));
        set.map_or(rejection, |set| Rejection { status: set.first(), ..rejection })
    });
    let is_used = |module: &str, block: &[Directive]| block.iter().any(|inner| inner.name() == module);
    let applying = rejections.into_iter().filter(|rejection| {
        is_used(rejection.module, block) || above.iter().any(|other| other.module == rejection.module)
    });
    (rejections, applying.collect())
}

/// Returns the port or the socket of an address, `80` if it has neither.
fn port(address: &str) -> &str {
    if address.starts_with("unix:") {
        return address;
    }
    let last = address.rsplit(':').next().unwrap_or(address);
    if !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()) { last } else { "80" }
}

/// Returns the port or the socket of an address of this machine.
fn local(address: &str) -> Option<&str> {
    let is_local = ["127.", "localhost", "[::1]", "unix:"].iter().any(|start| address.starts_with(start));
    is_local.then(|| if address.contains(':') { port(address) } else { "80" })
}
