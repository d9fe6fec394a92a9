//! The statements of the README that no doc test checks, and the places that ARCHITECTURE.md names.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use stagger::profile::Profile;

const README: &str = include_str!("../../../../README.md");
const ARCHITECTURE: &str = include_str!("../../../../ARCHITECTURE.md");

/// Returns the profiles of the registry that describe another system.
fn of_other_systems() -> usize {
    Profile::all().filter(|profile| !profile.title().starts_with("stagger,")).count()
}

#[test]
fn the_readme_counts_the_profiles() {
    let (all, others) = (Profile::all().count(), of_other_systems());
    let want = format!("There are {all} named policies. {others} reproduce other systems");
    assert!(README.contains(&want), "the README does not say {want:?}");
}

#[test]
fn the_readme_can_be_read_in_two_minutes() {
    let lines = README.lines().count();
    assert!(lines <= 130, "the README has {lines} lines; keep it at 130 or fewer");
}

/// Lines that begin with `# ` in Rust code are hidden by rustdoc, but not by a forge.
#[test]
fn no_page_has_code_that_only_rustdoc_hides() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut pages = vec![format!("{root}/README.md")];
    for directory in ["docs", "docs/guide"] {
        let entries = fs::read_dir(format!("{root}/{directory}")).unwrap();
        pages.extend(
            entries.map(|entry| entry.unwrap().path().display().to_string()).filter(|path| path.ends_with(".md")),
        );
    }
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let mut is_rust = false;
        for (number, line) in text.lines().enumerate() {
            match line.strip_prefix("```") {
                Some(language) => is_rust = !is_rust && language.starts_with("rust"),
                None => assert!(!(is_rust && (line == "#" || line.starts_with("# "))), "{page}:{}: {line}", number + 1),
            }
        }
    }
}

/// The published libraries; the programs have no features to choose.
const LIBRARIES: [&str; 10] = [
    "crates/stagger",
    "crates/stagger-core",
    "crates/stagger-http",
    "crates/stagger-ws",
    "crates/stagger-db",
    "fleet/stagger-lease",
    "fleet/stagger-redis",
    "crates/stagger-cenkalti",
    "crates/stagger-sim",
    "lab/stagger-lint",
];

/// Returns the features of a crate, and whether each is on by default.
fn features(path: &str) -> Vec<(String, bool)> {
    let manifest = format!("{}/../../{path}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
    let manifest: toml::Table = fs::read_to_string(manifest).unwrap().parse().unwrap();
    let features = manifest["features"].as_table().unwrap();
    let default = features.get("default").map(|on| on.as_array().unwrap().clone()).unwrap_or_default();
    let is_default = |feature: &str| default.iter().any(|on| on.as_str() == Some(feature));
    features.keys().filter(|&feature| feature != "default").map(|name| (name.clone(), is_default(name))).collect()
}

#[test]
fn the_table_of_features_is_that_of_the_manifests() {
    const PAGE: &str = include_str!("../../../../docs/reference/features.md");
    let table = PAGE.split("## Features").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut listed: Vec<(String, String, bool)> = Vec::new();
    let mut library = "";
    for row in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| crate")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        library = if cells[1].is_empty() { library } else { cells[1].trim_matches('`') };
        for feature in cells[2].split(", ") {
            listed.push((library.into(), feature.trim_matches(['*', '`']).into(), feature.starts_with("**")));
        }
    }
    let mut want: Vec<(String, String, bool)> = LIBRARIES
        .into_iter()
        .flat_map(|path| {
            let (_, library) = path.split_once('/').unwrap();
            features(path).into_iter().map(move |(feature, on)| (library.into(), feature, on))
        })
        .collect();
    listed.sort();
    want.sort();
    assert_eq!(listed, want);
}

/// Returns the code spans of the page that are paths inside a crate.
fn paths() -> impl Iterator<Item = &'static str> {
    ARCHITECTURE.split('`').skip(1).step_by(2).filter(|span| span.starts_with("stagger") && span.contains('/'))
}

#[test]
fn every_path_in_the_architecture_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let houses = ["crates", "fleet", "lab", "program"].map(|house| root.join(house));
    let missing: Vec<_> = paths().filter(|path| !houses.iter().any(|house| house.join(path).exists())).collect();
    assert!(paths().count() > 5 && missing.is_empty(), "missing: {missing:?}");
}

const START: &str = include_str!("../../../../docs/guide/start.md");

/// Returns the dependencies of a program that follows the page's `cargo add` lines, with the stagger of this workspace.
fn dependencies(page: &str) -> String {
    let added = page.lines().filter_map(|line| line.strip_prefix("cargo add "));
    let lines = added.map(|line| {
        let words: Vec<&str> = line.split('#').next().unwrap().split_whitespace().collect();
        let features: Vec<_> = match words.iter().position(|word| *word == "--features") {
            Some(at) => words[at + 1].split(',').collect(),
            None => Vec::new(),
        };
        let place = match words[0] {
            "stagger" => format!("path = {:?}", concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/stagger")),
            _ => "version = \"*\"".to_owned(),
        };
        format!("{} = {{ {place}, features = {features:?} }}\n", words[0])
    });
    lines.collect()
}

/// A reader has no more than the page says. The doc tests do not find this out: they have the features of this package.
#[test]
fn code_compiles_with_the_dependencies_that_its_page_names() {
    for (name, page) in [("readme", README), ("start", START)] {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page-code").join(name);
        let programs = directory.join("src/bin");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&programs).unwrap();
        let dependencies = dependencies(page);
        assert!(dependencies.contains("stagger") && dependencies.contains("tokio"), "{dependencies}");
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[dependencies]\n{dependencies}[workspace]\n"
        );
        fs::write(directory.join("Cargo.toml"), manifest).unwrap();
        // The versions that are at hand.
        fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"), directory.join("Cargo.lock")).unwrap();
        let blocks = page.split("```rust\n").skip(1).map(|rest| rest.split("\n```").next().unwrap());
        let mut count = 0;
        for block in blocks {
            count += 1;
            let main = if block.contains("fn main()") { "" } else { "\nfn main() {}\n" };
            fs::write(programs.join(format!("block{count}.rs")), format!("{block}\n{main}")).unwrap();
        }
        assert!(count >= 1, "{name}: {count} blocks");
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page-code/target");
        let mut check = Command::new(cargo);
        check.args(["check", "--offline", "--quiet"]).current_dir(&directory).env("CARGO_TARGET_DIR", target);
        let checked = check.env_remove("RUSTFLAGS").output().unwrap();
        assert!(checked.status.success(), "{name}: {}", String::from_utf8_lossy(&checked.stderr));
    }
}
