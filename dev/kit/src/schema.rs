use std::{env, fs};

/// Asserts that the JSON schema in the file `path` of the crate at `root` is that of `T`.
///
/// After a change, the variable `STAGGER_BLESS=1` writes the file instead.
///
/// # Panics
///
/// If the file has another schema, or cannot be read or written.
#[track_caller]
pub fn assert_published_schema<T: schemars::JsonSchema>(root: &str, path: &str) {
    let path = format!("{root}/{path}");
    let now = serde_json::to_string_pretty(&schemars::schema_for!(T)).expect("a schema is JSON") + "\n";
    if env::var_os("STAGGER_BLESS").is_some() {
        fs::write(&path, &now).expect("the schema is written");
    }
    assert_eq!(fs::read_to_string(&path).expect("the schema file exists"), now);
}
