//! Tests of the protocol: the comparison of the script with its model on a server, and fleets in virtual time.

mod advice;
mod explore;
mod parity;
mod quiet;
mod scenario;
