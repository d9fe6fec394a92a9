/// Whether the body of a request can be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyReplay {
    /// All of it is available.
    Possible,
    /// It is a stream, exceeds the replay limit or has failed.
    Impossible,
}
