//! Estimates how often a random process collapses, by importance splitting with a fixed number of trials at each level.
//!
//! A collapse that happens once in years is out of reach of plain runs, but the way to it is not: of the states in which a
//! queue is unusually long, one in a few gets longer still. Trials therefore start from states at a level and end at the
//! next level, at a collapse, or when the process is back to normal; the states at which they reach the next level are the
//! starts of its trials. The rate of collapses is the rate at which the first level is reached, times the shares.
//!
//! Source: the fixed-effort method, in the form of forward flux sampling (R. Allen, C. Valeriani, P. ten Wolde, "Forward
//! flux sampling for rare event simulations", J. Phys.: Condens. Matter 21, 2009). The process may collapse from any level,
//! and returns to its start after a collapse: by the renewal theorem, the rate is then 1 over the mean time to a collapse,
//! rare or not. The estimate of the number of collapses in a run is unbiased for any levels; they only change its variance.

use stagger_core::Seed;

use crate::engine::progress::Progress;
use crate::system::state::Stream;

/// A random process that can be copied in the midst of a run.
pub(super) trait Process: Sized {
    /// Returns a copy whose future is drawn with this seed.
    fn fork(&self, seed: Seed) -> Self;

    /// Advances to the next event.
    fn step(&mut self);

    /// Returns the time since the start, in seconds.
    fn now(&self) -> f64;

    /// Returns how close the process is to a collapse, in any unit.
    fn level(&self) -> f64;

    /// Returns whether the process has collapsed.
    fn has_collapsed(&self) -> bool;
}

/// The levels of an estimate, and its effort.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// The level at or below which the process is back to normal.
    pub(super) normal: f64,
    /// Levels in increasing order; plain runs if there are none.
    pub(super) levels: Vec<f64>,
    /// Trials from each level.
    pub(super) trials: u32,
    /// Time before it is counted how often the first level is reached, in seconds.
    pub(super) warm_up: f64,
    /// Length of the run that counts it, after that time.
    pub(super) length: f64,
}

/// What one estimate found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Count {
    /// The expected number of collapses in the run.
    pub(super) collapses: f64,
    /// The most that one more collapse in the trials of the last level would add.
    pub(super) resolution: f64,
    /// Length of the run, in seconds.
    pub(super) seconds: f64,
    /// Trials that ended neither way within [`MAX_STEPS`].
    pub(super) undecided: u64,
}

/// How a trial ended.
enum End<P> {
    Collapsed,
    /// The next level is reached.
    Reached(P),
    Normal,
    Undecided,
}

/// The share of the trials that are to reach the next level.
const SHARE: f64 = 0.25;
/// A level must be reached by this many trials: with fewer, the next one would be drawn from too few states.
const LEAST_REACHED: usize = 10;
const MAX_LEVELS: usize = 200;
/// The warm-up, as a share of the counted time: dozens of times what it takes to come back to normal.
const WARM_UP: f64 = 0.2;
/// Steps of the run that measures what is normal.
const PILOT_STEPS: u64 = 200_000;
/// The most steps of a trial.
const MAX_STEPS: u64 = 10_000_000;
/// Steps between two questions whether the estimate is cancelled.
const ASK_EVERY: u64 = 1 << 14;

/// Chooses the levels for a process that starts like `start`. Returns `None` if it was cancelled.
///
/// The estimates that follow use other random numbers, so that choosing the levels does not bias them.
pub(super) fn plan<P: Process>(start: &P, trials: u32, seed: Seed, progress: &Progress) -> Option<Plan> {
    let mut random = Stream::new(seed);
    let mut levels_seen = Vec::with_capacity(PILOT_STEPS as usize);
    let mut process = start.fork(Seed::new(random.bits()));
    let mut seconds = 0.0;
    for step in 0..PILOT_STEPS {
        process.step();
        levels_seen.push(process.level());
        if process.has_collapsed() {
            seconds += process.now();
            process = start.fork(Seed::new(random.bits()));
        }
        if step % ASK_EVERY == 0 && progress.is_cancelled() {
            return None;
        }
    }
    seconds += process.now();
    let mut sorted = levels_seen.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let normal = sorted[sorted.len() / 2];
    let rare = sorted[sorted.len() * 19 / 20];
    let first = sorted.iter().copied().find(|&level| level > normal && level >= rare);
    let Some(first) = first else {
        return Some(Plan { normal, levels: Vec::new(), trials, warm_up: 0.0, length: seconds });
    };
    let (mut is_out, mut crossings) = (false, 0_u32);
    for level in levels_seen {
        crossings += u32::from(!is_out && level >= first);
        is_out = if is_out { level > normal } else { level >= first };
    }
    let length = seconds / f64::from(crossings.max(1)) * f64::from(trials);
    let mut plan = Plan { normal, levels: vec![first], trials, warm_up: WARM_UP * length, length };
    let mut starts = plan.run(start, &mut random, progress)?.1;
    while plan.levels.len() < MAX_LEVELS && !starts.is_empty() {
        let mut highest = Vec::new();
        for nth in 0..plan.trials as usize {
            highest.push(plan.highest(&starts[nth % starts.len()], Seed::new(random.bits()), progress)?);
        }
        highest.sort_unstable_by(|a, b| b.total_cmp(a));
        let level = plan.levels[plan.levels.len() - 1];
        let wanted = highest[((highest.len() as f64 * SHARE) as usize).min(highest.len() - 1)];
        let reached = highest[LEAST_REACHED.min(highest.len() - 1)];
        // If few go further, the next level is closer; if many collapse, there is no further level.
        let next = if wanted > level { wanted } else { reached };
        if next <= level || next.is_infinite() {
            break;
        }
        let from = plan.levels.len() - 1;
        plan.levels.push(next);
        starts = plan.trials_from(from, &starts, &mut random, progress)?.starts;
    }
    Some(plan)
}

/// The trials from a level.
struct Trials<P> {
    collapsed: u32,
    reached: u32,
    undecided: u64,
    /// The states in which trials reached the next level.
    starts: Vec<P>,
}

impl Plan {
    /// Estimates the number of collapses in a run of the planned length. Returns `None` if it was cancelled.
    pub(super) fn estimate<P: Process>(&self, start: &P, seed: Seed, progress: &Progress) -> Option<Count> {
        let mut random = Stream::new(seed);
        let (mut count, mut starts, crossings) = self.run(start, &mut random, progress)?;
        let mut weight = f64::from(crossings);
        count.resolution = 1.0;
        for level in 0..self.levels.len() {
            if starts.is_empty() {
                break;
            }
            let trials = self.trials_from(level, &starts, &mut random, progress)?;
            let share = weight / f64::from(self.trials);
            count.collapses += share * f64::from(trials.collapsed);
            count.undecided += trials.undecided;
            count.resolution = share;
            weight = share * f64::from(trials.reached);
            starts = trials.starts;
        }
        Some(count)
    }

    /// Runs the process for the planned length, from its start again after each collapse. Returns the collapses that did
    /// not come by way of the first level, a sample of the states in which it was reached, and how often it was.
    fn run<P: Process>(&self, start: &P, random: &mut Stream, progress: &Progress) -> Option<(Count, Vec<P>, u32)> {
        let (mut count, mut starts, mut crossings) = (Count::default(), Vec::<P>::new(), 0_u32);
        let mut process = start.fork(Seed::new(random.bits()));
        let (mut before, mut is_out, mut steps) = (0.0, false, 0_u64);
        let first = self.levels.first().copied().unwrap_or(f64::INFINITY);
        loop {
            let now = before + process.now();
            if now >= self.warm_up + self.length {
                break;
            }
            let counts = now >= self.warm_up;
            process.step();
            let level = process.level();
            if process.has_collapsed() {
                count.collapses += f64::from(u8::from(counts && !is_out));
                before += process.now();
                process = start.fork(Seed::new(random.bits()));
                is_out = false;
            } else if is_out {
                is_out = level > self.normal;
            } else if counts && level >= first {
                is_out = true;
                crossings += 1;
                // Each crossing is in the sample with the same probability: Vitter, algorithm R.
                let place = random.below(u64::from(crossings)) as usize;
                if starts.len() < self.trials as usize {
                    starts.push(process.fork(Seed::new(random.bits())));
                } else if place < starts.len() {
                    starts[place] = process.fork(Seed::new(random.bits()));
                }
            }
            steps += 1;
            if steps % ASK_EVERY == 0 && progress.is_cancelled() {
                return None;
            }
        }
        count.seconds = self.length;
        Some((count, starts, crossings))
    }

    fn trials_from<P: Process>(
        &self,
        level: usize,
        starts: &[P],
        random: &mut Stream,
        progress: &Progress,
    ) -> Option<Trials<P>> {
        let mut trials = Trials { collapsed: 0, reached: 0, undecided: 0, starts: Vec::new() };
        let next = self.levels.get(level + 1).copied().unwrap_or(f64::INFINITY);
        // From each state the same number of trials, or one more from some that are next to each other, at random.
        let offset = random.below(starts.len() as u64) as usize;
        for nth in 0..self.trials as usize {
            let start = &starts[(offset + nth) % starts.len()];
            match self.trial(start.fork(Seed::new(random.bits())), next, progress)? {
                End::Collapsed => trials.collapsed += 1,
                End::Normal => {}
                End::Undecided => trials.undecided += 1,
                End::Reached(process) => {
                    trials.reached += 1;
                    trials.starts.push(process);
                }
            }
        }
        Some(trials)
    }

    fn trial<P: Process>(&self, mut process: P, next: f64, progress: &Progress) -> Option<End<P>> {
        for step in 0..MAX_STEPS {
            let level = process.level();
            if process.has_collapsed() {
                return Some(End::Collapsed);
            }
            if level >= next {
                return Some(End::Reached(process));
            }
            if level <= self.normal {
                return Some(End::Normal);
            }
            process.step();
            if step % ASK_EVERY == ASK_EVERY - 1 && progress.is_cancelled() {
                return None;
            }
        }
        Some(End::Undecided)
    }

    /// Returns the highest level of a trial; infinite if it collapses.
    fn highest<P: Process>(&self, start: &P, seed: Seed, progress: &Progress) -> Option<f64> {
        let mut process = start.fork(seed);
        let mut highest = process.level();
        for step in 0..MAX_STEPS {
            let level = process.level();
            highest = level.max(highest);
            if process.has_collapsed() {
                return Some(f64::INFINITY);
            }
            if level <= self.normal {
                break;
            }
            process.step();
            if step % ASK_EVERY == ASK_EVERY - 1 && progress.is_cancelled() {
                return None;
            }
        }
        Some(highest)
    }
}
