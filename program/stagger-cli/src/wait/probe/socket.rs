use std::path::Path;

use tokio::net::UnixStream;

use crate::wait::failure::Failure;

/// Connects to a Unix socket, and closes the connection.
pub(super) async fn connect(path: &Path) -> Result<(), Failure> {
    UnixStream::connect(path).await.map(drop).map_err(|error| Failure::io(&error))
}
