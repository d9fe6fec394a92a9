//! The statements of the README that no doc test checks.

use stagger::profile::Profile;

const README: &str = include_str!("../../../../README.md");

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
    assert!(lines <= 170, "the README has {lines} lines; keep it at 170 or fewer");
}

/// Lines that begin with `# ` in Rust code are hidden by rustdoc, but not by a forge.
#[test]
fn no_page_has_code_that_only_rustdoc_hides() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut pages = vec![format!("{root}/README.md")];
    for directory in ["docs", "docs/guide"] {
        let entries = std::fs::read_dir(format!("{root}/{directory}")).unwrap();
        pages.extend(
            entries.map(|entry| entry.unwrap().path().display().to_string()).filter(|path| path.ends_with(".md")),
        );
    }
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let mut is_rust = false;
        for (number, line) in text.lines().enumerate() {
            match line.strip_prefix("```") {
                Some(language) => is_rust = !is_rust && language.starts_with("rust"),
                None => assert!(!(is_rust && (line == "#" || line.starts_with("# "))), "{page}:{}: {line}", number + 1),
            }
        }
    }
}
