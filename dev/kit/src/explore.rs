use core::fmt::Debug;
use core::hash::Hash;

use stateright::{Checker, HasDiscoveries, Model, Property, UniformChooser};

/// What a search explores: processes that take turns, and faults between their turns.
pub trait World: Clone + Debug + PartialEq + Hash + Send + Sync + 'static {
    /// What may happen next.
    type Action: Clone + Debug + PartialEq + Send + Sync;

    /// Returns how many turns have been taken.
    fn turns(&self) -> u8;

    /// Appends what may happen next.
    fn actions(&self, actions: &mut Vec<Self::Action>);

    /// Lets it happen.
    fn act(&mut self, action: Self::Action);

    /// Returns the name of a property that does not hold.
    fn broken(&self) -> Option<&'static str>;

    /// Returns the figures of this state, for the report of a failure.
    fn figures(&self) -> String;
}

/// Every order of actions until so many turns have been taken.
struct Search<W> {
    start: W,
    turns: u8,
}

impl<W: World> Model for Search<W> {
    type State = W;
    type Action = W::Action;

    fn init_states(&self) -> Vec<W> {
        vec![self.start.clone()]
    }

    fn actions(&self, world: &W, actions: &mut Vec<W::Action>) {
        if world.turns() < self.turns {
            world.actions(actions);
        }
    }

    fn next_state(&self, last: &W, action: W::Action) -> Option<W> {
        let mut world = last.clone();
        world.act(action);
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("holds", |_, world: &W| world.broken().is_none())]
    }
}

/// Explores every state that `start` leads to within so many turns, until a property fails, and returns the number of
/// states.
///
/// # Errors
/// The property that fails, the actions that lead there, and the figures of the last state.
pub fn explore<W: World>(start: W, turns: u8) -> Result<usize, String> {
    let search = Search { start, turns };
    found(&search.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join())
}

/// Walks from `start` at random, again and again, until a property fails or so many states were seen. It sees more
/// turns than [`explore`] can.
///
/// # Errors
/// Those of [`explore`].
pub fn walk<W: World>(start: W, turns: u8, states: usize, seed: u64) -> Result<usize, String> {
    let search = Search { start, turns };
    let checker = search.checker().finish_when(HasDiscoveries::AnyFailures).target_state_count(states);
    found(&checker.spawn_simulation(seed, UniformChooser).join())
}

fn found<W: World>(checker: &impl Checker<Search<W>>) -> Result<usize, String> {
    let Some((_, path)) = checker.discoveries().into_iter().next() else {
        return Ok(checker.unique_state_count());
    };
    let last = path.last_state();
    let (broken, figures) = (last.broken().unwrap_or_default(), last.figures());
    Err(format!("{broken} after {:?}: {figures}", path.into_actions()))
}

/// Checks that an exploration has found that this property fails.
///
/// # Panics
/// If no property fails, or another one.
pub fn assert_found(explored: &Result<usize, String>, property: &str) {
    assert!(explored.as_ref().is_err_and(|found| found.starts_with(property)), "{property}: {explored:?}");
}
