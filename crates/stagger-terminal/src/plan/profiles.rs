use serde::Serialize;
use stagger_core::profile::Profile;

use crate::output::error::CliError;
use crate::output::write::to_json;
use crate::plot::{Column, RenderOptions, paragraph, table};

const COLUMNS: [Column<'static>; 3] =
    [Column::left("name"), Column::left("system").optional(), Column::left("version").optional()];

pub fn text(options: RenderOptions) -> String {
    let rows = Profile::all().map(|profile| vec![profile.name(), profile.title(), profile.version()]);
    let mut out = table(&COLUMNS, rows, options);
    let hint = "`stagger plan -p NAME` shows a profile; flags and settings after the name override it: \
                -p 'aws-sdk max-attempts=5'";
    out.push_str(&paragraph(hint, "", options));
    options.glyphs.transliterate(&out).into_owned()
}

#[derive(Debug, Serialize)]
struct Entry {
    name: &'static str,
    title: &'static str,
    version: &'static str,
    source: &'static str,
    read_on: &'static str,
    policy: String,
}

#[derive(Debug, Serialize)]
struct List {
    schema: &'static str,
    profiles: Vec<Entry>,
}

pub fn json() -> Result<String, CliError> {
    let entry = |profile: &Profile| Entry {
        name: profile.name(),
        title: profile.title(),
        version: profile.version(),
        source: profile.source(),
        read_on: profile.read_on(),
        policy: profile.policy().to_string(),
    };
    let list = List { schema: "stagger.profiles/1", profiles: Profile::all().map(entry).collect() };
    to_json(&list)
}
