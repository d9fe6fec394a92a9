//! Laws, and their trial.

use core::num::NonZeroUsize;
use std::collections::BTreeMap;

use stagger::Seed;
use stagger_sim::{Progress, Sweep};

/// A statement that holds in all circumstances.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    /// What the command line calls it.
    pub name: &'static str,
    /// The statement.
    pub statement: &'static str,
    /// How many of a hundred cases it gets beside the other laws: the fewer, the longer a case takes.
    pub share: u32,
    /// Tries it in the circumstances of this seed.
    pub case: fn(Seed) -> Verdict,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The statement held. The word counts cases of a kind: what was said, or what was found.
    Held(&'static str),
    /// The statement says nothing about this case, for this reason, which is in the guide.
    Silent(&'static str),
    /// The statement was false: the circumstances, and what was found.
    Broken(String),
}

/// The trial of a law in many cases.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// How often each verdict was found.
    pub counts: BTreeMap<(bool, &'static str), usize>,
    /// The cases in which the law was broken.
    pub broken: Vec<(u64, String)>,
}

/// Returns these laws, each with its number of cases: that many in sum, shared by [`Law::share`], and at least one each.
#[must_use]
pub fn shared(laws: Vec<Law>, cases: u64) -> Vec<(Law, u64)> {
    let shares: u64 = laws.iter().map(|law| u64::from(law.share)).sum();
    let of = |law: &Law| (u128::from(cases) * u128::from(law.share)).div_ceil(u128::from(shares.max(1))) as u64;
    laws.into_iter().map(|law| (law, of(&law).max(1))).collect()
}

impl Law {
    /// Tries the law in the cases with these numbers, with this number of threads; all cores if `None`.
    #[must_use]
    pub fn trial(&self, cases: core::ops::Range<u64>, threads: Option<NonZeroUsize>) -> Trial {
        let numbers: Vec<u64> = cases.collect();
        let sweep = threads.map_or(Sweep::new(), |threads| Sweep::new().threads(threads));
        let verdicts = sweep
            .run(&numbers, &[Seed::new(0)], &Progress::new(), |number, _, _| Some((self.case)(Seed::new(*number))));
        let mut trial = Trial::default();
        for (number, verdict) in numbers.into_iter().zip(verdicts.into_iter().flatten().flatten()) {
            match verdict {
                Verdict::Held(word) => *trial.counts.entry((true, word)).or_default() += 1,
                Verdict::Silent(word) => *trial.counts.entry((false, word)).or_default() += 1,
                Verdict::Broken(text) => trial.broken.push((number, text)),
            }
        }
        trial
    }
}

impl Trial {
    /// Returns the number of cases about which the law says something.
    #[must_use]
    pub fn tried(&self) -> usize {
        let held = self.counts.iter().filter(|((held, _), _)| *held).map(|(_, count)| count);
        held.sum::<usize>() + self.broken.len()
    }
}

impl core::fmt::Display for Trial {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for ((held, word), count) in &self.counts {
            writeln!(f, "  {count:>6}  {}{word}", if *held { "" } else { "(says nothing) " })?;
        }
        for (seed, text) in &self.broken {
            writeln!(f, "  BROKEN, seed {seed}: {text}")?;
        }
        Ok(())
    }
}
