use crate::ci::{Note, Options};
use crate::{Result, public_api};

pub(crate) fn run(_: &Options) -> Result<Note> {
    public_api::check().map(Some)
}
