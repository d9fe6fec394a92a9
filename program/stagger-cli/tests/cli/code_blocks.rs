//! Every block of the README, the book and the front pages that is in no shell's language: a configuration is checked
//! or has a test that runs it, code is compiled; or the source of the page says why not. Rust is compiled with the
//! guide's crate, and the commands of `console` and `sh` have tests of their own.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::blocks::{front_pages, reason};
use crate::guide::{Block, blocks};
use crate::markdown::PROJECT;
use crate::support::{Files, see, stagger, unpacked};

/// At most so many blocks are not run, those of a shell included.
const MOST_NOT_RUN: usize = 24;

/// What has tests elsewhere, or is no code.
const ELSEWHERE: [&str; 3] = ["console", "sh", "text"];

/// Pages whose blocks are run by tests that name the page.
const OF_TESTS: [(&str, &[&str], &str); 2] = [
    (
        "recipes.md",
        &["crontab", "dockerfile", "haproxy", "ini", "nginx", "yaml"],
        "program/stagger-cli/tests/cli/recipes/page.rs",
    ),
    ("websocket.md", &["haproxy", "nginx"], "crates/stagger-ws/tests/server/proxies.rs"),
];

/// What the examples for a browser take from their page.
const AMBIENT: &str = r#"
declare function connect(options: { signal: AbortSignal }): Promise<unknown>;
declare function reload(): void;
declare function show(data: unknown): void;
declare const ReconnectingWebSocket: typeof import("stagger-client").ReconnectingWebSocket;
"#;

#[test]
fn every_block_of_code_is_run_or_compiled_or_says_why_not() {
    needs!("node", "tsc");
    let files = Files::new();
    let (mut not_run, mut wrong, mut compiled) = (Vec::new(), Vec::new(), 0);
    for path in front_pages() {
        let page = fs::read_to_string(&path).expect("the page is read");
        for block in blocks(&page) {
            let place = format!("{}: {}", path.display(), block.text.lines().next().unwrap_or_default());
            if let Some(reason) = reason(&block) {
                not_run.push(format!("{place}: {reason}"));
            } else if block.language.starts_with("rust") || ELSEWHERE.contains(&block.language) {
                continue;
            } else if block.language == "ts" {
                compiled += 1;
                files.write(&format!("block{compiled}.ts"), format!("// {place}\n{}\nexport {{}};\n", block.text));
            } else if let Some(problem) = problem(&path, &page, &block) {
                wrong.push(format!("{place}: {problem}"));
            }
        }
    }
    println!("not run:\n{}", not_run.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(not_run.len() <= MOST_NOT_RUN, "{} blocks are not run", not_run.len());
    assert!(compiled > 8, "{compiled} are compiled");
    compile(&files);
}

/// Compiles the examples for browsers against the types of the project's client.
fn compile(files: &Files) {
    let tsc = |arguments: &[&str]| {
        let seen = see(Command::new(unpacked("tsc")).args(arguments).current_dir(files.path(".")));
        assert!(seen.status.success(), "{seen:#?}");
    };
    let client = format!("{PROJECT}/clients/js");
    let types = ["--declaration", "--emitDeclarationOnly", "--rootDir", &client, "--outDir", "client"];
    tsc(&[&["--project", &client], &types[..]].concat());
    files.write("ambient.d.ts", AMBIENT);
    files.write("package.json", r#"{"type": "module"}"#);
    let settings = r#"{
        "compilerOptions": {
            "target": "ES2022", "lib": ["ES2022", "DOM"], "module": "NodeNext", "types": [], "noEmit": true,
            "strict": true, "noImplicitAny": false, "paths": {"stagger-client": ["./client/src/index.d.ts"]}
        },
        "include": ["*.ts"]
    }"#;
    files.write("tsconfig.json", settings);
    tsc(&[]);
}

/// Returns why a block is neither run nor checked, if it is not.
fn problem(path: &Path, page: &str, block: &Block<'_>) -> Option<String> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let tests = OF_TESTS.iter().find(|(of, languages, _)| name == *of && languages.contains(&block.language));
    if let Some((.., tests)) = tests {
        let names_page = fs::read_to_string(Path::new(PROJECT).join(tests)).is_ok_and(|text| text.contains(name));
        return if names_page { None } else { Some(format!("{tests} does not name {name}")) };
    }
    let files = Files::new();
    let (file, mut command) = match block.language {
        "js" => ("block.mjs", Command::new("node")),
        "toml" => ("block.toml", stagger(["check"])),
        // The commands of the page read it.
        _ if block.before.ends_with("`:\n") && page.contains("\n$ stagger check ") => return None,
        language => return Some(format!("{language} is run by no test")),
    };
    let file = files.write(file, block.text);
    if block.language == "js" {
        command.arg("--check");
    }
    let seen = see(command.arg(file));
    (!matches!(seen.status.code(), Some(0 | 1)) || seen.stderr.contains("SyntaxError")).then(|| format!("{seen:#?}"))
}
