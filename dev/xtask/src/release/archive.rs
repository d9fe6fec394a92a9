//! Archives and checksums that depend on the content of their files only, and the context of the container image.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use tar::{Builder, Header};

use super::program::artifacts;
use crate::files::{emptied, entries, hex, root};
use crate::shell::{Result, Shell, no_arguments};

/// A file in an archive.
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) content: Vec<u8>,
    pub(crate) is_executable: bool,
}

/// Packs the files below the directory `name`, ordered by path, all of them by the same owner and as old as `seconds`
/// after 1970.
pub(crate) fn tar_gz(name: &str, mut files: Vec<Entry>, seconds: u64) -> io::Result<Vec<u8>> {
    files.sort_by(|one, other| one.path.cmp(&other.path));
    // The header of gzip has neither a time nor a system, which would differ between machines.
    let gzip = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
    let mut tar = Builder::new(gzip);
    for file in files {
        let mut header = Header::new_gnu();
        header.set_size(file.content.len() as u64);
        header.set_mode(if file.is_executable { 0o755 } else { 0o644 });
        header.set_mtime(seconds);
        header.set_uid(0);
        header.set_gid(0);
        tar.append_data(&mut header, format!("{name}/{}", file.path), &*file.content)?;
    }
    tar.into_inner()?.finish()
}

/// Compresses a file without a name or a time.
pub(crate) fn gz(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressed = Vec::new();
    GzBuilder::new().mtime(0).operating_system(255).read(content, Compression::best()).read_to_end(&mut compressed)?;
    Ok(compressed)
}

/// The name of the file with the checksums of the others.
const SUMS: &str = "SHA256SUMS";

/// Writes the checksums of the files of a release, in the format that `sha256sum --check` reads.
pub(crate) fn write_checksums(arguments: &[OsString]) -> Result {
    no_arguments(arguments)?;
    let directory = artifacts()?;
    let sums = checksums(&directory)?;
    fs::write(directory.join(SUMS), &sums)?;
    print!("{sums}");
    Ok(())
}

/// Returns a line for each file of a directory but the checksums; its directories are left out.
fn checksums(directory: &Path) -> Result<String> {
    let mut lines = String::new();
    for path in entries(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_file() && name != SUMS {
            lines += &format!("{}  {name}\n", hex(&Sha256::digest(fs::read(&path)?)));
        }
    }
    Ok(lines)
}

/// Lays out what `docker build` needs: the program from each of the archives that are named, and the Dockerfile.
pub(crate) fn image(arguments: &[OsString]) -> Result {
    if arguments.is_empty() {
        return Err("name the archives of statically linked programs, one for each architecture".into());
    }
    let context = artifacts()?.join("image");
    for archive in arguments {
        let archive = fs::canonicalize(archive)?;
        let name = archive.file_name().unwrap_or_default().to_string_lossy();
        let directory = context.join(architecture(&name)?);
        emptied(&directory)?;
        let tar = Shell::new("tar").args(["--extract", "--strip-components=1", "--file"]).args([&archive]);
        tar.directory(&directory).args([format!("{}/stagger", name.trim_end_matches(".tar.gz"))]).run()?;
    }
    fs::copy(root().join(".github/Dockerfile"), context.join("Dockerfile"))?;
    println!("{}", context.display());
    Ok(())
}

/// Returns the architecture in the name of an archive, as container tools name it.
fn architecture(archive: &str) -> Result<&'static str> {
    match archive {
        name if name.contains("-x86_64-") => Ok("amd64"),
        name if name.contains("-aarch64-") => Ok("arm64"),
        name => Err(format!("no image is built for the target of {name}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, is_executable: bool) -> Entry {
        Entry { path: path.to_owned(), content: path.as_bytes().to_vec(), is_executable }
    }

    #[test]
    fn an_archive_does_not_depend_on_the_order_of_its_files() {
        let pack = |names: [&str; 3]| tar_gz("a", names.map(|name| entry(name, name == "b")).into(), 86_400).unwrap();
        assert_eq!(pack(["b", "man/c", "a"]), pack(["man/c", "a", "b"]));
    }

    #[test]
    fn files_of_an_archive_have_a_fixed_owner_and_time_and_only_programs_are_executable() {
        let packed = tar_gz("a", vec![entry("run", true), entry("README.md", false)], 86_400).unwrap();
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(&*packed));
        let mut seen = Vec::new();
        for file in tar.entries().unwrap() {
            let file = file.unwrap();
            let header = file.header();
            let owner = (header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap());
            seen.push((file.path().unwrap().display().to_string(), header.mode().unwrap(), owner));
        }
        let owner = (0, 0, 86_400);
        assert_eq!(seen, [("a/README.md".to_owned(), 0o644, owner), ("a/run".to_owned(), 0o755, owner)]);
        // No time and no name, level 2 for the best compression, and an unknown system: RFC 1952.
        assert_eq!(packed[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
    }

    #[test]
    fn checksums_are_ordered_and_leave_out_their_own_file() {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in [("b", "abc"), ("a", ""), ("SHA256SUMS", "old")] {
            fs::write(directory.path().join(name), content).unwrap();
        }
        fs::create_dir(directory.path().join("c")).unwrap();
        // The digests of the empty text and of "abc": FIPS 180-4, examples.
        let want = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n\
                    ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b\n";
        assert_eq!(checksums(directory.path()).unwrap(), want);
    }

    #[test]
    fn the_architecture_of_an_image_is_that_of_the_archive() {
        for (name, want) in [
            ("stagger-0.1.0-x86_64-unknown-linux-musl.tar.gz", Some("amd64")),
            ("stagger-0.1.0-aarch64-unknown-linux-musl.tar.gz", Some("arm64")),
            ("stagger-0.1.0-riscv64gc-unknown-linux-musl.tar.gz", None),
        ] {
            assert_eq!(architecture(name).ok(), want, "{name}");
        }
    }
}
