/// How many servers an attempt reached: whether the client below may have followed a redirect in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hops {
    /// The attempt ended at the server that the request was sent to.
    One,
    /// Another server may have processed the request, and redirected it to the one that the attempt ended at.
    #[cfg(feature = "reqwest-middleware")]
    Unknown,
}
