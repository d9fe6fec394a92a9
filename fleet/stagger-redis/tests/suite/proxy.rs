//! A way to the store that the test can cut, or lead elsewhere.

use core::net::SocketAddr;
use core::time::Duration;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    To(SocketAddr),
    /// Each way takes so long.
    Far(SocketAddr, Duration),
    /// Bytes disappear, and connections stay open.
    Nowhere,
}

pub(crate) struct Proxy {
    address: SocketAddr,
    way: Arc<Mutex<Way>>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    pub(crate) fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, way) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Way::To(to))));
        let open = Arc::new(Mutex::new(Vec::new()));
        let proxy = Self { address, way: Arc::clone(&way), open: Arc::clone(&open) };
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                open.lock().unwrap().push(client.try_clone().unwrap());
                let current = *way.lock().unwrap();
                let (to, delay) = match current {
                    Way::To(to) => (to, Duration::ZERO),
                    Way::Far(to, delay) => (to, delay),
                    Way::Nowhere => continue,
                };
                let Ok(server) = TcpStream::connect(to) else {
                    let _ = client.shutdown(Shutdown::Both);
                    continue;
                };
                for (mut from, mut to) in [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
                {
                    let (way, begun) = (Arc::clone(&way), current);
                    thread::spawn(move || {
                        let mut buffer = vec![0; 1 << 16];
                        while let Ok(length @ 1..) = from.read(&mut buffer) {
                            thread::sleep(delay);
                            if *way.lock().unwrap() == begun && to.write_all(&buffer[..length]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        proxy
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Leads all traffic there from now on. Connections that are open lose their bytes, unless they lead there already.
    pub(crate) fn lead(&self, way: Way) {
        *self.way.lock().unwrap() = way;
    }

    /// Closes all connections.
    pub(crate) fn close(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
