//! Admission: who may come in, and when the others should come back.

mod queue;
mod storm;
mod text;
