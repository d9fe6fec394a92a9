use crate::guards::guard::LimiterPermit;

/// What a permit stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::guards) enum Permit {
    /// Nothing: the call was not asked for.
    None,
    /// The call was admitted in this generation.
    Admitted { generation: u64 },
    /// The call is the probe of this generation.
    Probe { generation: u64 },
    /// The call waits in this place, since this time in milliseconds.
    Waiting { place: u32, since: u64 },
}

/// A permit is `generation: 14 bits, kind: 2` for calls that were admitted, and `place: 32, since: 30, kind: 2` for those
/// that wait.
const KIND_BITS: u32 = 2;
const ADMITTED: u64 = 1;
const PROBE: u64 = 2;
const WAITING: u64 = 3;
const SINCE_BITS: u32 = 30;
const SINCE: u64 = (1 << SINCE_BITS) - 1;

impl Permit {
    #[inline]
    pub(in crate::guards) const fn pack(self) -> LimiterPermit {
        LimiterPermit(match self {
            Self::None => 0,
            Self::Admitted { generation } => generation << KIND_BITS | ADMITTED,
            Self::Probe { generation } => generation << KIND_BITS | PROBE,
            Self::Waiting { place, since } => {
                (place as u64) << (SINCE_BITS + KIND_BITS) | (since & SINCE) << KIND_BITS | WAITING
            }
        })
    }

    #[inline]
    pub(in crate::guards) const fn unpack(permit: &LimiterPermit) -> Self {
        let LimiterPermit(bits) = *permit;
        let generation = bits >> KIND_BITS;
        match bits & ((1 << KIND_BITS) - 1) {
            ADMITTED => Self::Admitted { generation },
            PROBE => Self::Probe { generation },
            WAITING => {
                Self::Waiting { place: (bits >> (SINCE_BITS + KIND_BITS)) as u32, since: bits >> KIND_BITS & SINCE }
            }
            _ => Self::None,
        }
    }

    /// Returns for how many nanoseconds a call that waits since `since` has waited: exact up to six days, half of what the
    /// time can hold.
    pub(in crate::guards) const fn waited(since: u64, at: u64) -> u64 {
        let waited = (at / 1_000_000).wrapping_sub(since) & SINCE;
        if waited > SINCE / 2 { 0 } else { waited * 1_000_000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_is_what_was_packed() {
        for permit in [
            Permit::None,
            Permit::Admitted { generation: 1 },
            Permit::Admitted { generation: 0x3fff },
            Permit::Probe { generation: 0x3fff },
            Permit::Waiting { place: 0, since: 0 },
            Permit::Waiting { place: u32::MAX, since: SINCE },
        ] {
            assert_eq!(Permit::unpack(&permit.pack()), permit);
        }
        assert_eq!(Permit::None.pack(), LimiterPermit::NONE);
    }

    #[test]
    fn waits_are_measured_across_the_wraparound() {
        for since in [0, 5, SINCE] {
            for waited in [0_u64, 1, 300_000, SINCE / 2] {
                assert_eq!(Permit::waited(since, (since + waited) * 1_000_000), waited * 1_000_000);
            }
        }
        assert_eq!(Permit::waited(5, 4_000_000), 0, "a clock that steps back");
    }
}
