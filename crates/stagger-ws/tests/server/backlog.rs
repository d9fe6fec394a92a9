//! The backlog of the listener.

use core::time::Duration;

use stagger_ws::server::listen;
use tokio::net::TcpStream;
use tokio::time::timeout;

// Linux queues one connection more than the backlog. It does not answer further ones, whose SYN is sent again after a
// second.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn beyond_the_backlog_the_kernel_does_not_answer() {
    let listener = listen(([127, 0, 0, 1], 0).into(), 3).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    for _ in 0..4 {
        waiting.push(TcpStream::connect(address).await.unwrap());
    }
    assert!(timeout(Duration::from_millis(300), TcpStream::connect(address)).await.is_err());
}

#[tokio::test]
async fn an_address_in_use_is_an_error_and_can_be_reused_after_the_close() {
    let listener = listen(([127, 0, 0, 1], 0).into(), 16).unwrap();
    let address = listener.local_addr().unwrap();
    assert_eq!(listen(address, 16).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    let client = TcpStream::connect(address).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    // The side that closes first keeps the address in TIME_WAIT.
    drop((accepted, listener, client));
    listen(address, 16).unwrap();
    listen("[::1]:0".parse().unwrap(), 16).unwrap();
}
