//! Section G: the cost of depending on a retry crate: number of crates, build time and size.

mod build;
mod build_directory;
mod dependant;

use std::io;

pub(crate) use build::Build;
use build_directory::BuildDirectory;
use dependant::DEPENDANTS;

use crate::timing::Effort;

/// A dependant with the cost of its build.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct Weight {
    pub(crate) name: &'static str,
    pub(crate) build: Option<Build>,
    /// Size of the stripped program minus that of an empty one, in bytes.
    pub(crate) bytes_over_empty: Option<u64>,
    /// What the program contains, or why it could not be built.
    pub(crate) note: String,
}

/// Builds the dependants from scratch in a temporary directory, without network access.
///
/// They take turns, like the timed cases; the build time of a dependant is that of its fastest round.
///
/// # Errors
/// If the directory cannot be written. A dependant that does not build becomes a row that says so.
pub(crate) fn measure(effort: Effort) -> io::Result<Vec<Weight>> {
    let directory = BuildDirectory::create()?;
    let mut weights: Vec<Weight> = DEPENDANTS
        .iter()
        .map(|dependant| Weight {
            name: dependant.name,
            build: None,
            bytes_over_empty: None,
            note: dependant.note.to_owned(),
        })
        .collect();
    let rounds = match effort {
        Effort::Quick => 1,
        Effort::Thorough => 3,
    };
    for round in 1..=rounds {
        eprintln!("building {} dependants from scratch, round {round} of {rounds} …", DEPENDANTS.len());
        for (weight, dependant) in weights.iter_mut().zip(&DEPENDANTS) {
            match directory.build(dependant)? {
                Ok(build) => weight.build = Some(weight.build.map_or(build, |before| before.faster(build))),
                Err(why) => weight.note = why,
            }
        }
    }
    let empty = weights.first().and_then(|weight| weight.build).map(|build| build.bytes);
    for weight in &mut weights {
        weight.bytes_over_empty = weight.build.zip(empty).map(|(build, empty)| build.bytes.saturating_sub(empty));
    }
    Ok(weights)
}
