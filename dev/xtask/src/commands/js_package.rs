use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{Shell, is_installed};
use crate::steps::packages::{esbuild, typescript};
use crate::{Result, workspace};

/// Checks the fields and the files of a package.
const PUBLINT: &str = "publint@0.3.25";
/// Checks how each kind of module resolution finds the package and its types.
const TYPES_WRONG: &str = "@arethetypeswrong/cli@0.18.5";
/// A compiler that resolves modules as bundlers do, which that of Debian does not.
const TYPESCRIPT: &str = "typescript@5.9.3";
/// The compiler that `npm install` brings.
const NEWEST_TYPESCRIPT: &str = "typescript@7.0.2";

/// What a program may write that has nothing but the package. The type annotations are checked, and the rest is run.
pub(super) const CONSUMER: &str = r#"import { delays, fetchRetry, parsePolicy, Policy, QuietPeriods, ReconnectingWebSocket, retry, RetryError, TokenBudget } from "stagger-client";

const policy: Policy = parsePolicy("constant base=1ms jitter=none max-attempts=3");
const budget = new TokenBudget({ capacity: 100 });
const made: number = await retry(({ number }) => (number < 3 ? Promise.reject(new Error("again")) : number), policy, { budget });
const send = async (): Promise<Response> => new Response("done");
const text: string = await (await fetchRetry("https://example.com/", {}, { policy, fetch: send, quiet: new QuietPeriods() })).text();
const failed: unknown = await retry(() => Promise.reject("no"), policy).catch((error: unknown) => error);
const listed: bigint[] = [...delays(policy, 1n)];
const isRight = made === 3 && text === "done" && failed instanceof RetryError && failed.cause === "no" && listed.length === 2;
if (!isRight || typeof ReconnectingWebSocket !== "function") {
  throw new Error("the package does not work");
}
"#;

/// Packs the JavaScript client, checks the package with tools of npm's registry, and uses it in a program.
pub(crate) fn run(arguments: &[OsString]) -> Result {
    if !arguments.is_empty() {
        return Err("takes no arguments".into());
    }
    if !is_installed("npx") {
        return Err("`npx` is not in PATH: install npm 10 or later, on Debian the package npm".into());
    }
    let source = workspace::root().join("clients/js");
    typescript()?.directory(&source).args(["--project", "tsconfig.build.json"]).run()?;
    let newest = Shell::new("npx").directory(&source).args(["--yes", "--package", NEWEST_TYPESCRIPT]);
    newest.args(["tsc", "--noEmit"]).run()?;
    let directory = workspace::target_directory("js-package")?;
    let archive = install(&source, &directory)?;
    let npx = |tool| Shell::new("npx").directory(&directory).args(["--yes", tool]);
    npx(PUBLINT).args([&archive]).args(["--strict"]).run()?;
    // A program in the syntax of CommonJS imports the package with `import()`.
    npx(TYPES_WRONG).args([&archive]).args(["--no-emoji", "--profile", "esm-only"]).run()?;
    use_it(&directory)?;
    println!("{} works", archive.file_name().unwrap_or_default().display());
    Ok(())
}

/// Packs the compiled client, and unpacks it as npm would for a program in `directory`, which is emptied first. Returns the
/// archive.
pub(super) fn install(source: &Path, directory: &Path) -> Result<PathBuf> {
    if directory.is_dir() {
        fs::remove_dir_all(directory)?;
    }
    let installed = directory.join("node_modules/stagger-client");
    fs::create_dir_all(&installed)?;
    fs::write(directory.join("package.json"), r#"{ "type": "module" }"#)?;
    let pack = Shell::new("npm").directory(source).args(["pack", "--silent", "--ignore-scripts", "--pack-destination"]);
    let archive = directory.join(pack.args([directory]).output()?.trim());
    let extract = Shell::new("tar").args(["--strip-components=1", "--extract", "--file"]).args([&archive]);
    extract.args(["--directory".as_ref(), &*installed]).run()?;
    Ok(archive)
}

/// Checks the types of a program that has the package, bundles it, and runs it, bundled or not.
fn use_it(directory: &Path) -> Result {
    fs::write(directory.join("consumer.ts"), CONSUMER)?;
    for [module, resolution] in [["ES2022", "bundler"], ["node16", "node16"]] {
        let tsc = Shell::new("npx").directory(directory).args(["--yes", "--package", TYPESCRIPT, "tsc", "consumer.ts"]);
        let strict = ["--strict", "--exactOptionalPropertyTypes", "--target", "ES2022", "--lib", "ES2022,DOM"];
        tsc.args(strict).args(["--module", module, "--moduleResolution", resolution]).run()?;
    }
    Shell::new("node").directory(directory).args(["consumer.js"]).run()?;
    let bundle = ["consumer.js", "--bundle", "--format=esm", "--target=es2022", "--outfile=bundle.js"];
    esbuild()?.directory(directory).args(bundle).run()?;
    Shell::new("node").directory(directory).args(["bundle.js"]).run()
}
