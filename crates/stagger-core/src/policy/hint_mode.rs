use core::time::Duration;

/// What a [`ServerHint::AtLeast`](crate::ServerHint::AtLeast) does to the delay.
///
/// In every mode, a hinted retry uses attempts, time and budget like any other, and a hint longer than `max_hint` stops
/// the call.
///
/// As text: `at-least`, `exact`, `clamp:5s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HintMode {
    /// `hint + U[0, max(ceiling, hint · hint_spread)]`. The default.
    #[default]
    AtLeast,
    /// The hint, to the nanosecond. Clients that received the same hint retry at the same time: for servers that send
    /// each client a delay of its own. Shorter than the policy's own delay for three waits in a row at most; see
    /// [exact hints](crate::ServerHint#exact-hints).
    Exact,
    /// `min(max(draw, hint), draw + d)`: between the delay that was drawn and that delay plus `d`, as the AWS SDKs do
    /// since 2026 with `d` = 5 s.
    ///
    /// A hint above `draw + d` is shortened.
    Clamp(Duration),
}
