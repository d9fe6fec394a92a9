//! The adapters for the AWS SDK, object_store and opendal, against a server that answers as the services do. The
//! clients send through hyper's client, without TLS.

mod aws;
mod object_store;
mod opendal;
mod server;
mod transport;
