//! Tests of `stagger check --traces`, run as a program.

use std::path::Path;
use std::{env, fs};

use serde_json::Value;

use crate::support::{Files, see, see_with_input, stagger};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");

fn basket() -> String {
    Path::new(GUIDE).join("traces/basket.json").display().to_string()
}

#[test]
fn traces_tell_which_layer_multiplies() {
    let seen = see(&mut stagger(["check", "--json", "--traces", &basket()]));
    let document: Value = serde_json::from_str(&seen.exits(1).stdout).unwrap();
    assert_eq!((&document["schema"], &document["traces"]), (&Value::from("stagger.traces/1"), &Value::from(1)));
    let found = &document["multiplications"][0];
    assert_eq!((&found["product"], &found["guilty"]), (&Value::from(9), &Value::from(0)));
    assert_eq!(found["layers"][1]["caller"], "orders");
}

/// After a change: `STAGGER_BLESS=1 cargo test -p stagger-cli traces`.
#[test]
fn the_guide_shows_what_is_printed_for_its_traces() {
    let page = Path::new(GUIDE).join("traces.md");
    let text = fs::read_to_string(&page).unwrap();
    let line = "$ stagger check --traces traces/basket.json\n";
    let (head, rest) = text.split_once(line).unwrap();
    let (_, tail) = rest.split_once("```").unwrap();
    let command = ["check", "--traces", "traces/basket.json"];
    let seen = see(stagger(command).current_dir(GUIDE).env("COLUMNS", "100"));
    let now = format!("{head}{line}{}```{tail}", seen.exits(1).stdout);
    if env::var_os("STAGGER_BLESS").is_some() {
        fs::write(&page, &now).unwrap();
    }
    assert_eq!(fs::read_to_string(&page).unwrap(), now);
}

#[test]
fn traces_are_read_from_several_files_and_standard_input() {
    let text = fs::read_to_string(basket()).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let files = Files::new();
    let path = files.path("rest.json");
    fs::write(&path, rest).unwrap();
    let command = &mut stagger(["check", "--traces", "-", &path.display().to_string()]);
    let seen = see_with_input(command, first.as_bytes());
    assert!(seen.exits(1).stdout.contains("layers multiply one another: 9 attempts"), "{seen:#?}");
    let seen = see_with_input(&mut stagger(["check", "--traces", "-"]), b"");
    assert!(seen.exits(0).stdout.ends_with("no findings\n"), "{seen:#?}");
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_place() {
    let files = Files::new();
    let path = files.path("cut.json");
    fs::write(&path, "{\"resourceSpans\": [\n{").unwrap();
    let path = path.display().to_string();
    see(&mut stagger(["check", "--traces", &path])).exits(125).prints("").says(&format!("cannot read {path}:2:1: "));
    see(&mut stagger(["check", "--traces", "/nowhere.json"])).exits(125).says("cannot open /nowhere.json");
    see(&mut stagger(["check", "--traces", &path, "--log", "-"])).exits(2).says("--traces");
}
