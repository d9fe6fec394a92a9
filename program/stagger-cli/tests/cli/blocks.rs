//! Every `sh` block of the README, the book and the crates' front pages does what it says: it is run here, in a
//! directory with what it names; or it is a command of cargo whose package, example and tests exist; or the source of
//! the page says why it is not run.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, thread};

use crate::guide::{Block, blocks, write_files};
use crate::markdown::{self, PROJECT};
use crate::origin::{Answer, Origin};
use crate::store::Redis;
use crate::support::{Files, Seen, ignore_no_signal, see, unpacked};

/// The page whose blocks have a test each, in `recipes`.
const RECIPES: &str = "recipes.md";

/// Above a block that is not run.
const NOT_RUN: &str = "<!-- not run: ";

/// Programs of the reader, which succeed here.
const PROGRAMS: [&str; 7] = ["migrate.sh", "pg_isready", "python", "server", "ssh", "sync-orders", "systemctl"];

/// Runs stagger and notes its exit status.
const STAGGER: &str =
    "#!/bin/sh\n\"$STAGGER_PROGRAM\" \"$@\"\ncode=$?\necho \"$code $*\" >> \"$EXIT_CODES\"\nexit $code\n";

/// Exit codes of a wrong command line, and of a failure of stagger itself.
const WRONG: [&str; 2] = ["2", "125"];

/// The servers that the blocks ask, on this machine.
struct Servers {
    web: Origin,
    redis: Redis,
}

#[test]
fn every_block_of_a_shell_is_run_or_says_why_not() {
    needs!("redis-cli", "redis-server", "curl");
    let servers = Servers { web: Origin::start(&[Answer::Body("{\"ready\": true}\n")]), redis: Redis::start() };
    let (mut of_cargo, mut to_run) = (Vec::new(), Vec::new());
    for path in front_pages() {
        let page = fs::read_to_string(&path).expect("the page is read");
        for block in blocks(&page).iter().filter(|block| block.language == "sh") {
            let place = format!("{}: {}", path.display(), block.text.lines().next().unwrap_or_default());
            if reason(block).is_some() {
                continue;
            } else if block.text.lines().all(is_of_cargo) {
                of_cargo.push((place, block.text.to_owned()));
            } else if !path.ends_with(RECIPES) {
                to_run.push((place, page.clone(), block.text.to_owned()));
            }
        }
    }
    let mut wrong: Vec<String> =
        of_cargo.iter().filter_map(|(place, text)| Some(format!("{place}: {}", missing(text)?))).collect();
    let servers = &servers;
    thread::scope(|scope| {
        let running: Vec<_> = to_run
            .iter()
            .map(|(place, page, text)| {
                let run = move || Some(format!("{place}: {}", failure(page, text, servers)?));
                thread::Builder::new().name(place.clone()).spawn_scoped(scope, run).expect("a thread")
            })
            .collect();
        wrong.extend(running.into_iter().filter_map(|thread| thread.join().expect("no thread panics")));
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(to_run.len() > 10 && of_cargo.len() > 5, "{} run, {} of cargo", to_run.len(), of_cargo.len());
}

/// Returns the pages of the book and those at the front of the project and its crates.
pub(crate) fn front_pages() -> Vec<PathBuf> {
    let mut pages = markdown::pages();
    pages.push(Path::new(PROJECT).join("CONTRIBUTING.md"));
    for house in ["crates", "fleet", "lab", "program", "clients"] {
        let crates = fs::read_dir(Path::new(PROJECT).join(house)).expect("the directory is read");
        pages.extend(crates.map(|entry| entry.expect("the entry is read").path().join("README.md")));
    }
    pages.retain(|page| page.is_file());
    pages
}

pub(crate) fn reason<'a>(block: &Block<'a>) -> Option<&'a str> {
    let line = block.before.trim_end().lines().next_back()?;
    line.strip_prefix(NOT_RUN)?.strip_suffix(" -->")
}

fn is_of_cargo(line: &str) -> bool {
    let mut words = line.split_whitespace().skip_while(|word| word.contains('='));
    words.next() == Some("cargo")
}

/// Runs a block, and returns what is wrong with it.
fn failure(page: &str, text: &str, servers: &Servers) -> Option<String> {
    let files = Files::new();
    write_files(page, &files);
    symlink(format!("{PROJECT}/examples"), files.path("examples")).expect("a link");
    files.write("hosts", "one\ntwo\n");
    files.write("envoy.json", "{\"route\": {\"retry_policy\": {\"retry_on\": \"5xx\", \"num_retries\": 2}}}\n");
    files.write("policy.toml", "base = \"100ms\"\nmax-attempts = 3\n");
    for directory in ["bin", "k8s", "deploy"] {
        fs::create_dir(files.path(directory)).expect("a directory");
    }
    for directory in ["k8s", "deploy"] {
        files.write(&format!("{directory}/vs.yaml"), fs::read(files.path("virtualservice.yaml")).unwrap_or_default());
    }
    program(&files, "stagger", STAGGER);
    program(&files, "kubectl", "#!/bin/sh\nexec cat virtualservice.yaml\n");
    let client = format!("#!/bin/sh\nexec {} -u {} \"$@\"\n", unpacked("redis-cli").display(), servers.redis.url(""));
    program(&files, "redis-cli", &client);
    for name in PROGRAMS {
        program(&files, name, "#!/bin/sh\n");
        symlink(files.path(&format!("bin/{name}")), files.path(name)).expect("a link");
    }
    let address = servers.web.url();
    let port = address.trim_start_matches("http://").trim_end_matches('/');
    let mut script = text.to_owned();
    let places = [
        ("https://api.example/health", address.as_str()),
        ("https://api.github.com/rate_limit", &address),
        ("https://example.com/health", &address),
        ("db:5432", port),
        ("cache:6379", port),
        ("redis://redis.internal/", &servers.redis.url("")),
        ("/etc/orders/", ""),
    ];
    for (from, to) in places {
        script = script.replace(from, to);
    }
    ignore_no_signal();
    let path = env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(files.path(".")).stdin(Stdio::null());
    command.env("PATH", format!("{}:{path}", files.path("bin").display()));
    command.env("STAGGER_PROGRAM", env!("CARGO_BIN_EXE_stagger")).env("EXIT_CODES", files.path("codes"));
    command.env("STAGGER_ADVICE", files.path("advice")).env("url", &address).env("TMPDIR", files.path("."));
    let seen = see(&mut command);
    let codes = fs::read_to_string(files.path("codes")).unwrap_or_default();
    is_wrong(text, &seen, &codes).then(|| format!("{codes}{seen:#?}"))
}

/// Returns whether a command was not found or failed, or one of stagger did not run or was wrong.
fn is_wrong(text: &str, seen: &Seen, codes: &str) -> bool {
    let commands = text.lines().filter(|line| line.starts_with("stagger ")).count();
    let codes: Vec<_> = codes.lines().filter_map(|line| Some(line.split_once(' ')?.0)).collect();
    let status = seen.status.code().map(|code| code.to_string()).unwrap_or_default();
    // Stagger passes on the status of its command, and reports findings.
    let is_expected = status == "0" || codes.last().is_some_and(|last| *last == status);
    !is_expected
        || seen.stderr.contains("not found")
        || codes.len() < commands
        || codes.iter().any(|code| WRONG.contains(code))
}

fn program(files: &Files, name: &str, text: &str) {
    let path = files.write(&format!("bin/{name}"), text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be run");
}

/// Returns what a command of cargo names that is not there: a package, an example, a test, or a task.
fn missing(text: &str) -> Option<String> {
    let packages = packages();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace().skip_while(|word| word.contains('=') || *word == "cargo");
        let command = words.next().unwrap_or_default();
        let rest: Vec<_> = words.take_while(|word| *word != "--").collect();
        let after =
            |flag: &str| -> Vec<&str> { rest.windows(2).filter(|pair| pair[0] == flag).map(|pair| pair[1]).collect() };
        let named = after("-p");
        if let Some(name) = named.iter().find(|name| !packages.contains_key(**name)) {
            return Some(format!("no package {name}"));
        }
        let places = || named.iter().filter_map(|name| packages.get(*name));
        if let Some(name) = after("--example").first()
            && !places().any(|place| place.join(format!("examples/{name}.rs")).is_file())
        {
            return Some(format!("no example {name}"));
        }
        let is_known = match command {
            // Packages and examples are looked up above; what is added is compiled with the code of its page.
            "add" | "drill" | "run" => true,
            "install" => after("--path").iter().all(|path| Path::new(PROJECT).join(path).is_dir()),
            "xtask" => fs::read_to_string(format!("{PROJECT}/dev/xtask/src/main.rs"))
                .is_ok_and(|main| main.contains(&format!("\"{}\"", rest[0]))),
            "test" | "nextest" => {
                filters(&rest).into_iter().all(|filter| places().any(|place| contains(place, filter)))
            }
            _ => false,
        };
        if !is_known {
            return Some(format!("cargo {command}: {line}"));
        }
    }
    None
}

/// Returns the words of a command that runs tests which are parts of their names.
fn filters<'a>(words: &[&'a str]) -> Vec<&'a str> {
    const WITH_A_VALUE: [&str; 5] = ["-p", "--test", "--features", "--run-ignored", "-E"];
    let mut filters = Vec::new();
    let mut words = words.iter().filter(|word| **word != "run");
    while let Some(word) = words.next() {
        if WITH_A_VALUE.contains(word) {
            words.next();
        } else if !word.starts_with('-') {
            filters.push(*word);
        }
    }
    filters
}

/// Returns whether a name is part of one in a file of this directory, or of the name of a file.
fn contains(directory: &Path, name: &str) -> bool {
    fs::read_dir(directory).into_iter().flatten().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return contains(&path, name);
        }
        path.extension().is_some_and(|extension| extension == "rs")
            && (path.file_stem().is_some_and(|stem| stem.to_string_lossy().contains(name))
                || fs::read_to_string(&path).is_ok_and(|text| text.contains(name)))
    })
}

/// Returns the packages of the workspace with their directories.
fn packages() -> BTreeMap<String, PathBuf> {
    let houses = ["crates", "fleet", "lab", "program", "dev"].map(|house| Path::new(PROJECT).join(house));
    let places = houses.iter().flat_map(|house| fs::read_dir(house).expect("the directory is read"));
    let places = places.map(|entry| entry.expect("the entry is read").path());
    let named = places.filter_map(|place| {
        let manifest = fs::read_to_string(place.join("Cargo.toml")).ok()?;
        let line = manifest.lines().find_map(|line| line.strip_prefix("name = \""))?;
        Some((line.trim_end_matches('"').to_owned(), place))
    });
    named.collect()
}
