use core::time::Duration;
use std::sync::Arc;

use http::header::{AUTHORIZATION, COOKIE, HOST};
use http::{Request, Response, Uri};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::connector::{AnyConnector, Io};
use super::request::{ConnectAttempt, Provider, complete, redirected};
use super::{ConnectionError, observe};

/// A socket whose handshake is done.
pub(super) type Socket = WebSocketStream<Box<dyn Io>>;

/// How a connection is made: what every attempt has in common.
#[derive(Clone)]
pub(super) struct Route {
    pub(super) provider: Provider,
    pub(super) connector: Arc<dyn AnyConnector>,
    pub(super) socket: WebSocketConfig,
    pub(super) connect_timeout: Duration,
    pub(super) redirects: u32,
}

impl Route {
    /// One attempt, from the request to the end of the handshake.
    pub(super) async fn connect(
        self: Arc<Self>,
        attempt: ConnectAttempt,
    ) -> Result<(Socket, Response<()>), ConnectionError> {
        let after = self.connect_timeout;
        timeout(after, self.follow(attempt)).await.unwrap_or(Err(ConnectionError::ConnectTimeout { after }))
    }

    async fn follow(&self, attempt: ConnectAttempt) -> Result<(Socket, Response<()>), ConnectionError> {
        let mut request =
            (self.provider)(attempt).await.map_err(|error| match error.downcast::<ConnectionError>() {
                Ok(cause) => *cause,
                Err(error) => ConnectionError::Request(Arc::from(error)),
            })?;
        let mut redirects = 0;
        loop {
            observe::host(request.uri());
            let refusal = match self.upgrade(request.clone()).await {
                Err(ConnectionError::Rejected(refusal)) if refusal.status().is_redirection() => refusal,
                done => return done,
            };
            let to = refusal.location().and_then(|to| redirected(request.uri(), to));
            match to {
                Some(to) if redirects < self.redirects => point(&mut request, to),
                _ => return Err(ConnectionError::Rejected(refusal)),
            }
            redirects += 1;
        }
    }

    async fn upgrade(&self, request: Request<()>) -> Result<(Socket, Response<()>), ConnectionError> {
        let request = complete(request)?;
        let io = self.connector.connect_any(request.uri().clone()).await.map_err(ConnectionError::io)?;
        let (socket, response) =
            client_async_with_config(request, io, Some(self.socket)).await.map_err(ConnectionError::of)?;
        let mut response = response.map(drop);
        // They are kept for as long as the connection: without the room for more of them.
        let headers = response.headers().clone();
        *response.headers_mut() = headers;
        Ok((socket, response))
    }
}

/// Points a request to another place. What was meant for one host's eyes is not shown to another.
fn point(request: &mut Request<()>, to: Uri) {
    request.headers_mut().remove(HOST);
    if request.uri().authority() != to.authority() {
        request.headers_mut().remove(AUTHORIZATION);
        request.headers_mut().remove(COOKIE);
    }
    *request.uri_mut() = to;
}
