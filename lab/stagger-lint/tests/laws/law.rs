//! Laws, and their trial.

use std::collections::BTreeMap;
use std::env;

use stagger::Seed;
use stagger_sim::{Progress, Sweep};

/// A statement that holds in all circumstances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    /// What the guide calls it; part of the name of its test.
    pub(crate) name: &'static str,
    /// The statement.
    pub(crate) statement: &'static str,
    /// How many of a hundred cases of `STAGGER_CASES` it gets: the fewer, the longer a case takes.
    pub(crate) share: u32,
    /// Tries it in the circumstances of this seed.
    pub(crate) case: fn(Seed) -> Verdict,
}

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The statement held. The word counts cases of a kind: what was said, or what was found.
    Held(&'static str),
    /// The statement says nothing about this case, for this reason, which is in the guide.
    Silent(&'static str),
    /// The statement was false: the circumstances, and what was found.
    Broken(String),
}

/// The trial of a law in many cases.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trial {
    /// How often each verdict was found.
    pub(crate) counts: BTreeMap<(bool, &'static str), usize>,
    /// The cases in which the law was broken.
    pub(crate) broken: Vec<(u64, String)>,
}

impl Law {
    /// Asserts that the law holds: in its first cases, or in those that `STAGGER_CASES` and `STAGGER_SEED` ask for. Of
    /// the first ones, it says something about so many, and finds each of these words at least so often.
    #[track_caller]
    pub(crate) fn assert_holds(&self, first: u64, tried: usize, words: &[(&'static str, usize)]) {
        self.assert_holds_except(0.0, first, tried, words);
    }

    /// Like [`assert_holds`](Self::assert_holds), but in at most this share of the cases that the law says something
    /// about, it may be broken.
    #[track_caller]
    pub(crate) fn assert_holds_except(&self, share: f64, first: u64, tried: usize, words: &[(&'static str, usize)]) {
        let (cases, seed) = (from_environment("STAGGER_CASES"), from_environment("STAGGER_SEED"));
        let count = match (cases, seed) {
            (Some(cases), _) => cases.saturating_mul(u64::from(self.share)).div_ceil(100).max(1),
            (None, Some(_)) => 1,
            (None, None) => first,
        };
        let start = seed.unwrap_or(0);
        let trial = self.trial(start..start.saturating_add(count));
        println!("{}: {}\n{trial}", self.name, self.statement);
        let few = (share * trial.tried() as f64) as usize;
        if let Some((seed, _)) = trial.broken.get(few) {
            let repeat = format!("STAGGER_SEED={seed} cargo test -p stagger-lint --test laws {}", self.name);
            panic!("the law `{}` is broken in {} of {count} cases\n{trial}\n{repeat}", self.name, trial.broken.len());
        }
        if cases.is_some() || seed.is_some() {
            return;
        }
        assert!(trial.tried() >= tried, "{trial}");
        for (word, least) in words {
            assert!(trial.counts.get(&(true, word)).is_some_and(|count| count >= least), "{word}: {trial}");
        }
    }

    /// Tries the law in the cases with these numbers.
    pub(crate) fn trial(&self, cases: core::ops::Range<u64>) -> Trial {
        let numbers: Vec<u64> = cases.collect();
        let verdicts = Sweep::new()
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

/// Returns a number of the environment.
fn from_environment(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number of cases or of a seed")))
}

impl Trial {
    /// Returns the number of cases about which the law says something.
    pub(crate) fn tried(&self) -> usize {
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
