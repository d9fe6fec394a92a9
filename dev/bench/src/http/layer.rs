//! The service alone, and the cost that the layer adds.

use stagger::budget::Tokens;
use stagger::{Policy, Retrier, policy};
use stagger_http::tower::RetryLayer;
use tower_layer::Layer as _;

use super::messages::{GET, Message, PUT, Server, send};
use super::{GUARDED, RETRIES};
use crate::case::{Case, Role, Table};

const POLICY: Policy = policy!(exponential(ms(100), secs(30)).max_attempts(4));

/// Returns the rows of the service alone and of this project.
pub(super) fn cases() -> Vec<Case> {
    let get = |role, name, run| Case::work(Table::LayerGet, role, name, run);
    let put = |role, name, run| Case::work(Table::LayerPut, role, name, run);
    vec![
        get(Role::Bare, "service alone", |iterations| send(Server, &GET, iterations)),
        get(Role::Stagger, RETRIES, |iterations| retries(Retrier::new(POLICY), &GET, iterations)),
        get(Role::Stagger, GUARDED, |iterations| retries(guarded(), &GET, iterations)),
        put(Role::Bare, "service alone", |iterations| send(Server, &PUT, iterations)),
        put(Role::Stagger, RETRIES, |iterations| retries(Retrier::new(POLICY), &PUT, iterations)),
        put(Role::Stagger, GUARDED, |iterations| retries(guarded(), &PUT, iterations)),
    ]
}

fn retries(retrier: Retrier, message: &Message, iterations: u64) {
    send(RetryLayer::new(retrier).layer(Server), message, iterations);
}

fn guarded() -> Retrier {
    Retrier::new(POLICY).budget(Tokens::default())
}
