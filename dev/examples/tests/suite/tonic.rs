//! tonic: a server that is down, busy, silent, or gone in the middle of a call.

use core::net::SocketAddr;
use core::time::Duration;

use stagger::{Outcome, ServerHint};
use stagger_http::grpc;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use self::stock::stock_client::StockClient;
use self::stock::stock_server::{Stock, StockServer};
use self::stock::{CountReply, CountRequest, OrderReply, OrderRequest};

#[allow(
    unreachable_pub,
    unused_qualifications,
    clippy::std_instead_of_core,
    reason = "the generator has its own style"
)]
mod stock {
    tonic::include_proto!("stock");
}

/// Counts what it is asked for: it is busy with screws, silent about nails, and knows nothing else.
struct Shelf;

#[tonic::async_trait]
impl Stock for Shelf {
    async fn count(&self, request: Request<CountRequest>) -> Result<Response<CountReply>, Status> {
        match &*request.into_inner().item {
            "screws" => {
                let details = ErrorDetails::with_retry_info(Some(Duration::from_millis(250)));
                Err(Status::with_error_details(tonic::Code::ResourceExhausted, "busy", details))
            }
            "nails" => core::future::pending().await,
            _ => Err(Status::not_found("no such item")),
        }
    }

    async fn order(&self, _: Request<OrderRequest>) -> Result<Response<OrderReply>, Status> {
        Err(Status::unavailable("busy"))
    }
}

async fn count(channel: Channel, item: &str) -> Status {
    StockClient::new(channel).count(CountRequest { item: item.to_owned() }).await.unwrap_err()
}

fn endpoint(address: SocketAddr) -> Endpoint {
    Channel::from_shared(format!("http://{address}")).unwrap()
}

#[tokio::test]
async fn statuses_of_a_server_are_classified_by_code_and_hint() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::builder().add_service(StockServer::new(Shelf));
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));

    let busy = count(endpoint(address).connect_lazy(), "screws").await;
    let hint = Some(ServerHint::AtLeast(Duration::from_millis(250)));
    assert_eq!(grpc::tonic(&busy), Outcome::throttled(hint), "{busy:?}");
    let unknown = count(endpoint(address).connect_lazy(), "glue").await;
    assert_eq!(grpc::tonic(&unknown), Outcome::Permanent, "{unknown:?}");
    // The timeout of the channel has the code CANCELLED.
    let late = count(endpoint(address).timeout(Duration::from_millis(20)).connect_lazy(), "nails").await;
    assert_eq!((late.code(), grpc::tonic(&late)), (tonic::Code::Cancelled, Outcome::TRANSIENT), "{late:?}");
    let order = OrderRequest { item: "screws".to_owned(), pieces: 1 };
    let busy = StockClient::new(endpoint(address).connect_lazy()).order(order).await.unwrap_err();
    assert_eq!(grpc::tonic(&busy), Outcome::TRANSIENT, "{busy:?}");
}

#[tokio::test]
async fn a_server_that_is_down_or_goes_away_is_transient() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let closing = tokio::spawn(async move {
        // Accepts connections, and closes each after the first bytes.
        for _ in 0..2 {
            let (stream, _) = listener.accept().await.unwrap();
            stream.readable().await.unwrap();
        }
    });
    let gone = count(endpoint(address).connect_lazy(), "screws").await;
    assert_eq!(grpc::tonic(&gone), Outcome::TRANSIENT, "{gone:?}");
    closing.abort();
    let _ = closing.await;
    let down = count(endpoint(address).connect_lazy(), "screws").await;
    assert_eq!(grpc::tonic(&down), Outcome::TRANSIENT, "{down:?}");
}
