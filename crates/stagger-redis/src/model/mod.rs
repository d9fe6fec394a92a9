//! Tests of the protocol: a model of the script, the comparison of the two on a server, and the exploration of the model.

mod bucket;
mod explore;
mod parity;
mod quiet;
mod scenario;
