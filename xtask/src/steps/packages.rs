use crate::Result;
use crate::ci::{Note, Options};
use crate::shell::{Shell, is_installed};

/// Something that the tests start and that cargo cannot build.
struct Package {
    /// One of these programs is enough.
    programs: &'static [&'static str],
    debian: &'static str,
}

const PACKAGES: [Package; 4] = [
    // The man page is rendered, not only written.
    Package { programs: &["man"], debian: "man-db" },
    Package { programs: &["groff"], debian: "groff-base" },
    // libFuzzer is written in C++.
    Package { programs: &["c++"], debian: "g++" },
    // Debian keeps the server itself out of PATH, but not what controls it.
    Package { programs: &["postgres", "pg_ctlcluster"], debian: "postgresql" },
];

pub(crate) fn run(_: &Options) -> Result<Note> {
    let missing: Vec<_> = PACKAGES
        .iter()
        .filter(|package| !package.programs.iter().any(|program| is_installed(program)))
        .map(|package| package.debian)
        .collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let names = missing.join(" ");
    if !is_installed("apt-get") {
        let message = "install what is called so on Debian, with this system's own package manager";
        return Err(format!("missing: {names}; {message}").into());
    }
    let root: &[&str] = if is_root()? {
        &[]
    } else if Shell::new("sudo").args(["-n", "true"]).succeeds() {
        &["sudo", "-n"]
    } else {
        return Err(format!("missing: {names}; run `sudo apt-get install {names}`").into());
    };
    let apt_get = |arguments: &str| {
        let words = [root, &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"]].concat();
        let (program, rest) = (words[0], &words[1..]);
        Shell::new(program).args(rest).args(arguments.split_ascii_whitespace()).run()
    };
    apt_get("update")?;
    apt_get(&format!("install --yes --no-install-recommends {names}"))?;
    Ok(Some(format!("installed {names}")))
}

fn is_root() -> Result<bool> {
    Ok(Shell::new("id").args(["-u"]).output()?.trim() == "0")
}
