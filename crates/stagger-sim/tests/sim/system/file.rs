//! Systems as TOML files: what is read, what is rejected, and the schema.

use std::fs;

use serde_json::Value;
use stagger_core::{Seed, policy};
use stagger_sim::system::{
    Cache, CallOrder, Edge, NestedCalls, Service, StaleWork, System, SystemFile, SystemFileError, Trigger, Unit,
};

use super::one_server::budgeted;

/// Every key once, with a value that is not its default.
const EVERYTHING: &str = r#"
horizon = "90s"
[users]
rate = "60/s"
arrivals = "fixed"
[tier.gateway]
workers = 2
service = "3ms"
service-times = "exponential"
backlog = 150
stale = "hopeless"
waits = true
instances = 4
[tier.alpha]
service = 0.002
service-cv = 0.5
backlog = "none"
[tier.database]
service = "2ms"
backlog = 1500
stale = "expired"
[[edge]]
from = "users"
to = "gateway"
processes = 7
one-way = "1ms..9ms"
timeout = "900ms"
policy = { backoff = "constant", base = "10ms", max-attempts = 3 }
budget = { tokens = 10, refund = 0.1 }
cache = { hot = "20%", keys = 50, late-answers = "fill" }
[[edge]]
from = "gateway"
to = "alpha"
calls = 2
order = "parallel"
policy = "zero max-attempts=2"
nested = "stand-down"
refusals = "permanent"
[[edge]]
from = "alpha"
to = "database"
one-way = "2ms"
policy = "aws-sdk"
nested = "first-only"
deadline = "own"
[[trigger]]
kind = "stall"
on = "alpha"
at = "10s"
for = "2s"
[[trigger]]
kind = "share"
share = 0.5
[[trigger]]
kind = "reject"
[[trigger]]
kind = "error"
share = "30%"
[[trigger]]
kind = "workers"
workers = 1
on = "gateway"
[[trigger]]
kind = "slow"
factor = 2
counted = "arrival"
[[trigger]]
kind = "slow"
factor = 1.5
counted = "start"
[[trigger]]
kind = "spike"
factor = 2
[[trigger]]
kind = "cold"
"#;

/// The same system, built by hand.
fn everything() -> System {
    let ms = core::time::Duration::from_millis;
    let seconds = core::time::Duration::from_secs;
    System::builder(60.0)
        .arrivals(stagger_sim::system::Arrivals::Fixed)
        .processes(7)
        .horizon(seconds(90))
        .service(
            Service::new("gateway")
                .workers(2)
                .service_time(ms(3))
                .service_times(stagger_sim::system::ServiceTimes::Exponential)
                .backlog(150)
                .stale_work(StaleWork::DropHopeless)
                .hold_workers()
                .instances(4),
        )
        .service(Service::new("alpha").service_time(ms(2)).service_cv(0.5).backlog(Service::MAX_BACKLOG))
        .service(Service::new("database").service_time(ms(2)).backlog(1_500).stale_work(StaleWork::DropExpired))
        .edge(budgeted(
            Edge::from_users("gateway")
                .one_way_between(ms(1), ms(9))
                .timeout(ms(900))
                .policy(policy!(constant(ms(10)).max_attempts(3)))
                .cache(Cache::new(0.2, 50).fill_from_late_answers()),
        ))
        .edge(
            Edge::between("gateway", "alpha")
                .calls(2)
                .order(CallOrder::Parallel)
                .policy(policy!(zero().max_attempts(2)))
                .nested(NestedCalls::StandDown)
                .refusals(stagger_sim::system::Refusals::Permanent),
        )
        .edge(
            Edge::between("alpha", "database")
                .one_way(ms(2))
                .policy("aws-sdk".parse().unwrap())
                .nested(NestedCalls::FirstOnly)
                .keep_deadline(),
        )
        .trigger(Trigger::stall().on("alpha").at(seconds(10)).lasting(seconds(2)))
        .trigger(Trigger::share(0.5))
        .trigger(Trigger::reject())
        .trigger(Trigger::error(0.3))
        .trigger(Trigger::workers(1).on("gateway"))
        .trigger(Trigger::slow_from_arrival(2.0))
        .trigger(Trigger::slow_from_start(1.5))
        .trigger(Trigger::spike(2.0))
        .trigger(Trigger::cold())
        .build()
        .unwrap()
}

/// Returns a small file with a line in place of another.
fn with_line(old: &str, new: &str) -> String {
    const SMALL: &str = "[users]\nrate = \"50/s\"\n[tier.database]\nservice = \"2ms\"\nbacklog = 1500\n[[edge]]\n\
                         from = \"users\"\nto = \"database\"\npolicy = \"zero max-attempts=3\"\n\
                         [[trigger]]\nkind = \"stall\"\n";
    assert!(SMALL.contains(old), "{old}");
    SMALL.replacen(old, new, 1)
}

fn problems(text: &str) -> Vec<String> {
    let error = SystemFile::parse(text).expect_err(text);
    error.problems().iter().map(ToString::to_string).collect()
}

#[test]
fn a_file_gives_the_figures_of_the_same_system_built_by_hand() {
    let read = System::from_toml(EVERYTHING).unwrap();
    let by_hand = everything();
    for seed in [1, 2] {
        assert_eq!(read.run(Seed::new(seed)), by_hand.run(Seed::new(seed)));
    }
}

#[test]
fn the_order_of_tiers_is_that_of_the_file() {
    let system = System::from_toml(EVERYTHING).unwrap();
    let names: Vec<_> = system.services().iter().map(Service::name).collect();
    assert_eq!(names, ["gateway", "alpha", "database"]);
}

#[test]
fn an_error_has_line_and_column_and_a_remedy() {
    for (old, new, want) in [
        ("rate = \"50/s\"", "raet = 5", "line 2, column 1: unknown key `raet`; did you mean `rate`?"),
        ("rate = \"50/s\"", "rate = \"fast\"", "line 2, column 8: rate: invalid value `fast`; expected a rate above 0"),
        ("rate = \"50/s\"", "rate = 1e9", "line 2, column 8: rate: invalid value"),
        ("rate = \"50/s\"", "rate = \"9M/s\"", "line 1, column 2: system: the rate is not between"),
        ("rate = \"50/s\"", "", "line 1, column 2: `rate` is missing; add a line such as rate = \"50/s\""),
        ("service = \"2ms\"", "service = \"2 fortnights\"", "line 4, column 11: service: "),
        (
            "service = \"2ms\"",
            "service = \"inf\"",
            "line 4, column 11: service: \"inf\" is not finite; expected a length",
        ),
        ("service = \"2ms\"", "service = \"0s\"", "line 3, column 7: database: the service time is 0 or above an hour"),
        (
            "service = \"2ms\"",
            "stale = \"drop\"",
            "line 4, column 9: stale: unknown value \"drop\"; expected one of \"done\", \"expired\"",
        ),
        ("service = \"2ms\"", "workers = 2.5", "line 4, column 11: workers: "),
        ("service = \"2ms\"", "workers = [1]", "line 4, column 11: `workers` is neither a text nor a number"),
        ("backlog = 1500", "backlog = 0", "line 3, column 7: database: the backlog is not between"),
        (
            "to = \"database\"",
            "to = \"databse\"",
            "line 6, column 1: unknown service `databse`; expected one of: database",
        ),
        ("to = \"database\"", "", "line 6, column 1: `to` is missing; add a line such as to = \"database\""),
        ("policy = \"zero max-attempts=3\"", "policy = \"zeroo\"", "line 9, column 10: policy: "),
        (
            "policy = \"zero max-attempts=3\"",
            "policy = { backoff = \"zero\", max-attempts = 0 }",
            "line 9, column 10: policy: ",
        ),
        (
            "policy = \"zero max-attempts=3\"",
            "policy = { backoff = \"zero\", atempts = 2 }",
            "line 9, column 30: policy: ",
        ),
        (
            "policy = \"zero max-attempts=3\"",
            "policy = \"@policy.toml\"",
            "line 9, column 10: policy: @policy.toml is a file, and",
        ),
        (
            "policy = \"zero max-attempts=3\"",
            "budget = { token = 3 }",
            "line 9, column 12: unknown key `token`; did you mean `tokens`?",
        ),
        ("policy = \"zero max-attempts=3\"", "budget = { tokens = 0 }", "line 9, column 1: budget: "),
        (
            "policy = \"zero max-attempts=3\"",
            "cache = { hot = 2 }",
            "line 9, column 17: hot: \"2\" is not a share from 0 to 1",
        ),
        (
            "policy = \"zero max-attempts=3\"",
            "one-way = \"9ms..1ms\"",
            "line 6, column 1: edge to database: the one-way delay",
        ),
        (
            "kind = \"stall\"",
            "kind = \"stal\"",
            "line 11, column 8: kind: unknown value \"stal\"; expected one of \"stall\", \"share\"",
        ),
        (
            "kind = \"stall\"",
            "on = \"database\"",
            "line 10, column 1: `kind` is missing; add a line such as kind = \"stall\"",
        ),
        ("kind = \"stall\"", "kind = \"slow\"\nfactor = 2", "line 10, column 1: `counted` is missing"),
        (
            "kind = \"stall\"",
            "kind = \"stall\"\nfactor = 2",
            "line 12, column 1: unknown key `factor`; expected one of kind, at, for, on",
        ),
        (
            "kind = \"stall\"",
            "kind = \"stall\"\nfor = \"76h\"",
            "line 10, column 1: trigger 1: it does not end before the horizon",
        ),
        ("kind = \"stall\"", "kind = \"stall", "line 11, column "),
    ] {
        let found = problems(&with_line(old, new));
        assert!(found.iter().any(|one| one.starts_with(want)), "{new}: {found:?}\nexpected {want}");
    }
}

#[test]
fn all_problems_are_reported_in_the_order_of_the_file() {
    let found = problems("horizon = 'x'\n[users]\n[tier.a]\nbacklog = 'x'\n[[edge]]\n[[trigger]]\nkind = 'x'\n");
    let lines: Vec<_> = found.iter().map(|problem| problem.split(',').next().unwrap()).collect();
    assert_eq!(lines, ["line 1", "line 2", "line 4", "line 5", "line 5", "line 7"], "{found:#?}");
}

#[test]
fn a_policy_file_is_found_beside_the_file_of_the_system() {
    let directory = std::env::temp_dir().join(format!("stagger-system-file-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join("system.toml");
    fs::write(&path, with_line("zero max-attempts=3", "@retry.policy")).unwrap();
    let missing = System::from_file(&path).unwrap_err().to_string();
    assert!(missing.contains("system.toml, line 9, column 10: policy: cannot read "), "{missing}");
    let mut figures = Vec::new();
    for text in [
        "zero max-attempts=2\n",
        "backoff = 'zero'\nmax-attempts = 2\n",
        "# once more\nbackoff = 'zero'\nmax-attempts = 2\n",
    ] {
        fs::write(directory.join("retry.policy"), text).unwrap();
        figures.push(System::from_file(&path).unwrap().run(Seed::new(1)));
    }
    assert_eq!(figures[0], System::from_toml(&with_line("attempts=3", "attempts=2")).unwrap().run(Seed::new(1)));
    assert!(figures.iter().all(|one| *one == figures[0]));
    fs::write(directory.join("retry.policy"), "x".repeat(70_000)).unwrap();
    let long = System::from_file(&path).unwrap_err().to_string();
    assert!(long.contains("retry.policy is longer than 65536 bytes"), "{long}");
    fs::remove_dir_all(&directory).unwrap();
    let gone: SystemFileError = System::from_file(&path).unwrap_err();
    assert!(gone.io().is_some() && gone.to_string().starts_with("cannot read "), "{gone}");
}

/// The file of a system may come from anybody, such as the author of a pull request.
#[test]
fn a_system_names_no_file_outside_of_its_directory_and_nothing_without_an_end() {
    let outside = std::env::temp_dir().join(format!("stagger-outside-{}", std::process::id()));
    let directory = outside.join("system");
    fs::create_dir_all(directory.join("policies")).unwrap();
    let path = directory.join("system.toml");
    for file in [outside.join("other.policy"), directory.join("policies/mine.policy")] {
        fs::write(file, "zero max-attempts=2\n").unwrap();
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../other.policy", directory.join("link.policy")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", directory.join("zero.policy")).unwrap();
    }
    let error = |name: &str| {
        fs::write(&path, with_line("zero max-attempts=3", &format!("@{name}"))).unwrap();
        System::from_file(&path).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!([error("policies/mine.policy"), error("./policies/mine.policy")], [Ok(()), Ok(())]);
    let outside_by_name = outside.join("other.policy").display().to_string();
    for name in ["../other.policy", &outside_by_name, "/dev/zero", "policies/../../other.policy"] {
        assert!(error(name).unwrap_err().contains("is not in the directory of the system"), "{name}");
    }
    #[cfg(unix)]
    for name in ["link.policy", "zero.policy"] {
        assert!(error(name).unwrap_err().contains("leads out of the directory of the system"), "{name}");
    }
    assert!(error("policies").unwrap_err().contains("policies is not a file"), "{:?}", error("policies"));
    fs::remove_dir_all(&outside).unwrap();
}

#[test]
fn every_number_can_be_changed_by_its_path() {
    let file = SystemFile::parse(EVERYTHING).unwrap();
    let paths: Vec<_> = file.numbers().iter().map(|number| &*number.path).collect();
    for path in
        ["users.rate", "horizon", "tier.alpha.service", "edge.gateway-alpha.policy.max-attempts", "trigger.5.workers"]
    {
        assert!(paths.contains(&path), "{path}: {paths:?}");
    }
    for number in file.numbers() {
        let value = match number.unit {
            Unit::Share => 0.25,
            _ if number.path == "horizon" => 95.0,
            // A cap may not be below its base.
            _ if number.path.ends_with("base") => number.value,
            _ => number.value + 1.0,
        };
        let text = number.unit.text(value);
        let changed = file.with(&number.path, &text).unwrap_or_else(|error| panic!("{number}: {error}"));
        let got = changed.numbers().iter().find(|other| other.path == number.path).unwrap().value;
        assert!((got - value).abs() < 1e-6, "{number}: {got}, expected {value}");
        assert_eq!(number.unit.parse(&text).map(|value| (value * 1e6).round()), Ok((value * 1e6).round()), "{text}");
    }
}

#[test]
fn a_name_stands_for_all_numbers_that_end_with_it() {
    let file = SystemFile::parse(EVERYTHING).unwrap();
    let found = |name| file.find(name).map(|found| found.len());
    assert_eq!([found("attempts"), found("users.rate"), found("budget"), found("for")], [Ok(3), Ok(1), Ok(1), Ok(8)]);
    assert_eq!([found("length"), found("size")], [Ok(8), Ok(6)]);
    let no_size = SystemFile::parse(with_line("50/s", "40/s")).unwrap();
    assert!(no_size.find("size").unwrap_err().starts_with("no trigger of the file has a size; use"));
    let error = file.find("tiemout").unwrap_err();
    assert!(error.contains("did you mean `timeout`?"), "{error}");
    let error = file.with("users.rat", "5/s").unwrap_err().to_string();
    assert!(error.contains("the file has no number `users.rat`; did you mean `users.rate`?"), "{error}");
    let all = file.find("max-attempts").unwrap().into_iter().map(|number| (&*number.path, "1"));
    let once = file.with_all(all).unwrap();
    assert!(once.find("max-attempts").unwrap().iter().all(|number| (number.value - 1.0).abs() < 1e-9));
}

#[test]
fn a_file_is_bounded_and_never_panics() {
    for text in [
        "",
        "=",
        "[",
        "[[edge]]\n[edge]",
        "users = 5",
        "tier = [1]",
        "edge = 5",
        "edge = [5]",
        "tier.a = 5\ntier.b = {}",
        "\u{0}",
    ] {
        assert!(!problems(text).is_empty(), "{text:?}");
    }
    let nested = format!("a = {}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(problems(&nested)[0].contains("this is not TOML"));
}

/// Returns what is wrong with a value, as far as the published schema has keywords.
fn violations(schema: &Value, value: &Value, root: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let target = root.pointer(name.strip_prefix('#').unwrap()).unwrap();
        return violations(target, value, root, at, found);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = any.iter().any(|one| {
            let mut own = Vec::new();
            violations(one, value, root, at, &mut own);
            own.is_empty()
        });
        if !fits {
            found.push(format!("{at}: none of the alternatives"));
        }
    }
    let is_type = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("{other}"),
    };
    if schema["type"].as_str().is_some_and(|name| !is_type(name)) {
        found.push(format!("{at}: not of type {}", schema["type"]));
    }
    if schema["enum"].as_array().is_some_and(|values| !values.contains(value)) {
        found.push(format!("{at}: {value} is not one of {}", schema["enum"]));
    }
    let number = value.as_f64();
    if number.zip(schema["minimum"].as_f64()).is_some_and(|(value, least)| value < least)
        || number.zip(schema["maximum"].as_f64()).is_some_and(|(value, most)| value > most)
        || number.zip(schema["exclusiveMinimum"].as_f64()).is_some_and(|(value, least)| value <= least)
    {
        found.push(format!("{at}: {value} is out of range"));
    }
    for (key, own) in value.as_object().into_iter().flatten() {
        match (schema["properties"].get(key), &schema["additionalProperties"]) {
            (Some(of), _) => violations(of, own, root, &format!("{at}.{key}"), found),
            (None, Value::Bool(false)) => found.push(format!("{at}: unknown key {key}")),
            (None, of) if of.is_object() => violations(of, own, root, &format!("{at}.{key}"), found),
            _ => {}
        }
    }
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.is_object() && value.get(key).is_none() {
            found.push(format!("{at}: {key} is missing"));
        }
    }
    for (nth, own) in value.as_array().into_iter().flatten().enumerate() {
        if schema["items"].is_object() {
            violations(&schema["items"], own, root, &format!("{at}[{nth}]"), found);
        }
    }
}

fn schema_violations(text: &str) -> Vec<String> {
    let schema: Value =
        serde_json::from_str(include_str!("../../../src/system/file/stagger.system-file-1.schema.json")).unwrap();
    let mut found = Vec::new();
    violations(&schema, &toml::from_str(text).unwrap(), &schema, "", &mut found);
    found
}

#[test]
fn the_schema_accepts_what_is_read() {
    for text in [
        EVERYTHING,
        &with_line("50/s", "30/min"),
        &with_line("rate = \"50/s\"", "rate = 50.5"),
        &with_line("\"2ms\"", "0.002"),
    ] {
        SystemFile::parse(text).unwrap();
        assert_eq!(schema_violations(text), [""; 0], "{text}");
    }
}

#[test]
fn the_schema_rejects_what_the_reader_rejects() {
    for (old, new) in [
        ("rate = \"50/s\"", "raet = 5"),
        ("rate = \"50/s\"", ""),
        ("rate = \"50/s\"", "rate = 0"),
        ("rate = \"50/s\"", "rate = \"5/s\"\narrivals = \"random\""),
        ("service = \"2ms\"", "workers = \"many\""),
        ("service = \"2ms\"", "workers = 0"),
        ("service = \"2ms\"", "waits = \"yes\""),
        ("service = \"2ms\"", "stale = \"drop\""),
        ("to = \"database\"", ""),
        ("policy = \"zero max-attempts=3\"", "budget = { token = 3 }"),
        ("policy = \"zero max-attempts=3\"", "cache = { hot = 2 }"),
        ("policy = \"zero max-attempts=3\"", "order = \"random\""),
        ("kind = \"stall\"", "kind = \"stal\""),
        ("kind = \"stall\"", "kind = \"slow\"\nfactor = 2\ncounted = \"end\""),
        ("kind = \"stall\"", "on = \"database\""),
    ] {
        let text = with_line(old, new);
        assert!(!problems(&text).is_empty() && !schema_violations(&text).is_empty(), "{new}");
    }
}

#[test]
fn every_key_of_the_schema_is_read() {
    let schema: Value =
        serde_json::from_str(include_str!("../../../src/system/file/stagger.system-file-1.schema.json")).unwrap();
    let table: Value = toml::from_str(EVERYTHING).unwrap();
    let all = |values: Vec<&Value>| -> Vec<String> {
        let mut keys: Vec<_> = values.iter().flat_map(|value| value.as_object().unwrap().keys().cloned()).collect();
        keys.sort();
        keys.dedup();
        keys
    };
    let parts = |name: &str| {
        table[name]
            .as_array()
            .map_or_else(|| table[name].as_object().unwrap().values().collect::<Vec<_>>(), |list| list.iter().collect())
    };
    for (name, read) in [
        ("tier", parts("tier")),
        ("edge", parts("edge")),
        ("trigger", parts("trigger")),
        ("users", vec![&table["users"]]),
    ] {
        let of = if name == "users" { &schema["properties"]["users"] } else { &schema["$defs"][name] };
        assert_eq!(all(read), all(vec![&of["properties"]]), "{name}");
    }
}

/// The mean of measured times is that of the lines between them: (1.5 + 5.5) / 2 ms, and a server of one worker that
/// is never idle completes as many attempts.
#[test]
fn measured_service_times_have_their_mean() {
    let measured = with_line("service = \"2ms\"", "service-times = [\"1ms\", \"2ms\", \"9ms\"]");
    let system = System::from_toml(&measured.replace("50/s", "400/s")).unwrap();
    let capacity = system.layout().services[0].capacity;
    assert!((capacity - 1e3 / 3.5).abs() < 1e-6, "{capacity}");
    let figures = system.run(Seed::new(1));
    // Idle for the ten seconds of the stall.
    let rate = figures.services[0].completed as f64 / (figures.horizon.as_secs_f64() - 10.0);
    assert!((rate / capacity - 1.0).abs() < 0.02, "{rate}");
    for (line, want) in [
        (
            "service-times = [\"2ms\", \"1ms\"]",
            "measured service times decrease; list them from the least to the longest",
        ),
        ("service-times = [\"2ms\"]", "the number of measured service times is not between 2 and 1,001"),
        ("service-times = [\"2ms\", \"x\"]", "service-times: "),
        (
            "service = \"1ms\"\nservice-times = [\"1ms\", \"2ms\"]",
            "`service` follows from the measured `service-times`",
        ),
        ("service-times = \"exponential\"\nservice-cv = 2", "both `service-cv` and `service-times` say how"),
        ("service-cv = 11", "the variation of service times is not between 0 and 10"),
    ] {
        let problems = problems(&with_line("service = \"2ms\"", line));
        assert!(problems.iter().any(|problem| problem.contains(want)), "{line}: {problems:?}");
    }
}

#[test]
fn guards_of_a_file_belong_to_each_process() {
    let file = |processes| {
        with_line("policy", &format!("processes = {processes}\nbudget = {{ tokens = 10, refund = 0.1 }}\npolicy"))
    };
    let retries = |processes| {
        let figures = System::from_toml(&file(processes)).unwrap().run(Seed::new(1));
        figures.edges[0].judged_attempts - figures.judged_requests
    };
    // A stall of 10 s costs what the buckets hold at first, and what successes put into them.
    assert!(retries(100) > retries(1) + 200, "{} {}", retries(100), retries(1));
}
