//! apt with a configuration, a state and a repository of its own.

use std::fs;

use super::bench::Bench;
use super::page::{code, with};
use super::site::Site;
use crate::origin::Origin;
use crate::support::see;

const PACKAGE: &str = "stagger-recipe";

/// Builds a package and its index.
fn repository(bench: &Bench) {
    let script = format!(
        "mkdir -p build/DEBIAN site && cd build/DEBIAN && \
         printf 'Package: {PACKAGE}\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b>\\nDescription: a\\n' > \
         control && \
         cd ../../site && dpkg-deb --build --root-owner-group ../build recipe.deb && \
         {{ cat ../build/DEBIAN/control; echo Filename: ./recipe.deb; echo Size: $(stat -c %s recipe.deb); \
         echo SHA256: $(sha256sum < recipe.deb | cut -d' ' -f1); }} > Packages"
    );
    bench.see(&script).exits(0);
}

/// Writes a configuration with which apt changes nothing outside of the directory, and returns its path.
fn configuration(bench: &Bench, authority: &str) -> String {
    for directory in ["etc/apt.conf.d", "etc/preferences.d", "state/lists/partial", "cache/archives/partial", "log"] {
        fs::create_dir_all(bench.path(directory)).expect("the directory is created");
    }
    bench.files.write("status", "");
    bench.files.write("etc/sources.list", format!("deb [trusted=yes] http://{authority}/ ./\n"));
    let root = bench.path("");
    // apt starts it in the root directory.
    let script = format!("case \"$*\" in *--unpack*|*--configure*) echo \"$*\" >> '{root}dpkg.log' ;; esac");
    bench.script("dpkg", &script);
    let configuration = format!(
        "Dir::Etc \"{root}etc\";\nDir::Etc::sourceparts \"-\";\nDir::State \"{root}state\";\n\
         Dir::State::status \"{root}status\";\nDir::Cache \"{root}cache\";\nDir::Log \"{root}log\";\n\
         Dir::Bin::dpkg \"{root}bin/dpkg\";\nAPT::Sandbox::User \"\";\nAPT::Architecture \"amd64\";\n\
         APT::Architectures \"amd64\";\nAcquire::http::Proxy \"DIRECT\";\nAcquire::Languages \
         \"none\";\nDebug::NoLocking \"true\";\n"
    );
    bench.files.write("apt.conf", configuration).display().to_string()
}

#[test]
fn only_what_apt_downloads_is_retried() {
    needs!("apt-get");
    let bench = Bench::new();
    repository(&bench);
    // The index exists in several formats, which apt asks for one after the other.
    let site = Site::start(bench.files.path("site"), &["503 Busy"; 10]);
    let configuration = configuration(&bench, &site.authority);
    let lines = with(&code("apt")[0], &[("nginx-light", PACKAGE)]);
    let seen = see(bench.shell(&format!("set -e\n{lines}")).env("APT_CONFIG", &configuration));
    seen.exits(0).says("attempt=1/4 result=exit:100").says("result=ok");
    assert!(site.requests().iter().any(|path| path.ends_with("recipe.deb")), "{:?}", site.requests());
    // The last line unpacks what the second has downloaded.
    let log = fs::read_to_string(bench.path("dpkg.log")).unwrap();
    assert!(log.contains("--unpack") && log.contains(PACKAGE), "{log}");
    // A package that does not exist is not looked for again.
    let missing = with(&lines, &[(PACKAGE, "stagger-missing")]);
    let install = missing.split("stagger run").nth(2).expect("the second line");
    let install = format!("stagger run{}", install.split("\napt-get").next().expect("the second line"));
    see(bench.shell(&install).env("APT_CONFIG", &configuration)).exits(100).says("attempt=1/4").says("reason=stop-if");
}

#[test]
fn without_the_flag_apt_does_not_fail_if_there_is_no_connection() {
    needs!("apt-get");
    let bench = Bench::new();
    let authority = Origin::nowhere().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let configuration = configuration(&bench, &authority);
    let flags = "-q -o Acquire::Retries=0 update";
    see(bench.shell(&format!("apt-get {flags}")).env("APT_CONFIG", &configuration)).exits(0).says("Failed to fetch");
    let lines = code("apt");
    let update = lines[0].split("\nstagger run").next().expect("the first line");
    see(bench.shell(update).env("APT_CONFIG", &configuration)).exits(100).says("attempt=4/4");
}
