//! What a server claims of the rate of an admission, and what the store replies.

/// The whole rate: shares are millionths of it.
pub const WHOLE: u64 = 1_000_000;

/// What a report says about one admission. Lengths are microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShareClaim {
    /// The share that the server uses until the reply, in millionths of the rate.
    pub held: u64,
    /// The weight of the server: its share is its part of the weights of all.
    pub weight: u64,
    /// The largest share that it may have, in millionths.
    pub most: u64,
    /// How far its reservations reach; `None` if the server leaves.
    pub line: Option<u64>,
}

/// The store's reply about one admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShareLease {
    /// The share from now on, in millionths of the rate; 0 if the server has left.
    pub share: u64,
    /// How far the reservations of the fleet reach, in microseconds.
    pub horizon: u64,
    /// The servers that have a share.
    pub processes: u64,
}
