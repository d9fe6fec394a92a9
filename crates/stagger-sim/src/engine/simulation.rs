/// What the engines drive: clients, each with at most one event to come, and what they have in common.
pub(crate) trait Simulation {
    /// What is kept of one client.
    type Client: Copy;

    /// The shortest time from an event of a client to its next, in microseconds; at least 1.
    fn min_event_interval(&self) -> u64;

    /// How many clients there are.
    fn client_count(&self) -> u32;

    /// A client, as it is before anything has happened to it.
    fn new_client(&self) -> Self::Client;

    /// The first event of this client, in microseconds, if it has one.
    fn first_event(&mut self, id: u32, client: &mut Self::Client) -> Option<u64>;

    /// The event of this client has come. Says when its next one is, if there is one: [`shortest`](Self::shortest)
    /// after this one, or later.
    fn handle_event(&mut self, at: u64, id: u32, client: &mut Self::Client) -> Option<u64>;

    /// How many clients are through: nothing more happens to them.
    fn finished_clients(&self) -> u64;
}

/// A run was interrupted before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cancelled;
