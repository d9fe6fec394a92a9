use core::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, FromRedisValue, RedisError, ScriptInvocation,
    ServerErrorKind,
};
use stagger::text::Outside;

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
    /// How long a reply may take.
    limit: Duration,
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
    /// Creates a connection, which is not opened yet. A reply must come within `limit`.
    ///
    /// # Errors
    /// What is wrong with the address.
    pub(crate) fn new(address: Address<'_>, limit: Duration) -> Result<Self, String> {
        #[cfg(feature = "rustls")]
        use_tls_provider();
        let store = Store::at(address).map_err(|error| Outside(&error.to_string()).to_string())?;
        Ok(Self { store, open: None, limit })
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
            let opened = tokio::time::timeout(discovery_limit(self.limit), self.store.open(self.limit)).await;
            self.open = Some(match opened {
                Ok(Ok(open)) => open,
                Ok(Err(error)) if !error.is_timeout() => return Err(self.reason_not_open(&error)),
                Ok(Err(_)) => return Err(self.no_connection_within(connection_limit(self.limit))),
                Err(_) => return Err(self.no_connection_within(discovery_limit(self.limit))),
            });
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
        match reply {
            Ok(reply) => {
                self.open = Some(open);
                Ok(reply)
            }
            Err(error) if error.is_timeout() => Err(format!("there was no reply within {:?}", self.limit)),
            Err(error) => Err(reason(&error)),
        }
    }

    /// Closes the connection.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    fn no_connection_within(&self, limit: Duration) -> String {
        let hint = if self.store.has_tls() { ": use redis:// if this port has no TLS" } else { "" };
        format!("there was no connection within {limit:?}{hint}")
    }

    fn reason_not_open(&self, error: &RedisError) -> String {
        let is_closed = error.is_connection_dropped() && !error.is_connection_refusal();
        if is_closed && !self.store.has_tls() {
            return "the server closes the connection: use rediss:// if this port has TLS".to_owned();
        }
        reason(error)
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
                Self::Cluster(Box::new(builder.build()?))
            }
        })
    }

    fn has_tls(&self) -> bool {
        match self {
            Self::Server(client) => matches!(client.get_connection_info().addr(), ConnectionAddr::TcpTls { .. }),
            // The error does not say which of their servers it is about.
            #[cfg(feature = "sentinel")]
            Self::Sentinel(_) => false,
            #[cfg(feature = "cluster")]
            Self::Cluster(_) => false,
        }
    }

    async fn open(&mut self, limit: Duration) -> Result<Open, RedisError> {
        let config = AsyncConnectionConfig::new();
        let config = config.set_connection_timeout(Some(connection_limit(limit))).set_response_timeout(Some(limit));
        Ok(match self {
            Self::Server(client) => Open::Server(client.get_multiplexed_async_connection_with_config(&config).await?),
            #[cfg(feature = "sentinel")]
            Self::Sentinel(client) => Open::Server(client.get_async_connection_with_config(&config).await?),
            #[cfg(feature = "cluster")]
            Self::Cluster(client) => {
                let config = redis::cluster::ClusterConfig::new().set_connection_timeout(connection_limit(limit));
                let config = config.set_response_timeout(limit);
                Open::Cluster(Box::new(client.get_async_connection_with_config(config).await?))
            }
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

/// Returns how long a connection may take: it takes two round trips, and with TLS one or two more.
const fn connection_limit(reply: Duration) -> Duration {
    reply.saturating_mul(2)
}

/// Returns how long finding the primary through Sentinel, or the slots of a cluster, may take: several connections.
const fn discovery_limit(reply: Duration) -> Duration {
    reply.saturating_mul(4)
}

/// Returns the reason why there was no reply: what is wrong, and how to mend it, in one line.
fn reason(error: &RedisError) -> String {
    let text = error.to_string();
    // A request as long as a report is not even read without a password.
    let asks_for_password = error.code() == Some("NOAUTH") || text.contains("unauthenticated");
    let known = match error.kind() {
        _ if asks_for_password => "the store asks for a password: write it into the address, redis://:password@host",
        ErrorKind::AuthenticationFailed => "the store rejects the name or the password of the address",
        ErrorKind::Parse => "what answers at this address is not Redis",
        ErrorKind::Server(ServerErrorKind::Moved | ServerErrorKind::Ask) => {
            "the store is a node of a cluster, and another node has the keys: use Fleet::cluster, or one server"
        }
        ErrorKind::Server(ServerErrorKind::ReadOnly) => {
            "the store is a replica, which takes no writes: use the address of its primary"
        }
        ErrorKind::Server(ServerErrorKind::NoPerm) => {
            return format!("{}: allow the commands that the documentation of stagger-redis names", Outside(&text));
        }
        _ => return Outside(&text).to_string(),
    };
    known.to_owned()
}
