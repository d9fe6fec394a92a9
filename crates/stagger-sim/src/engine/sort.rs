/// Bins with fewer events are sorted by comparison, which costs less than clearing the counters.
const COMPARISON_SORT_BELOW: usize = 64;

/// Bins with at least this many events have several in each microsecond, so one pass over all microseconds is cheapest.
const SINGLE_PASS_FROM: usize = 1 << 13;

/// Sorts the keys of a bin, whose high bits are the microsecond within the bin.
///
/// Uses a counting sort by microsecond, then sorts the few keys that share a microsecond.
pub(super) struct KeySorter {
    /// Number and position of the bits of the microsecond.
    bits: u32,
    from: u32,
    /// End position of the keys with each digit.
    ends: Vec<u32>,
    scratch: Vec<u64>,
}

impl KeySorter {
    /// Creates a sorter for keys with `bits` bits of time above `from` other bits.
    pub(super) fn new(bits: u32, from: u32) -> Self {
        Self { bits, from, ends: vec![0; 1 << bits], scratch: Vec::new() }
    }

    pub(super) fn sort(&mut self, keys: &mut Vec<u64>) {
        match keys.len() {
            ..COMPARISON_SORT_BELOW => return keys.sort_unstable(),
            COMPARISON_SORT_BELOW..SINGLE_PASS_FROM => {
                let low = self.bits.div_ceil(2);
                self.pass(keys, low, self.from);
                self.pass(keys, self.bits - low, self.from + low);
            }
            _ => self.pass(keys, self.bits, self.from),
        }
        insertion_sort(keys);
    }

    /// Performs a stable counting sort by `bits` bits from position `from`.
    fn pass(&mut self, keys: &mut Vec<u64>, bits: u32, from: u32) {
        let mask = (1 << bits) - 1;
        let digit = |key: u64| (key >> from) as usize & mask;
        let ends = &mut self.ends[..=mask];
        ends.fill(0);
        for &key in &*keys {
            ends[digit(key)] += 1;
        }
        let mut sum = 0;
        for end in ends.iter_mut() {
            sum += core::mem::replace(end, sum);
        }
        // The contents are overwritten completely.
        self.scratch.resize(keys.len(), 0);
        for &key in &*keys {
            let end = &mut ends[digit(key)];
            self.scratch[*end as usize] = key;
            *end += 1;
        }
        core::mem::swap(keys, &mut self.scratch);
    }
}

/// Mean number of moves per key above which keys are not nearly sorted: thousands in each microsecond.
const MAX_MOVES_PER_KEY: usize = 16;

/// Sorts nearly sorted keys, in which only keys of the same microsecond are out of order.
fn insertion_sort(keys: &mut [u64]) {
    let mut moves = 0;
    for at in 1..keys.len() {
        let key = keys[at];
        let mut to = at;
        while to > 0 && keys[to - 1] > key {
            keys[to] = keys[to - 1];
            to -= 1;
        }
        keys[to] = key;
        moves += at - to;
        if moves > MAX_MOVES_PER_KEY * keys.len() {
            return keys.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_keys_is_sorted() {
        for bits in [0, 1, 7, 10] {
            let (mut sorter, few, many) = (KeySorter::new(bits, 50), COMPARISON_SORT_BELOW, SINGLE_PASS_FROM);
            for count in [0, 1, 2, few - 1, few, 1_000, many - 1, many, 20_000] {
                // Every microsecond many times; the other bits in no order.
                let key = |n: u64| (n * 31 % (1 << bits)) << 50 | (n * 7_919 % 50_021);
                let mut keys: Vec<_> = (0..count as u64).map(key).collect();
                let mut want = keys.clone();
                want.sort_unstable();
                sorter.sort(&mut keys);
                assert!(keys == want, "{count} keys of {bits} bits");
            }
        }
    }
}
