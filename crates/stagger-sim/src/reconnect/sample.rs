use core::time::Duration;

/// What the sampled clients did, each in the order of time. Times are in microseconds.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pub(super) losses: ClientTimes,
    pub(super) arrivals: ClientTimes,
    pub(super) connects: ClientTimes,
}

/// Times of each client, by its number.
#[derive(Debug, Default)]
pub(super) struct ClientTimes(Vec<Vec<Duration>>);

/// Maximum number of times of one kind that are recorded of a client.
pub(super) const MAX_TIMES: usize = 10_000;

impl ClientTimes {
    #[cold]
    pub(super) fn record(&mut self, id: u32, at: u64) {
        let id = id as usize;
        if id >= self.0.len() {
            self.0.resize(id + 1, Vec::new());
        }
        let times = &mut self.0[id];
        if times.len() < MAX_TIMES {
            times.push(Duration::from_micros(at));
        }
    }

    pub(super) fn into_lists(self) -> Vec<Vec<Duration>> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_client_are_bounded() {
        let mut times = ClientTimes::default();
        (0..).take(MAX_TIMES + 5).for_each(|at| times.record(1, at));
        let lists = times.into_lists();
        assert_eq!(lists[0], []);
        assert_eq!((lists[1].len(), lists[1].last()), (MAX_TIMES, Some(&Duration::from_micros(9_999))));
    }
}
