use core::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, Script};

use crate::lease::claim::{Claim, Reply, Report, Timing};
use crate::store::keys::Keys;
use crate::store::script::{self, SOURCE};

/// A store that hangs answers neither; without these limits nothing would fall back.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
const RESPONSE_TIMEOUT: Duration = Duration::from_millis(250);

/// The longest text of an error that is kept, in bytes.
const LONGEST_ERROR: usize = 200;

/// The connection to the store. Reconnecting is the task's decision.
#[derive(Debug)]
pub(crate) struct Connection {
    client: Client,
    script: Script,
    open: Option<MultiplexedConnection>,
}

impl Connection {
    /// Creates a connection, which is not opened yet.
    ///
    /// # Errors
    /// What is wrong with the address.
    pub(crate) fn new(url: &str) -> Result<Self, String> {
        let client = Client::open(url).map_err(|error| text(&error))?;
        Ok(Self { client, script: Script::new(SOURCE), open: None })
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
            let config = AsyncConnectionConfig::new();
            let config =
                config.set_connection_timeout(Some(CONNECT_TIMEOUT)).set_response_timeout(Some(RESPONSE_TIMEOUT));
            let opened = self.client.get_multiplexed_async_connection_with_config(&config).await;
            self.open = Some(opened.map_err(|error| text(&error))?);
        }
        Ok(())
    }

    /// Reports on targets, and returns the reply. After an error the connection is closed: the store may have become a
    /// replica, or hang.
    ///
    /// # Errors
    /// The reason, in words.
    pub(crate) async fn report(
        &mut self,
        id: u64,
        report: &Report,
        timing: &Timing,
        claims: &[(&Keys, Claim)],
    ) -> Result<Reply, String> {
        // Taken, so that a report that is dropped closes it as well.
        let mut open = self.open.take().ok_or("there is no connection")?;
        let call = script::invocation(&self.script, id, report, timing, claims);
        let values: Vec<i64> = call.invoke_async(&mut open).await.map_err(|error| text(&error))?;
        let reply = script::reply(&values, claims.len()).ok_or("the reply is not one of the script")?;
        self.open = Some(open);
        Ok(reply)
    }
}

/// Returns the error in words, of a length that suits a log.
fn text(error: &RedisError) -> String {
    let mut text = error.to_string();
    if text.len() > LONGEST_ERROR {
        let end = (0..=LONGEST_ERROR).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
