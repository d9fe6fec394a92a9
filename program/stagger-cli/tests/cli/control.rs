//! `stagger control`: files that a program passes to `RetryControls::apply`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use stagger::control::RetryControls;

use crate::support::{Files, Seen, said, see, stagger};

fn control(action: &str, file: &Path, entries: &[&str]) -> Seen {
    see(stagger(["control", action]).arg(file).args(entries).env("USER", "operator"))
}

/// Returns the setting of a target in a program that has applied the file, and had set the target before.
fn applied(file: &Path, target: &str) -> String {
    let controls = RetryControls::new();
    let text = fs::read_to_string(file).expect("the file is read");
    for line in [&*format!("{target}=off"), &text] {
        controls.apply(line).expect("a program accepts it");
    }
    controls.setting(target).to_string()
}

#[test]
fn a_program_obeys_what_is_set_and_cleared() {
    let files = Files::new();
    let file = files.path("controls");
    control("set", &file, &["api=25%", "db=observed", "--reason", "slow since 14:05"]).exits(0);
    assert_eq!((applied(&file, "api"), applied(&file, "db")), ("enforced 25%".into(), "observed".into()));
    assert_eq!(applied(&file, "web"), "enforced", "what was set before is reset");
    let text = fs::read_to_string(&file).unwrap();
    let api = text.lines().find(|line| line.starts_with("api")).unwrap();
    assert!(api.contains("# 20") && api.ends_with("Z operator: slow since 14:05"), "{api}");
    control("set", &file, &["*=no-retries", "--by", "b"]).exits(0);
    assert_eq!((applied(&file, "api"), applied(&file, "web")), ("enforced 25%".into(), "no-retries".into()));
    control("clear", &file, &["api"]).exits(0);
    assert_eq!((applied(&file, "api"), applied(&file, "db")), ("no-retries".into(), "observed".into()));
    control("clear", &file, &[]).exits(0);
    for target in ["api", "db", "web"] {
        assert_eq!(applied(&file, target), "enforced");
    }
}

#[test]
fn a_long_target_is_shown_in_part() {
    let files = Files::new();
    let file = files.write("controls", format!("{}=off\nb=25%\n", "y".repeat(100_000)));
    let seen = control("show", &file, &[]);
    let lines: Vec<_> = seen.exits(0).stdout.lines().collect();
    assert!(lines.iter().any(|line| line.starts_with(&format!("{}...  off", "y".repeat(200)))), "{lines:?}");
    assert!(lines.iter().all(|line| line.len() < 300), "{lines:?}");
}

#[test]
fn an_entry_that_a_program_would_refuse_changes_nothing() {
    let files = Files::new();
    let file = files.write("controls", "api=off  # by hand\n");
    for (entries, message) in [
        (&["api=none"][..], "unknown setting `none`"),
        (&["api"], "has no `=`"),
        (&["api=25%", "db=lots"], "unknown setting `lots`"),
        (&["api=25%", "api=50%"], "api"),
        (&["api=25%; db=off"], "is not one entry"),
        (&["api=25% # why"], "is not one entry"),
        (&[], "needs an entry"),
        (&["api=25%", "--reason", "a\nb=off"], "one line"),
    ] {
        control("set", &file, entries).exits(2).says(message);
        assert_eq!(fs::read_to_string(&file).unwrap(), "api=off  # by hand\n");
    }
    let wrong = files.write("wrong", "nonsense\n");
    for (action, entries) in [("show", &[][..]), ("set", &["api=off"]), ("clear", &[])] {
        control(action, &wrong, entries).exits(2).says("`nonsense` has no `=`");
    }
    assert_eq!(fs::read_to_string(&wrong).unwrap(), "nonsense\n");
    control("show", &files.path("missing"), &[]).exits(125).says("cannot read");
    control("clear", &files.path("missing"), &[]).exits(125).says("cannot read");
    control("show", &files.write("long", "#".repeat(2 << 20)), &[]).exits(125).says("longer than 1 MiB");
}

#[test]
fn a_file_keeps_its_mode_and_a_link_stays_one() {
    let files = Files::new();
    fs::create_dir(files.path("etc")).unwrap();
    let (file, link) = (files.write("etc/controls", ""), files.path("link"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&file, &link).unwrap();
    control("set", &link, &["api=off"]).exits(0);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(applied(&file, "api"), "off");
    assert_eq!(fs::read_dir(files.path("etc")).unwrap().count(), 1, "nothing is left behind");
    control("set", &files.path("new"), &["api=off"]).exits(0);
    assert_eq!(fs::metadata(files.path("new")).unwrap().permissions().mode() & 0o777, 0o644);
}

#[test]
fn controls_are_shown_as_a_table_and_as_json() {
    let files = Files::new();
    let file = files.write("controls", "*=enforced\napi=observed 25%; db=off  # why\n");
    let show = |flags: &[&str]| said(stagger(["control", "show"]).arg(&file).args(flags));
    assert_eq!(show(&[]), "*    enforced\napi  observed 25%  why\ndb   off           why\n");
    let json: serde_json::Value = serde_json::from_str(&show(&["--json"])).unwrap();
    assert_eq!(json["schema"], "stagger.control/1");
    let api = serde_json::json!({"target": "api", "mode": "observed", "share": 0.25, "note": "why"});
    assert_eq!(json["controls"][1], api);
}
