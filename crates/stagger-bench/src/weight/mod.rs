//! Section G: what it costs to depend on a retry crate: crates, build time, size.

mod build;
mod dependant;
mod workshop;

use std::io;

pub(crate) use build::Build;
use dependant::DEPENDANTS;
use workshop::Workshop;

use crate::timing::Effort;

/// One dependant, with what its build cost.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct Weight {
    pub(crate) name: &'static str,
    pub(crate) build: Option<Build>,
    /// Bytes of the stripped program over an empty one.
    pub(crate) bytes_over_empty: Option<u64>,
    /// What is in it, or why it could not be built.
    pub(crate) note: String,
}

/// Builds the dependants, clean, in a temporary directory, without the network.
///
/// They take turns, like the cases that are timed; a dependant's build time is that of its fastest round.
///
/// # Errors
/// If the directory cannot be written. A dependant that does not build becomes a row that says so.
pub(crate) fn measure(effort: Effort) -> io::Result<Vec<Weight>> {
    let workshop = Workshop::open()?;
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
        eprintln!("building {} dependants from nothing, round {round} of {rounds} …", DEPENDANTS.len());
        for (weight, dependant) in weights.iter_mut().zip(&DEPENDANTS) {
            match workshop.build(dependant)? {
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
