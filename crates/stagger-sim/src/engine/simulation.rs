/// A simulation that the engines drive: clients with at most one pending event each, and shared state.
pub(crate) trait Simulation {
    type Client: Copy;

    fn client_count(&self) -> u32;

    fn new_client(&self) -> Self::Client;

    /// Returns the time of the first event of this client, in microseconds, if it has one.
    fn first_event(&mut self, id: u32, client: &mut Self::Client) -> Option<u64>;

    /// Handles the event of this client at `at`. Returns the time of its next event, if any, which is at least the
    /// engine's minimum interval later, and at least a microsecond.
    fn handle_event(&mut self, at: u64, id: u32, client: &mut Self::Client) -> Option<u64>;

    /// Returns the number of clients without further events.
    fn finished_clients(&self) -> u64;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cancelled;
