//! What a server's hint does to a retry.

use crate::machine::retry::RetryMachine;
use crate::machine::state::{SHORTENED, SHORTENED_ONCE};
use crate::numbers::random::Purpose;
use crate::outcome::ServerHint;

impl RetryMachine<'_> {
    /// Returns whether the hint stops the call (step 7).
    #[cold]
    pub(super) fn forbids_retry(&self, hint: ServerHint) -> bool {
        match hint {
            ServerHint::DoNotRetry => true,
            ServerHint::AtLeast(asked) | ServerHint::Reserved(asked) => {
                self.policy.max_hint().is_some_and(|longest| asked > longest)
            }
        }
    }

    /// Returns the delay of a hinted retry (step 8), in nanoseconds, where the policy has `drawn` one without regard to the
    /// hint. Exact hints shorten three waits in a row; the next is not shortened.
    #[cold]
    pub(super) fn hinted(&mut self, hint: ServerHint, span: u64, drawn: u64) -> u64 {
        let hinted = self.policy.hinted(hint, span, drawn, self.bits(Purpose::Hint));
        let is_shortened = hinted < drawn && self.policy.follows_exactly(hint);
        // The count is in the highest bits: the fourth in a row overflows to none.
        let shortened = if is_shortened { self.state.flags.wrapping_add(SHORTENED_ONCE) & SHORTENED } else { 0 };
        self.state.flags = self.state.flags & !SHORTENED | shortened;
        if is_shortened && shortened == 0 { drawn } else { hinted }
    }
}
