//! Recommended policies.

use super::Profile;
use super::entry::profiles;

profiles! {
    /// The default: calls to a service nearby.
    DEFAULT = "default" {
        title: "stagger, the plain default",
        version: "",
        source: "Policy::DEFAULT",
        read: "2026-11",
    }
    exponential(ms(100), secs(30)).max_attempts(4);

    /// A WebSocket, or any long-lived connection: spread over ten seconds after a drop that hits every client, ten
    /// attempts, and a count that restarts only after ten healthy seconds.
    WEB_SOCKET = "web-socket" {
        title: "stagger, for connections that are kept up",
        version: "",
        source: "a drop hits every client in the same instant; backoff alone brings them back within one base",
        read: "2026-11",
    }
    exponential(ms(500), secs(30)).spread(secs(10)).max_attempts(10).stable_after(secs(10));

    /// Background work that no user waits for.
    BACKGROUND_JOB = "background-job" {
        title: "stagger, for background work",
        version: "",
        source: "patient, and decorrelated so that workers drift apart",
        read: "2026-11",
    }
    decorrelated(secs(1), secs(60)).max_attempts(10);

    /// A function that is billed by its running time. Set `max_elapsed` to the time that the invocation has left.
    SERVERLESS = "serverless" {
        title: "stagger, for functions that are billed by their time",
        version: "",
        source: "set max-elapsed to what the invocation has left",
        read: "2026-11",
    }
    exponential(ms(100), secs(2)).max_attempts(3);

    /// A call for which a person waits.
    INTERACTIVE = "interactive" {
        title: "stagger, while a person waits",
        version: "",
        source: "one more try, soon",
        read: "2026-11",
    }
    exponential(ms(20), ms(500)).max_attempts(2);
}
