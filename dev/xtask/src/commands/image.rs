use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::Result;
use crate::release::archive::{Entry, unpacked};
use crate::release::stage::{dist, write};
use crate::workspace::root;

/// The architectures of an image, as container tools name them, with the beginning of the targets' names.
const ARCHITECTURES: [(&str, &str); 2] = [("amd64", "x86_64-"), ("arm64", "aarch64-")];

/// Lays out what `docker build` needs: the program from each of the archives that are named, and the Dockerfile.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    if arguments.is_empty() {
        return Err("name the archives of statically linked programs, one for each architecture".into());
    }
    let context = dist()?.join("image");
    for archive in arguments {
        let content = unpacked(Path::new(archive), "stagger")?;
        let program = Entry { path: "stagger".to_owned(), content, is_executable: true };
        write(&context.join(architecture(Path::new(archive))?), &[program])?;
    }
    fs::copy(root().join(".github/Dockerfile"), context.join("Dockerfile"))?;
    println!("{}", context.display());
    Ok(())
}

/// Returns the architecture that the name of an archive contains.
fn architecture(archive: &Path) -> Result<&'static str> {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let found = ARCHITECTURES.iter().find(|(_, target)| name.contains(&format!("-{target}")));
    Ok(found.ok_or_else(|| format!("no image is built for the target of {name}"))?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_architecture_of_an_image_is_that_of_the_archive() {
        for (name, want) in [
            ("target/artifacts/stagger-0.1.0-x86_64-unknown-linux-musl.tar.gz", Some("amd64")),
            ("stagger-0.1.0-aarch64-unknown-linux-musl.tar.gz", Some("arm64")),
            ("stagger-0.1.0-riscv64gc-unknown-linux-musl.tar.gz", None),
        ] {
            assert_eq!(architecture(Path::new(name)).ok(), want, "{name}");
        }
    }
}
