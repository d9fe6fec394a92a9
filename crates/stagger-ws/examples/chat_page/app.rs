//! The application: the page, and the room.

use std::path::Path;

use axum::Router;
use axum::routing::any;
use stagger::admission::{Admission, random_secret};
use stagger_ws::BoxError;
use stagger_ws::server::{RejectBy, Sockets};

use super::room::Room;

/// How many browsers are let in per second. The others are told when their turn is.
const PER_SECOND: u32 = 20;

/// Returns the application: these pages, and the room whose lines are in a file if there is one.
///
/// # Errors
/// If the file cannot be read or written, or has something else in it.
pub(crate) fn app(pages: Router<Sockets>, file: Option<&Path>) -> Result<Router, BoxError> {
    let admission = Admission::per_second(PER_SECOND).build(random_secret())?;
    // A browser shows a page what is in a close frame, and nothing of a response with the status 503.
    let sockets = Sockets::builder(admission).max_connections(10_000).reject_by(RejectBy::browser).build()?;
    let room = Room::open(file)?;
    let join = move |query, upgrade| room.clone().join(query, upgrade);
    Ok(pages.route("/room", any(join)).with_state(sockets))
}
