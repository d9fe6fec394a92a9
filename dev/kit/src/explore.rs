use core::fmt::Debug;
use core::hash::Hash;

use stateright::{Checker, HasDiscoveries, Model};

/// Explores every state of a model until a property fails, and returns the number of states.
///
/// # Errors
/// The property that fails, the actions that lead there, and what `describe` says about the last state.
pub fn explore<M>(model: M, describe: impl Fn(&M::State) -> String) -> Result<usize, String>
where
    M: Model + Send + Sync + 'static,
    M::State: Hash + Send + Sync + Clone + Debug + PartialEq + 'static,
    M::Action: Send + Sync + Clone + Debug + PartialEq,
{
    let checker = model.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    match checker.discoveries().into_iter().next() {
        None => Ok(checker.unique_state_count()),
        Some((name, path)) => {
            let described = describe(path.last_state());
            Err(format!("{name} after {:?}: {described}", path.into_actions()))
        }
    }
}

/// Checks that an exploration has found that this property fails.
///
/// # Panics
/// If no property fails, or another one.
pub fn assert_found(explored: &Result<usize, String>, property: &str) {
    assert!(explored.as_ref().is_err_and(|found| found.starts_with(property)), "{property}: {explored:?}");
}
