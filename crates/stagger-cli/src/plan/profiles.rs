use serde::Serialize;
use stagger_core::profile::Profile;

use crate::error::CliError;
use crate::output::to_json;
use crate::plot::{Align, Column, Keep, Look, paragraph, table};

const COLUMNS: [Column; 3] = [
    Column { heading: "name", align: Align::Left, keep: Keep::Always },
    Column { heading: "whose", align: Align::Left, keep: Keep::WithRoom },
    Column { heading: "read at", align: Align::Left, keep: Keep::WithRoom },
];

/// The named policies, for people.
pub(super) fn text(look: Look) -> String {
    let rows: Vec<Vec<String>> = Profile::all()
        .map(|profile| [profile.name(), profile.title(), profile.version()].map(str::to_owned).to_vec())
        .collect();
    let mut out = table(&COLUMNS, &rows, look);
    let hint = "`stagger plan -p NAME` shows one; flags and settings after the name override it: \
                -p 'aws-sdk max-attempts=5'";
    out.push_str(&paragraph(hint, "", look));
    look.glyphs.spell(&out).into_owned()
}

#[derive(Debug, Serialize)]
struct Entry {
    name: &'static str,
    title: &'static str,
    version: &'static str,
    source: &'static str,
    read: &'static str,
    policy: String,
}

#[derive(Debug, Serialize)]
struct List {
    schema: &'static str,
    profiles: Vec<Entry>,
}

/// The same as JSON.
///
/// # Errors
/// It cannot be written.
pub(super) fn json() -> Result<String, CliError> {
    let entry = |profile: &Profile| Entry {
        name: profile.name(),
        title: profile.title(),
        version: profile.version(),
        source: profile.source(),
        read: profile.read_on(),
        policy: profile.policy().to_string(),
    };
    let list = List { schema: "stagger.profiles/1", profiles: Profile::all().map(entry).collect() };
    to_json(&list)
}
