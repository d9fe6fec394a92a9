use super::chunks::{Bin, Chunks};
use super::event::Event;

/// Bins with fewer events than this are sorted by comparison: the counters of the other way would cost more to clear.
const FEW: usize = 1 << 11;

/// Puts the events of a bin into order.
pub(super) struct Order {
    /// The bits of the time that differ within a bin.
    bits: u32,
    /// Where the events of each microsecond end.
    ends: Vec<u32>,
}

impl Order {
    pub(super) fn new(bits: u32) -> Self {
        Self { bits, ends: vec![0; 1 << bits] }
    }

    /// The events of `bin` in the order of time and client, into `out`.
    pub(super) fn put(&mut self, chunks: &Chunks, bin: Bin, out: &mut Vec<Event>) {
        out.clear();
        let count = chunks.slices(bin).map(<[Event]>::len).sum::<usize>();
        if count < FEW {
            chunks.slices(bin).for_each(|slice| out.extend_from_slice(slice));
            out.sort_unstable();
        } else {
            out.resize(count, Event::new(0, 0));
            self.count(chunks, bin, out);
        }
    }

    /// A counting sort on the microsecond, and a sort by client where several share one.
    fn count(&mut self, chunks: &Chunks, bin: Bin, out: &mut [Event]) {
        let mask = (1 << self.bits) - 1;
        let tick = |event: Event| (event.at() & mask) as usize;
        self.ends.fill(0);
        for &event in chunks.slices(bin).flatten() {
            self.ends[tick(event)] += 1;
        }
        let mut sum = 0;
        for end in &mut self.ends {
            let count = *end;
            *end = sum;
            sum += count;
        }
        for &event in chunks.slices(bin).flatten() {
            let end = &mut self.ends[tick(event)];
            out[*end as usize] = event;
            *end += 1;
        }
        let mut begin = 0;
        for &end in &self.ends {
            if end - begin > 1 {
                out[begin as usize..end as usize].sort_unstable();
            }
            begin = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_events_come_out_in_order() {
        for count in [0_u64, 1, 2, 100, FEW as u64 - 1, FEW as u64, 20_000] {
            let (mut chunks, mut bin) = (Chunks::new(count as usize, 1), Bin::default());
            // Every one of the 1024 microseconds many times, clients in no order.
            let mut want: Vec<_> =
                (0..count).map(|n| Event::new((7 << 10) + n * 31 % 1_024, (n * 7_919 % 50_021) as u32)).collect();
            want.iter().for_each(|&event| chunks.push(&mut bin, event));
            want.sort_unstable();
            let mut got = Vec::new();
            Order::new(10).put(&chunks, bin, &mut got);
            assert!(got == want, "{count} events");
        }
    }
}
