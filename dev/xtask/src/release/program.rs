//! The program as it is released, with the files that it generates itself, in an archive and in packages.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

use super::archive::{Entry, gz, tar_gz};
use super::check::contact;
use crate::files::{emptied, root};
use crate::shell::{Result, Shell};
use crate::tool;
use crate::workspace::{Workspace, target_directory};

/// The package with the program.
pub(crate) const PROGRAM: &str = "stagger-cli";

/// Where the files of a release are written, from the root of the workspace. The manifest of the program names it, for
/// the Debian and RPM packages.
const ARTIFACTS: &str = "target/artifacts";

/// Documents of the root that belong into each archive.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// The file with the licenses of what the program contains.
const NOTICES: &str = "LICENSES-OF-DEPENDENCIES.txt";

/// Shells, with the name of the file in which each looks for the completions of `stagger`, and where packages of Linux
/// distributions install it. PowerShell and Elvish have no such directory; Debian's zsh and that of the others differ.
const SHELLS: [(&str, &str, &[&str]); 5] = [
    ("bash", "stagger", &["usr/share/bash-completion/completions"]),
    ("zsh", "_stagger", &["usr/share/zsh/vendor-completions", "usr/share/zsh/site-functions"]),
    ("fish", "stagger.fish", &["usr/share/fish/vendor_completions.d"]),
    ("powershell", "_stagger.ps1", &[]),
    ("elvish", "stagger.elv", &[]),
];

/// Builds the program and packs it with its manual pages, completions and documents.
pub(crate) fn dist(arguments: &[OsString]) -> Result {
    let program = Program::build(arguments)?;
    let version = program.ask(&["--version"])?;
    let version = version.trim().strip_prefix("stagger ").ok_or_else(|| format!("unexpected version: {version}"))?;
    let name = format!("stagger-{version}-{}", program.target);
    let path = artifacts()?.join(format!("{name}.tar.gz"));
    fs::write(&path, tar_gz(&name, program.archive()?, time()?)?)?;
    println!("{}", path.display());
    Ok(())
}

/// Builds the Debian package that `package.metadata.deb` of the program describes.
pub(crate) fn deb(arguments: &[OsString]) -> Result {
    let program = Program::build(arguments)?;
    program.install()?;
    let mut maintainers = "The stagger developers".to_owned();
    let contact = contact(&Workspace::here()?);
    if !contact.is_empty() {
        maintainers += &format!(" <{contact}>");
    }
    let deb = tool::pinned("deb", "3.8.0", &[])?.args(["deb", "--no-build", "--no-strip", "--package", PROGRAM]);
    let deb = deb.args(["--target", &program.target, "--maintainer", &maintainers, "--output"]).args([artifacts()?]);
    deb.env("SOURCE_DATE_EPOCH", time()?.to_string()).run()
}

/// Builds the RPM package that `package.metadata.generate-rpm` of the program describes.
pub(crate) fn rpm(arguments: &[OsString]) -> Result {
    let program = Program::build(arguments)?;
    program.install()?;
    let rpm = tool::pinned("generate-rpm", "0.21.1", &[])?.args(["generate-rpm", "--package", "program/stagger-cli"]);
    let rpm = rpm.args(["--target", &program.target, "--source-date", &time()?.to_string(), "--output"]);
    rpm.args([artifacts()?]).run()
}

/// The program, built for a target.
struct Program {
    target: String,
    path: PathBuf,
}

impl Program {
    /// Builds the program for the target that the arguments name.
    fn build(arguments: &[OsString]) -> Result<Self> {
        let target = target(arguments)?;
        let build = Shell::cargo("build --locked --profile dist --target").args([&target]);
        build.args(["--package", PROGRAM]).run()?;
        let suffix = if target.contains("windows") { ".exe" } else { "" };
        Ok(Self { path: target_directory(&target)?.join(format!("dist/stagger{suffix}")), target })
    }

    /// Returns the files of an archive.
    fn archive(&self) -> Result<Vec<Entry>> {
        let mut files = vec![self.entry("")?, file(NOTICES, self.notices()?)];
        for name in DOCUMENTS {
            files.push(file(name, fs::read(root().join(name))?));
        }
        for (name, page) in self.pages()? {
            files.push(file(&format!("man/{name}"), page));
        }
        for (shell, name, _) in SHELLS {
            files.push(file(&format!("completions/{name}"), self.ask(&["completions", shell])?.into()));
        }
        Ok(files)
    }

    /// Writes the files of a package of a Linux distribution to where `package.metadata` of the program names them.
    fn install(&self) -> Result {
        let mut files = vec![self.entry("usr/bin/")?];
        files.push(file(&format!("usr/share/doc/stagger/{NOTICES}"), self.notices()?));
        for (name, page) in self.pages()? {
            files.push(file(&format!("usr/share/man/man1/{name}.gz"), gz(&page)?));
        }
        for (shell, name, directories) in SHELLS {
            for directory in directories {
                files.push(file(&format!("{directory}/{name}"), self.ask(&["completions", shell])?.into()));
            }
        }
        write(&artifacts()?.join("root"), &files)
    }

    /// Returns the manual pages with their names, for which the program must run on this machine.
    fn pages(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let overview = self.ask(&["man"])?;
        let mut pages = vec![("stagger.1".to_owned(), overview.clone().into())];
        for name in subcommands(&overview) {
            pages.push((format!("stagger-{name}.1"), self.ask(&["man", name])?.into()));
        }
        Ok(pages)
    }

    /// Returns the names, licenses and license texts of all packages that the program contains.
    fn notices(&self) -> Result<Vec<u8>> {
        let about =
            tool::pinned("about", "0.9.3", &["--features", "cli"])?.args(["about", "generate", "--locked", "--fail"]);
        let about = about.args(["--manifest-path", "program/stagger-cli/Cargo.toml", "--target", &self.target]);
        let about = about.args(["--config", "dev/xtask/licenses/about.toml", "dev/xtask/licenses/about.hbs"]);
        Ok(about.output()?.into())
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

/// Returns the target that the arguments name. Default: this machine's.
pub(crate) fn target(arguments: &[OsString]) -> Result<String> {
    match arguments {
        [] => Ok(Shell::new("rustc").args(["--print", "host-tuple"]).output()?.trim().to_owned()),
        [option, target] if option == "--target" => Ok(target.to_string_lossy().into_owned()),
        _ => Err("the only option is --target TARGET".into()),
    }
}

/// Writes the files below a directory, which is emptied first.
fn write(directory: &Path, files: &[Entry]) -> Result {
    emptied(directory)?;
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
    Err("packages can be built on Unix only: their files need permissions".into())
}

/// Returns the directory for the files of a release; creates it if necessary.
pub(crate) fn artifacts() -> Result<PathBuf> {
    let directory = root().join(ARTIFACTS);
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

/// Returns the subcommands that the manual page of the program refers to, as in `stagger\-run(1)`.
fn subcommands(page: &str) -> Vec<&str> {
    let references = page.lines().filter_map(|line| line.strip_prefix(r"stagger\-")?.strip_suffix("(1)"));
    references.collect()
}

fn file(path: &str, content: Vec<u8>) -> Entry {
    Entry { path: path.to_owned(), content, is_executable: false }
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
        let parse = |words: &[&str]| target(&words.iter().map(Into::into).collect::<Vec<_>>());
        assert_eq!(parse(&["--target", "aarch64-apple-darwin"]).unwrap(), "aarch64-apple-darwin");
        assert!(parse(&[]).unwrap().contains('-'));
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
}
