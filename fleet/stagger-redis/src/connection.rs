use core::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, FromRedisValue, RedisError, ScriptInvocation};
use stagger::text::Outside;
use stagger_lease::process::{CONNECT_TIMEOUT, RESPONSE_TIMEOUT};

/// Finding the primary through Sentinel, or the slots of a cluster, takes several connections.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(1);

/// Where the store is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Address<'a> {
    /// A server, by its URL.
    Server(&'a str),
    /// The primary of a service, by the URLs of its sentinels.
    #[cfg(feature = "sentinel")]
    Sentinel { sentinels: &'a [&'a str], service: &'a str },
    /// A cluster, by the URLs of some of its nodes.
    #[cfg(feature = "cluster")]
    Cluster(&'a [&'a str]),
}

/// The connection to the store. Reconnecting is the task's decision.
pub(crate) struct Connection {
    store: Store,
    open: Option<Open>,
}

enum Store {
    Server(Box<Client>),
    #[cfg(feature = "sentinel")]
    Sentinel(Box<redis::sentinel::SentinelClient>),
    #[cfg(feature = "cluster")]
    Cluster(Box<redis::cluster::ClusterClient>),
}

enum Open {
    Server(MultiplexedConnection),
    #[cfg(feature = "cluster")]
    Cluster(Box<redis::cluster_async::ClusterConnection>),
}

impl Connection {
    /// Creates a connection, which is not opened yet.
    ///
    /// # Errors
    /// What is wrong with the address.
    pub(crate) fn new(address: Address<'_>) -> Result<Self, String> {
        #[cfg(feature = "rustls")]
        use_tls_provider();
        let store = Store::at(address).map_err(|error| text(&error))?;
        Ok(Self { store, open: None })
    }

    pub(crate) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Opens the connection if it is not open.
    ///
    /// # Errors
    /// The reason, in words.
    pub(crate) async fn open(&mut self) -> Result<(), String> {
        if self.open.is_none() {
            let opened = tokio::time::timeout(DISCOVERY_TIMEOUT, self.store.open()).await;
            let opened = opened.map_err(|_| "connecting took more than a second".to_owned())?;
            self.open = Some(opened.map_err(|error| text(&error))?);
        }
        Ok(())
    }

    /// Calls a script, and returns the reply. After an error the connection is closed: the store may have become a
    /// replica, or hang.
    ///
    /// # Errors
    /// The reason, in words.
    pub(crate) async fn call<T: FromRedisValue>(&mut self, call: &ScriptInvocation<'_>) -> Result<T, String> {
        // Taken, so that a call that is dropped closes it as well.
        let mut open = self.open.take().ok_or("there is no connection")?;
        let reply = match &mut open {
            Open::Server(connection) => call.invoke_async(connection).await,
            #[cfg(feature = "cluster")]
            Open::Cluster(connection) => call.invoke_async(connection.as_mut()).await,
        };
        let reply = reply.map_err(|error| text(&error))?;
        self.open = Some(open);
        Ok(reply)
    }

    /// Closes the connection.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }
}

impl Store {
    fn at(address: Address<'_>) -> Result<Self, RedisError> {
        Ok(match address {
            Address::Server(url) => Self::Server(Box::new(Client::open(url)?)),
            #[cfg(feature = "sentinel")]
            Address::Sentinel { sentinels, service } => Self::Sentinel(Box::new(sentinel(sentinels, service)?)),
            #[cfg(feature = "cluster")]
            Address::Cluster(nodes) => {
                let builder = redis::cluster::ClusterClientBuilder::new(nodes.iter().copied()).retries(0);
                let builder = builder.connection_timeout(CONNECT_TIMEOUT).response_timeout(RESPONSE_TIMEOUT);
                Self::Cluster(Box::new(builder.build()?))
            }
        })
    }

    async fn open(&mut self) -> Result<Open, RedisError> {
        let config = AsyncConnectionConfig::new();
        let config = config.set_connection_timeout(Some(CONNECT_TIMEOUT)).set_response_timeout(Some(RESPONSE_TIMEOUT));
        Ok(match self {
            Self::Server(client) => Open::Server(client.get_multiplexed_async_connection_with_config(&config).await?),
            #[cfg(feature = "sentinel")]
            Self::Sentinel(client) => Open::Server(client.get_async_connection_with_config(&config).await?),
            #[cfg(feature = "cluster")]
            Self::Cluster(client) => Open::Cluster(Box::new(client.get_async_connection().await?)),
        })
    }
}

/// Returns a client for the primary of a service. The URL of the service has its name as the host, and how to connect
/// to its servers: user, password, database, TLS.
#[cfg(feature = "sentinel")]
fn sentinel(sentinels: &[&str], service: &str) -> Result<redis::sentinel::SentinelClient, RedisError> {
    use redis::sentinel::{SentinelClient, SentinelNodeConnectionInfo, SentinelServerType};
    use redis::{ConnectionAddr, ErrorKind, IntoConnectionInfo, TlsMode};

    let info = service.into_connection_info()?;
    let servers = SentinelNodeConnectionInfo::default().set_redis_connection_info(info.redis_settings().clone());
    let (name, servers) = match info.addr() {
        ConnectionAddr::Tcp(name, _) => (name, servers),
        ConnectionAddr::TcpTls { host, .. } => (host, servers.set_tls_mode(TlsMode::Secure)),
        _ => return Err((ErrorKind::InvalidClientConfig, "the service has no name").into()),
    };
    SentinelClient::build(sentinels.to_vec(), name.clone(), Some(servers), SentinelServerType::Master)
}

/// Sets the provider of TLS if the program has none: without one, connecting would panic.
#[cfg(feature = "rustls")]
fn use_tls_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error says that another thread has set one.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// Returns the error in words, of a length that suits a log.
fn text(error: &RedisError) -> String {
    Outside(&error.to_string()).to_string()
}
