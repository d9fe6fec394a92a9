//! The round trip of a message.

use std::sync::LazyLock;

use bytes::Bytes;
use stagger_ws::Message;
use tokio::io::DuplexStream;
use tokio::net::TcpStream;

use super::echo::OpenConnection;
use super::kinds::{Bare, High, InATask, Low, Served};
use super::{BARE, HIGH, IN_A_TASK, LOW, SERVED};
use crate::case::{Case, Role, Table};

static SHORT: LazyLock<Message> = LazyLock::new(|| Message::Binary(Bytes::from_static(&[b'x'; 64])));
static LONG: LazyLock<Message> = LazyLock::new(|| Message::Binary(Bytes::from_static(&[b'x'; 4 << 10])));

/// Creates a case on a kind of connection that is opened once for all turns of the case.
macro_rules! over {
    ($kind:ty, $message:expr) => {
        |times| {
            thread_local! {
                static OPEN: OpenConnection<$kind> = OpenConnection::open();
            }
            OPEN.with(|open| open.exchange(&$message, times));
        }
    };
}

/// Creates the rows of a table: each kind of connection over this transport.
macro_rules! rows {
    ($table:expr, $wire:ty, $message:expr) => {
        [
            Case::work($table, Role::Bare, BARE, over!(Bare<$wire>, $message)),
            Case::work($table, Role::Floor, IN_A_TASK, over!(InATask<$wire>, $message)),
            Case::work($table, Role::Stagger, LOW, over!(Low<$wire>, $message)),
            Case::work($table, Role::Stagger, HIGH, over!(High<$wire>, $message)),
            Case::work($table, Role::Stagger, SERVED, over!(Served<$wire>, $message)),
        ]
    };
}

/// Returns the rows of the four tables.
pub(super) fn cases() -> Vec<Case> {
    [
        rows!(Table::PipeShort, DuplexStream, SHORT),
        rows!(Table::PipeLong, DuplexStream, LONG),
        rows!(Table::SocketShort, TcpStream, SHORT),
        rows!(Table::SocketLong, TcpStream, LONG),
    ]
    .concat()
}
