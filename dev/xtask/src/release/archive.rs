//! Archives and checksums that depend on the content of their files only.

use core::fmt::Write;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use tar::{Builder, Header};

use super::program::{dist, write};
use crate::error::Result;
use crate::files::entries;
use crate::workspace::root;

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

/// Returns a file at the top of a packed archive.
pub(crate) fn unpacked(archive: &Path, file: &str) -> Result<Vec<u8>> {
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(fs::File::open(archive)?));
    for entry in tar.entries()? {
        let mut entry = entry?;
        if entry.path()?.components().skip(1).eq(Path::new(file).components()) {
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            return Ok(content);
        }
    }
    Err(format!("{} does not contain `{file}`", archive.display()).into())
}

/// Returns a line for each file of the directory, in the format that `sha256sum --check` reads; other checksums and
/// directories are left out.
pub(crate) fn checksums(directory: &Path, own: &str) -> Result<String> {
    let mut lines = String::new();
    for path in entries(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_file() && name != own {
            for byte in Sha256::digest(fs::read(&path)?) {
                write!(lines, "{byte:02x}")?;
            }
            writeln!(lines, "  {name}")?;
        }
    }
    Ok(lines)
}

/// The architectures of an image, as container tools name them, with the beginning of the targets' names.
const ARCHITECTURES: [(&str, &str); 2] = [("amd64", "x86_64-"), ("arm64", "aarch64-")];

/// Lays out what `docker build` needs: the program from each of the archives that are named, and the Dockerfile.
pub(crate) fn image(arguments: &[OsString]) -> Result {
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

/// The name of the file with the checksums of the others.
const SUMS: &str = "SHA256SUMS";

/// Writes the checksums of the files of a release, in the format that `sha256sum --check` reads.
pub(crate) fn checksums_command(arguments: &[OsString]) -> Result {
    if !arguments.is_empty() {
        return Err("takes no arguments".into());
    }
    let dist = dist()?;
    let sums = checksums(&dist, SUMS)?;
    fs::write(dist.join(SUMS), &sums)?;
    print!("{sums}");
    Ok(())
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
    fn the_program_is_found_in_an_archive_beside_a_completion_of_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let archive = directory.path().join("a.tar.gz");
        fs::write(&archive, tar_gz("a", vec![entry("run", true), entry("completions/run", false)], 0).unwrap())
            .unwrap();
        assert_eq!(unpacked(&archive, "run").unwrap(), b"run");
        assert!(unpacked(&archive, "stop").unwrap_err().to_string().contains("does not contain `stop`"));
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
        assert_eq!(checksums(directory.path(), "SHA256SUMS").unwrap(), want);
    }

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
