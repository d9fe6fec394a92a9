//! `cargo xtask sbom`: the bill of materials of the program, as cargo-cyclonedx writes it for the whole workspace.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;

use serde_json::Value;

use super::program::{PROGRAM, artifacts, target, time};
use crate::files::root;
use crate::shell::{Result, Shell};
use crate::tool;
use crate::workspace::{Workspace, text};

/// The name that the tool gives its file in each package of the workspace.
const NAME: &str = "bill-of-materials";

/// Writes the bill of materials of the program: every package that it is built from, with version, license and
/// checksum.
pub(crate) fn sbom(arguments: &[OsString]) -> Result {
    let target = target(arguments)?;
    let tool =
        tool::pinned("cyclonedx", "0.5.9", &[])?.args(["cyclonedx", "--format", "json", "--spec-version", "1.5"]);
    let tool = tool.args(["--no-build-deps", "--target", &target, "--override-filename", NAME]);
    tool.env("SOURCE_DATE_EPOCH", time()?.to_string()).run()?;
    let written = artifacts()?.join(format!("stagger-{target}.cdx.json"));
    for package in Workspace::here()?.packages {
        let found = package.directory().join(NAME).with_extension("json");
        if package.name == PROGRAM {
            let bill = without_directories(&fs::read_to_string(&found)?, &root().display().to_string());
            fs::write(&written, reduced(&bill, &sources(&target)?)?)?;
        }
        // The other packages have bills, too, which are not published.
        if found.is_file() {
            fs::remove_file(found)?;
        }
    }
    println!("{}", written.display());
    Ok(())
}

/// Returns the names and versions of all packages that the program for `target` is built from.
fn sources(target: &str) -> Result<BTreeSet<String>> {
    let tree = Shell::cargo("tree --locked --edges normal --prefix none --target").args([target, "--package", PROGRAM]);
    // "serde v1.0.229 (*)"
    let tree = tree.output()?;
    let lines = tree.lines().filter_map(|line| line.split_once(" v"));
    Ok(lines.map(|(name, rest)| format!("{name} {}", rest.split(' ').next().unwrap_or(rest))).collect())
}

/// Names the packages of the workspace independently of the machine: the tool names them by their directories in
/// `root`.
fn without_directories(bill: &str, root: &str) -> String {
    let mut shown = String::new();
    let mut rest = bill;
    while let Some((before, after)) = rest.split_once("?download_url=file://") {
        shown += before;
        // The directory, and, for a target of a package, the path of its source.
        rest = &after[after.find(['#', '"']).unwrap_or(0)..];
    }
    (shown + rest).replace(&format!("path+file://{root}/"), "workspace:")
}

/// Removes every package that is not in `packages`: the tool also lists what only other packages of the workspace
/// enable, since cargo resolves the features of all of them together.
///
/// # Errors
///
/// If a path of this machine is in the bill.
fn reduced(bill: &str, packages: &BTreeSet<String>) -> Result<String> {
    let mut bill: Value = serde_json::from_str(bill)?;
    let mut kept = BTreeSet::from([text(&bill["metadata"]["component"]["bom-ref"])]);
    if let Some(components) = bill["components"].as_array_mut() {
        components.retain(|it| packages.contains(&format!("{} {}", text(&it["name"]), text(&it["version"]))));
        kept.extend(components.iter().map(|component| text(&component["bom-ref"])));
    }
    if let Some(dependencies) = bill["dependencies"].as_array_mut() {
        dependencies.retain(|dependency| kept.contains(&text(&dependency["ref"])));
        for others in dependencies.iter_mut().filter_map(|dependency| dependency["dependsOn"].as_array_mut()) {
            others.retain(|other| kept.contains(&text(other)));
        }
    }
    let bill = serde_json::to_string_pretty(&bill)? + "\n";
    if let Some(line) = bill.lines().find(|line| line.contains("file://")) {
        return Err(format!("the bill of materials names a directory of this machine: {}", line.trim()).into());
    }
    Ok(bill)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::list;

    /// What the tool wrote for this workspace, reduced to five packages. The program is built without `anyhow`, which
    /// another package of the workspace enables.
    const RECORDED: &str = include_str!("recorded-bill.json");

    fn published_bill() -> Value {
        let packages = ["stagger-cli 0.1.0", "stagger 0.1.0", "stagger-core 0.1.0", "tokio 1.54.1"];
        let bill = without_directories(RECORDED, "/home/user/stagger");
        serde_json::from_str(&reduced(&bill, &packages.map(str::to_owned).into()).unwrap()).unwrap()
    }

    fn references<'a>(bill: &'a Value, key: &str) -> BTreeSet<&'a str> {
        list(&bill["dependencies"])
            .flat_map(|entry| match &entry[key] {
                Value::String(reference) => vec![reference.as_str()],
                several => list(several).filter_map(Value::as_str).collect(),
            })
            .collect()
    }

    #[test]
    fn no_path_of_the_machine_is_in_a_bill() {
        assert!(RECORDED.contains("/home/user"));
        let bill = published_bill().to_string();
        assert!(!bill.contains("/home/user") && !bill.contains("file:"), "{bill}");
    }

    #[test]
    fn packages_of_the_workspace_have_package_urls_without_a_place() {
        let bill = published_bill();
        let program = &bill["metadata"]["component"];
        assert_eq!(program["purl"], "pkg:cargo/stagger-cli@0.1.0");
        assert_eq!(program["components"][0]["purl"], "pkg:cargo/stagger-cli@0.1.0#src/main.rs");
        let library = list(&bill["components"]).find(|component| component["name"] == "stagger").unwrap();
        assert_eq!(library["purl"], "pkg:cargo/stagger@0.1.0");
    }

    #[test]
    fn every_reference_of_a_bill_names_one_component() {
        let bill = published_bill();
        let mut defined = vec![text(&bill["metadata"]["component"]["bom-ref"])];
        defined.extend(list(&bill["components"]).map(|component| text(&component["bom-ref"])));
        let unique: BTreeSet<_> = defined.iter().map(String::as_str).collect();
        assert_eq!(unique.len(), defined.len());
        assert_eq!(references(&bill, "ref"), unique);
        let used = references(&bill, "dependsOn");
        assert!(used.is_subset(&unique) && used.iter().any(|used| used.contains("stagger-core")), "{used:?}");
    }

    #[test]
    fn a_package_that_only_others_of_the_workspace_need_is_not_in_the_bill() {
        assert!(RECORDED.contains("anyhow"));
        assert!(!published_bill().to_string().contains("anyhow"));
    }

    #[test]
    fn a_path_that_is_not_recognized_is_an_error() {
        let unknown = r#"{"metadata": {"component": {"purl": "pkg:cargo/a@1.0.0?vcs_url=file:///home/user/a"}}}"#;
        assert!(reduced(&without_directories(unknown, "/home/user"), &BTreeSet::new()).is_err());
    }
}
