use crate::ci::{Note, Options};
use crate::{Result, rooms};

pub(crate) fn run(_: &Options) -> Result<Note> {
    rooms::check().map(Some)
}
