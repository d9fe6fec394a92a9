//! nginx: `proxy_next_upstream` and its like; and `limit_req` and `limit_conn`, whose rejections another server of the
//! same file may retry.
//!
//! Read on nginx.org: `ngx_http_proxy_module`, `ngx_stream_proxy_module`, `ngx_http_upstream_module`,
//! `ngx_http_limit_req_module`, `ngx_http_limit_conn_module`; and in `ngx_http_upstream.c`,
//! `ngx_http_upstream_round_robin.c` and `ngx_parse.c`, version 1.29.
//!
//! | field | default | 0 | ignored | refused |
//! |---|---|---|---|---|
//! | `proxy_next_upstream` | `error timeout` | `off`: one try | with one server | other words |
//! | `proxy_next_upstream_tries` | as many as the group has servers | 0: the same | with one server | no whole number |
//! | `proxy_next_upstream_timeout` | no limit | 0: no limit | with one server | no length |
//! | `proxy_read_timeout` | 60 s | | in `stream` | no length |
//! | `proxy_connect_timeout` | 60 s, of an attempt in `stream` | | | no length |
//! | `server … down` | in use | | | |
//!
//! How many addresses a name has, or a variable, the file does not say: the tries are not known. A name in a group is
//! counted once, with a note. A length has no fraction, no month and no year.

use core::time::Duration;
use std::collections::{HashMap, HashSet};

use crate::entry::{Entry, EntryKind, Found, Limit, Origin, Remark, RemarkKind, RetryBudget, Setting};
use crate::fields::shortened;
use crate::format::Format;
use crate::tree::Directive;
use crate::tree::placeholders::{self, Filled, Syntax};
use crate::units;

const READ_TIMEOUT: Duration = Duration::from_secs(60);
const MODULES: [&str; 5] = ["proxy", "fastcgi", "uwsgi", "scgi", "grpc"];

/// The groups of servers by name.
type Groups<'a> = HashMap<&'a str, Group>;

/// The last directive of each name in a block.
type Block<'a> = HashMap<&'a str, &'a Directive>;

/// A group of servers.
struct Group {
    /// Servers that are not `down`, backups included.
    servers: u32,
    /// Their addresses.
    addresses: Vec<String>,
    is_kept_alive: bool,
    remarks: Vec<Remark>,
}

/// What the whole file says that a location does not.
struct File<'a> {
    groups: Groups<'a>,
    limiters: Vec<Limiter<'a>>,
}

pub(crate) fn is_nginx(found: &[Directive]) -> bool {
    const NAMES: [&str; 8] =
        ["http", "upstream", "server", "location", "events", "stream", "worker_processes", "proxy_pass"];
    let is_named = |directive: &Directive| {
        NAMES.contains(&directive.name()) && (!directive.block.is_empty() || directive.words.len() > 1)
    };
    let mut marks = HashSet::new();
    found.iter().any(is_named) && {
        collect_marks(found, &mut marks);
        marks.len() >= 2
    }
}

/// Collects what only nginx has: other files have blocks and semicolons as well. The parser limits the depth.
fn collect_marks<'a>(found: &'a [Directive], marks: &mut HashSet<&'a str>) {
    const NAMES: [&str; 14] = [
        "http",
        "upstream",
        "server",
        "location",
        "events",
        "stream",
        "worker_processes",
        "worker_connections",
        "listen",
        "server_name",
        "include",
        "limit_req",
        "limit_conn",
        "return",
    ];
    for directive in found {
        let name = directive.name();
        let is_of_module =
            MODULES.iter().any(|module| name.strip_prefix(module).is_some_and(|rest| rest.starts_with('_')));
        if NAMES.contains(&name) || is_of_module {
            marks.insert(name);
        }
        collect_marks(&directive.block, marks);
    }
}

pub(crate) fn read(found: &[Directive]) -> Vec<Entry> {
    let mut groups = Groups::new();
    collect_groups(found, &mut groups);
    let mut entries = Vec::new();
    let file = File { groups, limiters: limiters(found) };
    walk(found, &mut Vec::new(), &mut Vec::new(), &file, &mut entries);
    if let Some(first) = entries.first_mut() {
        included(found, &mut first.remarks);
    }
    entries
}

/// Names the files that are included, and may say otherwise.
fn included(found: &[Directive], remarks: &mut Vec<Remark>) {
    // Of types and parameters.
    const OTHERS: [&str; 5] = ["mime.types", "fastcgi_params", "fastcgi.conf", "scgi_params", "uwsgi_params"];
    for directive in found {
        let is_of_others = || OTHERS.iter().any(|name| directive.first().ends_with(name));
        if directive.name() == "include" && !is_of_others() {
            remarks.push(Remark {
                kind: RemarkKind::NotRead,
                path: "include".to_owned(),
                span: directive.span,
                text: format!("what `{}` says may replace this; `nginx -T` prints it in one file", directive.first()),
            });
        }
        included(&directive.block, remarks);
    }
}

fn collect_groups<'a>(found: &'a [Directive], groups: &mut Groups<'a>) {
    for directive in found {
        if directive.name() != "upstream" {
            collect_groups(&directive.block, groups);
            continue;
        }
        let is_kept_alive = directive.block.iter().any(|inner| inner.name() == "keepalive");
        let mut group = Group { servers: 0, addresses: Vec::new(), is_kept_alive, remarks: Vec::new() };
        for server in directive.block.iter().filter(|inner| inner.name() == "server") {
            let has = |word: &str| server.words.iter().skip(2).any(|other| other == word);
            if !has("down") {
                group.servers += 1;
                group.addresses.push(server.first().to_owned());
            }
            if has("max_fails=0") {
                group.remarks.push(Remark {
                    kind: RemarkKind::Hazard,
                    path: format!("upstream {}", directive.first()),
                    span: server.span,
                    text: "max_fails=0: a dead server is tried again for every request".to_owned(),
                });
            }
        }
        groups.insert(directive.first(), group);
    }
}

/// Visits the blocks; `above` are those that contain the present one, outermost first.
fn walk<'a>(
    found: &'a [Directive],
    above: &mut Vec<Block<'a>>,
    path: &mut Vec<String>,
    file: &File<'_>,
    entries: &mut Vec<Entry>,
) {
    above.push(found.iter().map(|directive| (directive.name(), directive)).collect());
    for directive in found {
        if let Some(module) = MODULES.iter().find(|module| directive.name().strip_suffix("_pass") == Some(module)) {
            entries.push(passed(directive, module, above, path, file));
        }
        if !directive.block.is_empty() && directive.name() != "upstream" {
            // The outer blocks of every file say nothing about the place.
            let is_named = directive.name() != "http";
            if is_named {
                path.push(directive.words.join(" "));
            }
            walk(&directive.block, above, path, file, entries);
            if is_named {
                path.pop();
            }
        }
    }
    above.pop();
}

/// Returns the directive that applies: the innermost block that has it.
fn applying<'a>(above: &[Block<'a>], name: &str) -> Option<&'a Directive> {
    above.iter().rev().find_map(|block| block.get(name).copied())
}

fn passed(pass: &Directive, module: &str, above: &[Block<'_>], path: &[String], file: &File<'_>) -> Entry {
    let target = pass.first();
    let place = [path, &[format!("{} {target}", pass.name())]].concat().join(" > ");
    let mut entry = Entry::new(Format::Nginx, EntryKind::Call, place.clone(), pass.span);
    let remarks = &mut entry.remarks;
    let named = |suffix: &str| applying(above, &format!("{module}_{suffix}"));
    let mut length = |suffix: &str| match named(suffix) {
        Some(found) => value(found, "a length of time, such as 60s: nginx does not start", units::nginx, remarks),
        None => Found::Absent,
    };
    // A server of streams waits for data as long as its clients do; of an attempt, it limits the connecting.
    let is_stream = path.first().is_some_and(|block| block == "stream");
    let each = length(if is_stream { "connect_timeout" } else { "read_timeout" });
    entry.settings.attempt_timeout = Some(each.limit_or(Limit::At(READ_TIMEOUT)));
    let overall = length("next_upstream_timeout");
    let (_, host) = target.split_once("://").unwrap_or(("", target));
    let host = host.split('/').next().unwrap_or_default();
    let group = file.groups.get(host);
    let conditions = named("next_upstream");
    let words: Vec<&str> = match conditions {
        Some(found) => found.words.iter().skip(1).map(String::as_str).collect(),
        None => vec!["error", "timeout"],
    };
    let mut are_known = true;
    for word in &words {
        let is_plain = placeholders::filled(word, Syntax::Shell) == Filled::Plain;
        if is_plain && !is_condition(word, module, is_stream) {
            remarks.extend(conditions.map(|found| Remark {
                kind: RemarkKind::Invalid,
                path: found.name().to_owned(),
                span: found.span,
                text: format!("`{}` is no condition here: nginx does not start", shortened(word)),
            }));
        }
        if placeholders::filled(word, Syntax::Shell) != Filled::Plain {
            are_known = false;
            let (kind, text) = placeholders::said(word, false);
            remarks.push(Remark { kind, path: "proxy_next_upstream".to_owned(), span: pass.span, text });
        }
    }
    let tries = match named("next_upstream_tries") {
        Some(found) => {
            value(found, "a whole number of 0 or more: nginx does not start", |text| text.parse().ok(), remarks)
        }
        None => Found::Absent,
    };
    // 0 is no limit.
    let tries = if let Found::Known(Setting { value: 0, .. }) = tries { Found::Absent } else { tries };
    let note =
        |text: &str| Remark { kind: RemarkKind::Note, path: place.clone(), span: pass.span, text: text.to_owned() };
    let mut servers = Some(1);
    if let Some(group) = group {
        remarks.extend(group.remarks.iter().cloned());
        servers = Some(group.servers.max(1));
        if group.addresses.iter().any(|address| unknown_number(address).is_some()) {
            remarks
                .push(note("a server with a name counts once for each of its addresses, which the file does not say"));
        }
        if group.is_kept_alive && group.servers <= 1 {
            remarks.push(note("a kept connection that fails is replaced by a new one, which is no try of its own"));
        }
    } else if let Some(why) = unknown_number(host) {
        remarks.push(note(why));
        servers = None;
    }
    let attempts = match (servers, tries) {
        _ if words.contains(&"off") => Limit::At(1),
        (Some(1), _) | (_, Found::Known(Setting { value: 1, .. })) => Limit::At(1),
        _ if !are_known => Limit::Unknown,
        (Some(servers), Found::Known(tries)) => Limit::At(servers.min(tries.value)),
        (Some(servers), Found::Absent) => Limit::At(servers),
        (None, _) | (_, Found::Unknown(_)) => Limit::Unknown,
    };
    let origin = match (tries, conditions) {
        (Found::Known(tries), _) if attempts == Limit::At(tries.value) => tries.origin,
        (Found::Unknown(span), _) if attempts == Limit::Unknown => Origin::Stated(span),
        (_, Some(conditions)) => Origin::Stated(conditions.span),
        (_, None) => Origin::Default,
    };
    entry.settings.attempts = Some(Setting { value: attempts, origin });
    if attempts != Limit::At(1) {
        let unless_zero = |length: Duration| if length.is_zero() { Limit::None } else { Limit::At(length) };
        entry.settings.timeout = Some(overall.map(unless_zero).flat_or(Limit::None));
        if let Some(found) =
            named("next_upstream_timeout").filter(|_| overall.known().is_some_and(|all| !all.value.is_zero()))
        {
            let text = "passes a request on no later, and ends no attempt".to_owned();
            let path = found.name().to_owned();
            entry.remarks.push(Remark { kind: RemarkKind::Note, path, span: found.span, text });
        }
        entry.settings.base = Some(Setting::default(Duration::ZERO));
        entry.settings.jitter = Some(Setting::default(stagger_core::Jitter::None));
        entry.settings.budget = Some(Setting::default(RetryBudget::Unlimited));
        let addresses = group.map(|group| &*group.addresses).unwrap_or_default();
        if let Some(conditions) = conditions
            && let Some(text) = retried(&file.limiters, addresses, &words)
        {
            let (path, span) = (place.clone(), conditions.span);
            entry.remarks.push(Remark { kind: RemarkKind::Hazard, path, span, text });
        }
        // A stream has no methods, and passes on connections to which nothing has been sent.
        entry.may_repeat_unsafe = Some(words.contains(&"non_idempotent"));
        if Setting::value_or(entry.settings.timeout, Limit::None) == Limit::None {
            entry
                .remarks
                .push(note("without a next_upstream_timeout, a client may wait for all tries and their read timeouts"));
        }
    }
    entry
}

/// Returns whether a word is a condition of a module.
fn is_condition(word: &str, module: &str, is_stream: bool) -> bool {
    match word {
        "on" => is_stream,
        "off" => true,
        _ if is_stream => false,
        "error" | "timeout" | "invalid_header" | "non_idempotent" | "http_500" | "http_503" | "http_403"
        | "http_404" | "http_429" => true,
        "http_502" | "http_504" => matches!(module, "proxy" | "grpc"),
        "updating" => module != "grpc",
        _ => false,
    }
}

/// Reads the argument of a directive.
fn value<T>(found: &Directive, wanted: &str, parse: fn(&str) -> Option<T>, remarks: &mut Vec<Remark>) -> Found<T> {
    let mut remark = |kind, text| {
        remarks.push(Remark { kind, path: found.name().to_owned(), span: found.span, text });
    };
    let mut written = found.first().to_owned();
    let is_known = match placeholders::filled(found.first(), Syntax::Shell) {
        Filled::Plain => None,
        Filled::Default(value) => {
            written = value;
            Some(true)
        }
        Filled::Unknown => Some(false),
    };
    if let Some(is_known) = is_known {
        let (kind, text) = placeholders::said(found.first(), is_known);
        remark(kind, text);
        if !is_known {
            return Found::Unknown(found.span);
        }
    }
    match parse(&written) {
        Some(value) => Found::Known(Setting::stated(value, found.span)),
        None => {
            remark(RemarkKind::Invalid, format!("`{}` is not {wanted}", shortened(&written)));
            Found::Unknown(found.span)
        }
    }
}

/// Says why the file does not tell how many servers a host has.
fn unknown_number(host: &str) -> Option<&'static str> {
    if host.contains('$') {
        return Some("the server is in a variable: how many there are is not in the file");
    }
    let (name, _) = host.split_once(':').unwrap_or((host, ""));
    if host.starts_with("unix:") || name.parse::<core::net::IpAddr>().is_ok() {
        return None;
    }
    Some("a name with several addresses is tried once per address, which the file does not say")
}

/// The status of a rejection unless `limit_req_status` or `limit_conn_status` says otherwise.
const REJECTED: &str = "503";
const LIMITS: [&str; 2] = ["limit_req", "limit_conn"];

/// A server that rejects what is above its limit.
struct Limiter<'a> {
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
        let is_here = |address: &&String| match local(address) {
            Some(at) => self.at.contains(&at),
            None => false,
        };
        let address = addresses.iter().find(is_here)?;
        self.rejections.iter().find_map(|rejection| {
            let condition = format!("http_{}", rejection.status);
            if conditions.contains(&&*condition) { Some((&**address, rejection.module, condition)) } else { None }
        })
    }
}

/// Returns the condition by which the rejections of a limiter are retried, and what it does.
fn retried(limiters: &[Limiter<'_>], addresses: &[String], conditions: &[&str]) -> Option<String> {
    let (address, module, condition) = limiters.iter().find_map(|limiter| limiter.retried(addresses, conditions))?;
    Some(format!(
        "`{condition}` sends again what {module} of the server at {address} rejects, until a server takes it or the \
         tries are used up"
    ))
}

/// Returns the servers of a file that have a limit.
fn limiters(found: &[Directive]) -> Vec<Limiter<'_>> {
    let mut limiters = Vec::new();
    collect(found, LIMITS.map(|module| Rejection { module, status: REJECTED }), &[], &mut limiters);
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
        match set {
            Some(set) => Rejection { status: set.first(), ..rejection },
            None => rejection,
        }
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
    if !is_local {
        return None;
    }
    Some(if address.contains(':') { port(address) } else { "80" })
}
