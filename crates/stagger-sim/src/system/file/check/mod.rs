//! What makes the retries between the services of a file cause storms.

mod change;
mod facts;
mod rules;
