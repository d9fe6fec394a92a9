use crate::ci::{Note, Options};
use crate::{Result, type_parameters};

pub(crate) fn run(_: &Options) -> Result<Note> {
    type_parameters::check().map(Some)
}
