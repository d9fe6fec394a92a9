//! The bill of materials of the program, as cargo-cyclonedx writes it for the whole workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;

use serde_json::Value;

use super::program::{Program, dist, sources, time};
use crate::error::Result;
use crate::tool;
use crate::workspace::{Workspace, text};

/// Where a purl of the tool names a directory of this machine.
const DIRECTORY: &str = "?download_url=file://";

/// Names the packages of the workspace independently of the machine, and removes every package that is not in `packages`.
///
/// The tool names a package of the workspace by its directory on this machine. It also lists what only other packages of the
/// workspace enable: cargo resolves the features of all of them together.
///
/// # Errors
///
/// If a path of this machine would remain.
pub(crate) fn published(bill: &str, packages: &BTreeSet<String>) -> Result<String> {
    let mut bill: Value = serde_json::from_str(bill)?;
    let mut names = BTreeMap::new();
    rename(&mut bill["metadata"]["component"], &mut names);
    if let Some(components) = bill["components"].as_array_mut() {
        components.retain(|component| {
            packages.contains(&format!("{} {}", text(&component["name"]), text(&component["version"])))
        });
        components.iter_mut().for_each(|component| rename(component, &mut names));
    }
    if let Some(dependencies) = bill["dependencies"].as_array_mut() {
        dependencies.retain_mut(|dependency| resolve(&mut dependency["ref"], &names));
        for others in dependencies.iter_mut().filter_map(|dependency| dependency["dependsOn"].as_array_mut()) {
            others.retain_mut(|other| resolve(other, &names));
        }
    }
    let bill = serde_json::to_string_pretty(&bill)? + "\n";
    if let Some(line) = bill.lines().find(|line| line.contains("file://")) {
        return Err(format!("the bill of materials names a directory of this machine: {}", line.trim()).into());
    }
    Ok(bill)
}

/// Renames a component and those in it, and notes its new reference under the old one.
fn rename(component: &mut Value, names: &mut BTreeMap<String, Value>) {
    let (old, purl) = (text(&component["bom-ref"]), text(&component["purl"]));
    if let Some((package, rest)) = purl.split_once(DIRECTORY) {
        // The rest is the directory, and, for a target of a package, the path of its source.
        let target = rest.find('#').map_or("", |at| &rest[at..]);
        component["purl"] = format!("{package}{target}").into();
        component["bom-ref"] = component["purl"].clone();
    }
    names.insert(old, component["bom-ref"].clone());
    if let Some(parts) = component.get_mut("components").and_then(Value::as_array_mut) {
        parts.iter_mut().for_each(|part| rename(part, names));
    }
}

/// Replaces a reference by the new one; returns false if its component was removed.
fn resolve(reference: &mut Value, names: &BTreeMap<String, Value>) -> bool {
    match names.get(&text(reference)) {
        Some(name) => {
            reference.clone_from(name);
            true
        }
        None => false,
    }
}

/// The name that the tool gives its file in each package of the workspace.
const NAME: &str = "bill-of-materials";

/// Writes the bill of materials of the program: every package that it is built from, with version, license and checksum.
pub(crate) fn sbom(arguments: &[OsString]) -> Result {
    let target = Program::target(arguments)?;
    let tool =
        tool::pinned("cyclonedx", "0.5.9")?.args(["--format", "json", "--spec-version", "1.5", "--no-build-deps"]);
    let tool = tool.args(["--target", &target, "--override-filename", NAME]);
    tool.env("SOURCE_DATE_EPOCH", time()?.to_string()).run()?;
    let written = dist()?.join(format!("stagger-{target}.cdx.json"));
    for package in Workspace::here()?.packages {
        let found = package.directory().join(NAME).with_extension("json");
        if package.name == "stagger-cli" {
            fs::write(&written, published(&fs::read_to_string(&found)?, &sources(&target)?)?)?;
        }
        // The other packages have a bill of their own, which is not published.
        if found.is_file() {
            fs::remove_file(found)?;
        }
    }
    println!("{}", written.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::list;

    /// What the tool wrote for this workspace, reduced to five packages. The program is built without `anyhow`, which another
    /// package of the workspace enables.
    const RECORDED: &str = include_str!("recorded-bill.json");

    fn published_bill() -> Value {
        let packages = ["stagger-cli 0.1.0", "stagger 0.1.0", "stagger-core 0.1.0", "tokio 1.54.1"];
        serde_json::from_str(&published(RECORDED, &packages.map(str::to_owned).into()).unwrap()).unwrap()
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
    fn packages_of_the_workspace_are_named_by_their_package_urls() {
        let bill = published_bill();
        let program = &bill["metadata"]["component"];
        assert_eq!(
            (&program["bom-ref"], &program["purl"]),
            (&"pkg:cargo/stagger-cli@0.1.0".into(), &program["bom-ref"])
        );
        assert_eq!(program["components"][0]["bom-ref"], "pkg:cargo/stagger-cli@0.1.0#src/main.rs");
        let library = list(&bill["components"]).find(|component| component["name"] == "stagger").unwrap();
        assert_eq!((&library["bom-ref"], &library["purl"]), (&"pkg:cargo/stagger@0.1.0".into(), &library["bom-ref"]));
    }

    #[test]
    fn every_reference_of_a_bill_names_one_component() {
        let bill = published_bill();
        let mut defined = vec![text(&bill["metadata"]["component"]["bom-ref"])];
        defined.extend(list(&bill["components"]).map(|component| text(&component["bom-ref"])));
        let unique: BTreeSet<_> = defined.iter().map(String::as_str).collect();
        assert_eq!(unique.len(), defined.len());
        assert_eq!(references(&bill, "ref"), unique);
        assert!(
            references(&bill, "dependsOn").is_subset(&unique)
                && references(&bill, "dependsOn").contains("pkg:cargo/stagger-core@0.1.0")
        );
    }

    #[test]
    fn a_package_that_only_others_of_the_workspace_need_is_not_in_the_bill() {
        assert!(RECORDED.contains("anyhow"));
        assert!(!published_bill().to_string().contains("anyhow"));
    }

    #[test]
    fn a_path_that_is_not_recognized_is_an_error() {
        let unknown = r#"{"metadata": {"component": {"purl": "pkg:cargo/a@1.0.0?vcs_url=file:///home/user/a"}}}"#;
        assert!(published(unknown, &BTreeSet::new()).is_err());
    }
}
