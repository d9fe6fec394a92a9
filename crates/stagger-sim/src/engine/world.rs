/// What the engines drive: clients, each with at most one event to come, and what they have in common.
pub(crate) trait World {
    /// What is kept of one client.
    type Client: Copy;

    /// The shortest time from an event of a client to its next, in microseconds; at least 1.
    fn shortest(&self) -> u64;

    /// How many clients there are.
    fn count(&self) -> u32;

    /// A client, as it is before anything has happened to it.
    fn client(&self) -> Self::Client;

    /// The first event of this client, in microseconds, if it has one.
    fn begin(&mut self, id: u32, client: &mut Self::Client) -> Option<u64>;

    /// The event of this client has come. Says when its next one is, if there is one: [`shortest`](Self::shortest)
    /// after this one, or later.
    fn event(&mut self, at: u64, id: u32, client: &mut Self::Client) -> Option<u64>;

    /// How many clients are through: nothing more happens to them.
    fn through(&self) -> u64;
}

/// A run was interrupted before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupted;
