//! Recommended policies. The guide, "How the profiles were chosen", has the criterion and the figures.

use super::Profile;
use super::entry::profiles;

profiles! {
    read "2026-11";

    /// The default: calls to a service nearby.
    DEFAULT = "default" from "stagger, the plain default" in "Policy::DEFAULT":
    exponential(ms(100), secs(30)).max_attempts(4).max_hint(secs(30));

    /// A WebSocket, or any long-lived connection that is kept up: spread over ten seconds after every loss, because it
    /// may have hit every client. A first failure after that is evidence of a common cause, so the backoff begins with 7.5
    /// to 15 s. The count restarts only after ten healthy seconds. It does not give up, but
    /// [tells](crate::machine::Unreachable) after ten failed attempts, and waits for as long as the server says.
    WEB_SOCKET = "web-socket" from "stagger, for connections that are kept up"
        in "a drop hits every client in the same instant; backoff alone brings them back within one base":
    exponential(secs(15), secs(30)).jitter(Jitter::Equal).spread(secs(10)).unlimited_attempts().unlimited_hint()
        .stable_after(secs(10));

    /// Background work that no user waits for. Its ten attempts take a quarter of an hour on average, so that nearly every
    /// job outlasts an outage of ten.
    BACKGROUND_JOB = "background-job" from "stagger, for background work"
        in "patient, and spread by half of each delay in both directions":
    exponential(secs(30), mins(2)).jitter(Jitter::Factor(Ratio::percent(50))).max_attempts(10);

    /// A function that is billed by its running time, which does not wait for more than ten seconds because a server
    /// says so. Set `max_elapsed` to the time that the invocation has left.
    SERVERLESS = "serverless" from "stagger, for functions that are billed by their time"
        in "set max-elapsed to what the invocation has left":
    exponential(ms(100), secs(2)).max_attempts(3).max_hint(secs(10));

    /// A call for which a person waits, and not for more than two seconds because a server says so.
    INTERACTIVE = "interactive" from "stagger, while a person waits" in "one more try, soon":
    exponential(ms(20), ms(500)).max_attempts(2).max_hint(secs(2));
}
