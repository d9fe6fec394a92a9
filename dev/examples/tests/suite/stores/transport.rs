use ::object_store::client::{self, HttpError, HttpErrorKind, HttpResponseBody, HttpService};
use ::opendal::{Buffer, ErrorKind, HttpBody, HttpTransport};
use async_trait::async_trait;
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::HttpRequest;
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::TokioExecutor;

/// hyper's client, as the transport of each library.
#[derive(Clone, Debug)]
pub(super) struct Transport(Client<TcpConnector, Full<Bytes>>);

impl Transport {
    pub(super) fn new() -> Self {
        Self(Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http())
    }
}

impl HttpClient for Transport {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Transport {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let client = self.0.clone();
        HttpConnectorFuture::new(async move {
            let request = request.try_into_http1x().unwrap();
            let body = Bytes::copy_from_slice(request.body().bytes().unwrap());
            let response = client.request(request.map(|_| Full::new(body))).await;
            let response = response.map_err(|error| ConnectorError::io(error.into()))?;
            Ok(response.map(SdkBody::from_body_1_x).try_into().unwrap())
        })
    }
}

#[async_trait]
impl HttpService for Transport {
    async fn call(&self, request: client::HttpRequest) -> Result<client::HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let response = self.0.request(http::Request::from_parts(head, Full::new(body))).await;
        let kind = |error: &Error| if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
        let response = response.map_err(|error| HttpError::new(kind(&error), error))?;
        let interrupted = |error| HttpError::new(HttpErrorKind::Interrupted, error);
        Ok(response.map(|body| HttpResponseBody::new(body.map_err(interrupted))))
    }
}

impl client::HttpConnector for Transport {
    fn connect(&self, _: &::object_store::ClientOptions) -> ::object_store::Result<client::HttpClient> {
        Ok(client::HttpClient::new(self.clone()))
    }
}

impl HttpTransport for Transport {
    async fn fetch(&self, request: http::Request<Buffer>) -> ::opendal::Result<http::Response<HttpBody>> {
        let failed = |error: Error| {
            ::opendal::Error::new(ErrorKind::Unexpected, "no response").set_source(error).set_temporary()
        };
        let response = self.0.request(request.map(|body| Full::new(body.to_bytes()))).await.map_err(failed)?;
        let length = http_body::Body::size_hint(response.body()).exact();
        let broken =
            |error| ::opendal::Error::new(ErrorKind::Unexpected, "a broken body").set_source(error).set_temporary();
        Ok(response.map(|body| {
            let body = body.map_frame(|frame| frame.map_data(Buffer::from)).map_err(broken);
            HttpBody::new(body.into_data_stream(), length)
        }))
    }
}
