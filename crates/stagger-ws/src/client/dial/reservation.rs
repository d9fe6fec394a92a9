use std::sync::Mutex;

use http::{HeaderValue, Request, Uri};
use stagger::admission::ReservationToken;
use stagger_http::header::RESERVATION_TOKEN;

use super::dialer::origin;
use crate::sync::lock;

/// The reservation that the next attempt presents to the server that made it. A loop shares it with its attempts, of
/// which there is one at a time.
#[derive(Default)]
pub(in crate::client) struct HeldReservation(Mutex<State>);

#[derive(Default)]
struct State {
    /// Where the last request was sent.
    server: Option<Uri>,
    held: Option<(ReservationToken, Uri)>,
}

impl HeldReservation {
    /// Keeps the token that the server of the last request has given, in place of an earlier one.
    pub(in crate::client) fn keep(&self, token: Option<ReservationToken>) {
        let mut state = lock(&self.0);
        state.held = token.zip(state.server.clone());
    }

    /// Adds the token to a request to its server, once. A header of the request provider takes precedence.
    pub(super) fn present(&self, request: &mut Request<()>) {
        let mut state = lock(&self.0);
        state.server = Some(request.uri().clone());
        let Some((token, _)) = state.held.take_if(|(_, server)| origin(server) == origin(request.uri())) else {
            return;
        };
        drop(state);
        if let Ok(mut value) = HeaderValue::try_from(token.to_string()) {
            value.set_sensitive(true);
            request.headers_mut().entry(RESERVATION_TOKEN).or_insert(value);
        }
    }
}
