//! The program as it is released, with the files that it generates itself.

use core::fmt::Write;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

use lexopt::{Arg, Parser, ValueExt};
use serde_json::Value;

use super::archive::{Entry, gz, tar_gz};
use super::check::contact;
use crate::error::Result;
use crate::files::entries;
use crate::shell::Shell;
use crate::tool;
use crate::workspace::{Workspace, list, root, text};

/// Where the files of a release are written, from the root of the workspace. The manifest of the program names it, for the
/// Debian and RPM packages.
pub(crate) const DIST: &str = "target/artifacts";

/// Documents of the root that belong into each archive.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// The file with the licenses of what the program contains.
const NOTICES: &str = "LICENSES-OF-DEPENDENCIES.txt";

/// Shells, with the name of the file in which each looks for the completions of `stagger`.
const SHELLS: [(&str, &str); 5] = [
    ("bash", "stagger"),
    ("zsh", "_stagger"),
    ("fish", "stagger.fish"),
    ("powershell", "_stagger.ps1"),
    ("elvish", "stagger.elv"),
];

/// Where packages of Linux distributions install the completions of a shell. PowerShell and Elvish have no such directory.
const COMPLETIONS: [(&str, &[&str]); 3] = [
    ("stagger", &["usr/share/bash-completion/completions"]),
    // Debian's zsh and that of the other distributions.
    ("_stagger", &["usr/share/zsh/vendor-completions", "usr/share/zsh/site-functions"]),
    ("stagger.fish", &["usr/share/fish/vendor_completions.d"]),
];

/// The program, built for a target.
pub(crate) struct Program {
    pub(crate) target: String,
    path: PathBuf,
}

/// The files that the program generates.
struct Generated {
    pages: Vec<Entry>,
    completions: Vec<Entry>,
}

impl Program {
    /// Returns the target that the arguments name with `--target`. Default: this machine's.
    pub(crate) fn target(arguments: &[OsString]) -> Result<String> {
        named_target(arguments)?.map_or_else(host, Ok)
    }

    /// Builds the program for the target that the arguments name.
    pub(crate) fn build(arguments: &[OsString]) -> Result<Self> {
        let target = Self::target(arguments)?;
        let build = Shell::cargo("build --locked --profile dist --package stagger-cli --target");
        build.args([&target]).run()?;
        let directory = Workspace::here()?.target_directory.join(&target).join("dist");
        let suffix = if target.contains("windows") { ".exe" } else { "" };
        Ok(Self { path: directory.join(format!("stagger{suffix}")), target })
    }

    /// Returns the name of the archive, without an extension: `stagger-0.1.0-x86_64-unknown-linux-gnu`.
    pub(crate) fn archive_name(&self) -> Result<String> {
        let version = self.ask(&["--version"])?;
        let version =
            version.trim().strip_prefix("stagger ").ok_or_else(|| format!("unexpected version: {version}"))?;
        Ok(format!("stagger-{version}-{}", self.target))
    }

    /// Returns the files of an archive.
    pub(crate) fn archive(&self) -> Result<Vec<Entry>> {
        let mut files = vec![self.entry("")?];
        for name in DOCUMENTS {
            files.push(file(name, fs::read(root().join(name))?));
        }
        files.push(file(NOTICES, notices(&self.target)?.into_bytes()));
        let Generated { pages, completions } = self.generate()?;
        files.extend(pages.into_iter().map(|page| below("man", page)));
        files.extend(completions.into_iter().map(|script| below("completions", script)));
        Ok(files)
    }

    /// Returns the files of a package of a Linux distribution, with their places in the file system.
    pub(crate) fn package(&self) -> Result<Vec<Entry>> {
        let mut files = vec![self.entry("usr/bin/")?];
        files.push(file(&format!("usr/share/doc/stagger/{NOTICES}"), notices(&self.target)?.into_bytes()));
        let Generated { pages, completions } = self.generate()?;
        for page in pages {
            files.push(file(&format!("usr/share/man/man1/{}.gz", page.path), gz(&page.content)?));
        }
        for script in completions {
            let places = COMPLETIONS.iter().filter(|(name, _)| *name == script.path).flat_map(|(_, places)| *places);
            files.extend(places.map(|place| file(&format!("{place}/{}", script.path), script.content.clone())));
        }
        Ok(files)
    }

    /// Lets the program write its manual pages and completions, for which it must run on this machine.
    fn generate(&self) -> Result<Generated> {
        let overview = self.ask(&["man"])?;
        let mut pages = vec![file("stagger.1", overview.clone().into_bytes())];
        for name in subcommands(&overview) {
            pages.push(file(&format!("stagger-{name}.1"), self.ask(&["man", name])?.into_bytes()));
        }
        let script = |(shell, name): (&str, &str)| Ok(file(name, self.ask(&["completions", shell])?.into_bytes()));
        Ok(Generated { pages, completions: SHELLS.into_iter().map(script).collect::<Result<_>>()? })
    }

    fn entry(&self, directory: &str) -> Result<Entry> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Entry { path: format!("{directory}{name}"), content: fs::read(&self.path)?, is_executable: true })
    }

    fn ask(&self, arguments: &[&str]) -> Result<String> {
        // The date of the manual pages.
        Shell::new(&self.path).args(arguments).env("SOURCE_DATE_EPOCH", time()?.to_string()).output()
    }
}

/// Writes the files below a directory, which is emptied first.
pub(crate) fn write(directory: &Path, files: &[Entry]) -> Result {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    for entry in files {
        let path = directory.join(&entry.path);
        fs::create_dir_all(path.parent().unwrap_or(directory))?;
        fs::write(&path, &entry.content)?;
        if entry.is_executable {
            make_executable(&path)?;
        }
    }
    Ok(())
}

/// Lets everybody execute a file. The tools that find out what a program requires look at programs only.
#[cfg(unix)]
fn make_executable(path: &Path) -> Result {
    use std::os::unix::fs::PermissionsExt;

    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result {
    Err("packages and images can be built on Unix only: their files need permissions".into())
}

/// Returns the directory for the files of a release; creates it if necessary.
pub(crate) fn dist() -> Result<PathBuf> {
    let directory = root().join(DIST);
    fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// Returns the time of files in archives in seconds since 1970: that of the commit, unless `SOURCE_DATE_EPOCH` is set.
pub(crate) fn time() -> Result<u64> {
    let time = match env::var("SOURCE_DATE_EPOCH") {
        Ok(time) => time,
        Err(_) => Shell::new("git").args(["log", "-1", "--format=%ct"]).output()?,
    };
    Ok(time.trim().parse()?)
}

/// Returns the target of this machine.
fn host() -> Result<String> {
    let version = Shell::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).args(["-vV"]).output()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("`rustc -vV` names no host")?.to_owned())
}

fn named_target(arguments: &[OsString]) -> Result<Option<String>> {
    let mut target = None;
    let mut parser = Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("target") => target = Some(parser.value()?.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(target)
}

/// Returns the subcommands that the manual page of the program refers to, as in `stagger\-run(1)`.
fn subcommands(page: &str) -> Vec<&str> {
    let references = page.lines().filter_map(|line| line.strip_prefix(r"stagger\-")?.strip_suffix("(1)"));
    references.collect()
}

fn file(path: &str, content: Vec<u8>) -> Entry {
    Entry { path: path.to_owned(), content, is_executable: false }
}

fn below(directory: &str, entry: Entry) -> Entry {
    Entry { path: format!("{directory}/{}", entry.path), ..entry }
}

/// Builds the program and packs it with its manual pages, completions and documents.
pub(crate) fn dist_command(arguments: &[OsString]) -> Result {
    let program = Program::build(arguments)?;
    let name = program.archive_name()?;
    let path = dist()?.join(format!("{name}.tar.gz"));
    fs::write(&path, tar_gz(&name, program.archive()?, time()?)?)?;
    println!("{}", path.display());
    Ok(())
}

const MAINTAINERS: &str = "The stagger developers";

/// Builds the Debian package that `package.metadata.deb` of the program describes.
pub(crate) fn deb(arguments: &[OsString]) -> Result {
    let program = Program::build(arguments)?;
    let dist = dist()?;
    write(&dist.join("root"), &program.package()?)?;
    let deb = tool::pinned("deb", "3.8.0")?.args(["--no-build", "--no-strip", "--package", "stagger-cli"]);
    let deb = deb.args(["--target", &program.target, "--output"]).args([dist]);
    let deb = deb.args(["--maintainer", &maintainer()?]);
    deb.env("SOURCE_DATE_EPOCH", time()?.to_string()).run()
}

/// Returns the maintainers as a Debian package names them, without an address while there is none.
fn maintainer() -> Result<String> {
    let contact = contact()?;
    Ok(if contact.is_empty() { MAINTAINERS.to_owned() } else { format!("{MAINTAINERS} <{contact}>") })
}

/// Builds the RPM package that `package.metadata.generate-rpm` of the program describes.
pub(crate) fn rpm(arguments: &[OsString]) -> Result {
    let program = Program::build(arguments)?;
    let dist = dist()?;
    write(&dist.join("root"), &program.package()?)?;
    let rpm = tool::pinned("generate-rpm", "0.21.1")?.args(["--package", "program/stagger-cli"]);
    let rpm = rpm.args(["--target", &program.target, "--source-date", &time()?.to_string(), "--output"]);
    rpm.args([dist]).run()
}

/// How the name of a file with a license or a notice begins, in upper case.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

/// A package that the program contains.
#[derive(Debug)]
struct Package {
    name: String,
    license: String,
    texts: Vec<String>,
}

/// Returns the names, licenses and license texts of all packages of others that the program for `target` contains.
pub(crate) fn notices(target: &str) -> Result<String> {
    let contained = contained(&tree(target)?);
    let metadata = Shell::cargo("metadata --locked --format-version 1 --filter-platform").args([target]).output()?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    // The packages of the workspace have no source.
    let others = list(&metadata["packages"]).filter(|package| package["source"].is_string());
    let mut packages = Vec::new();
    for package in others {
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        if contained.contains(&name) {
            let manifest = text(&package["manifest_path"]);
            let directory = Path::new(&manifest).parent().unwrap_or(Path::new("."));
            packages.push(Package { name, license: text(&package["license"]), texts: texts(directory)? });
        }
    }
    if packages.is_empty() {
        return Err("`cargo tree` and `cargo metadata` have no package in common".into());
    }
    Ok(document(&packages))
}

/// Returns the names and versions of all packages that the program for `target` is built from, with those of the workspace and
/// those that only the compiler runs.
pub(crate) fn sources(target: &str) -> Result<BTreeSet<String>> {
    Ok(names(tree(target)?.lines()))
}

/// Returns what `cargo tree` prints of the program: one package in a line.
fn tree(target: &str) -> Result<String> {
    let tree = Shell::cargo("tree --locked --package stagger-cli --edges normal --prefix none --target");
    tree.args([target]).output()
}

/// Returns the names and versions in the output of `cargo tree`. What only the compiler runs is left out.
fn contained(tree: &str) -> BTreeSet<String> {
    names(tree.lines().filter(|line| !line.contains("(proc-macro)")))
}

fn names<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let names = lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?))
    });
    names.collect()
}

/// Returns the license texts of a package, without differences in white space at their ends.
fn texts(directory: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for path in entries(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            texts.push(String::from_utf8_lossy(&fs::read(&path)?).trim().replace("\r\n", "\n"));
        }
    }
    Ok(texts)
}

/// Lists the packages, then each text once with the packages that it belongs to.
fn document(packages: &[Package]) -> String {
    let mut document = String::from("The program contains these packages:\n\n");
    let mut users = BTreeMap::<&str, BTreeSet<&str>>::new();
    let sorted: BTreeMap<_, _> = packages.iter().map(|package| (&package.name, package)).collect();
    for (name, package) in sorted {
        let _ = writeln!(document, "- {name}: {}", package.license);
        for text in &package.texts {
            users.entry(text).or_default().insert(name);
        }
    }
    for (text, names) in users {
        let names: Vec<_> = names.into_iter().collect();
        let _ = write!(document, "\n{}\n\n{}\n\n{text}\n", "-".repeat(80), names.join(", "));
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcommands_are_those_that_the_page_refers_to() {
        let page =
            ".SH SUBCOMMANDS\n.TP\nstagger\\-run(1)\nRun a command\n.TP\nstagger\\-plan(1)\nsee stagger\\-x(1)\n";
        assert_eq!(subcommands(page), ["run", "plan"]);
    }

    #[test]
    fn a_target_can_be_named_and_nothing_else() {
        let parse = |words: &[&str]| named_target(&words.iter().map(Into::into).collect::<Vec<_>>());
        assert_eq!(parse(&[]).unwrap(), None);
        assert_eq!(parse(&["--target", "aarch64-apple-darwin"]).unwrap().as_deref(), Some("aarch64-apple-darwin"));
        assert!(parse(&["--tarket", "x"]).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn only_written_programs_are_executable() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let program = Entry { is_executable: true, ..file("usr/bin/stagger", Vec::new()) };
        write(directory.path(), &[program, file("usr/share/x", Vec::new())]).unwrap();
        let mode = |path| fs::metadata(directory.path().join(path)).unwrap().permissions().mode() & 0o111;
        assert_eq!((mode("usr/bin/stagger"), mode("usr/share/x")), (0o111, 0));
    }

    #[test]
    fn each_completion_that_is_installed_has_a_generator() {
        for (name, _) in COMPLETIONS {
            assert!(SHELLS.iter().any(|(_, file)| *file == name), "{name}");
        }
    }

    #[test]
    fn packages_are_read_from_the_tree_without_those_that_only_the_compiler_runs() {
        let tree = "stagger-cli v0.1.0 (/a/stagger-cli)\nserde v1.0.229\nserde_derive v1.0.229 (proc-macro)\nserde v1.0.229 (*)\n";
        assert_eq!(contained(tree).into_iter().collect::<Vec<_>>(), ["serde 1.0.229", "stagger-cli 0.1.0"]);
    }

    #[test]
    fn equal_texts_are_printed_once_with_all_their_packages() {
        let package = |name: &str, texts: &[&str]| Package {
            name: name.to_owned(),
            license: "MIT".to_owned(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        };
        let document = document(&[
            package("b 1.0.0", &["Text."]),
            package("a 2.0.0", &["Text.", "Other."]),
            package("c 0.1.0", &[]),
        ]);
        assert!(
            document.starts_with(
                "The program contains these packages:\n\n- a 2.0.0: MIT\n- b 1.0.0: MIT\n- c 0.1.0: MIT\n"
            )
        );
        assert!(
            document.contains("\na 2.0.0, b 1.0.0\n\nText.\n") && document.contains("\na 2.0.0\n\nOther.\n"),
            "{document}"
        );
        assert_eq!(document.matches("Text.").count(), 1);
    }

    #[test]
    fn license_files_are_found_by_their_usual_names() {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in [("LICENSE-MIT", "MIT\r\nText\n"), ("license.txt", "Two"), ("README.md", "No")] {
            fs::write(directory.path().join(name), content).unwrap();
        }
        fs::create_dir(directory.path().join("LICENSES")).unwrap();
        assert_eq!(texts(directory.path()).unwrap(), ["MIT\nText", "Two"]);
    }
}
