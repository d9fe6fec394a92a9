use crate::numbers::message::words;

words! {
    /// What a limiter does with calls that may not start.
    #[derive(Default)]
    pub enum LimiterMode {
        /// A call waits for its turn, if that is within its own limits; otherwise it is rejected at once. The default.
        #[default]
        Wait = "wait",
        /// A call is rejected at once.
        FailFast = "fail_fast",
        /// No call is held; those that would have been are counted.
        Observe = "observe",
    }
    /// All values.
    pub const ALL;
    /// Returns the value as one lower-case word, for metrics and logs.
    pub const fn name;
}
