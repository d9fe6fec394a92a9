//! The rules that examine logs, in `crate::log`, and find nothing in a policy.

use crate::rule::{Rule, Severity};

pub(crate) static EQUAL_DELAYS: Rule = Rule {
    code: "L001",
    name: "log-in-step",
    severity: Severity::Warning,
    title: "many delays are equal",
    rationale: "with jitter they would differ: clients that fail together retry together",
    details: "Applies if at least half of the delays before the same retry (of all delays, if the retry is unknown) \
              lie in clusters. A cluster lies within 0.1 % or 1 ms, and contains at least five delays, a tenth of \
              all delays, and five times as many as an even distribution would. At least eight delays are needed. \
              S001 and S002 report whether the policy causes it.",
    check: |_| None,
};

pub(crate) static BEYOND_BOUNDS: Rule = Rule {
    code: "L002",
    name: "log-beyond-bounds",
    severity: Severity::Warning,
    title: "delays lie outside the bounds of the policy",
    rationale: "the delays do not come from this policy: another configuration, another library, or a server's hint \
                determined them",
    details: "Applies if a delay is more than 1 ms outside the bounds of its retry or, if the retry is unknown, of \
              all retries. Delays requested by a server are marked in logs of `stagger run` and are skipped.",
    check: |_| None,
};

pub(crate) static SYNCHRONIZED: Rule = Rule {
    code: "L003",
    name: "log-synchronized",
    severity: Severity::Warning,
    title: "the clients arrive in phase",
    rationale: "they hit the server in waves, one period apart, for as long as it is in trouble",
    details: "Requires arrival times and eight clients. The last arrival of each client is taken modulo the median \
              of the delays before these arrivals. Applies if the phases agree: a mean resultant length of 0.7 or \
              more (all within about a quarter of the period) that occurs by chance in less than one of a thousand \
              logs (Rayleigh's test, exp(-n R^2)).",
    check: |_| None,
};

pub(crate) static ENDLESS_RETRIES: Rule = Rule {
    code: "L004",
    name: "log-endless-retries",
    severity: Severity::Warning,
    title: "retries do not end",
    rationale: "an operation that failed this often will fail again, and every such call only adds load",
    details: "Applies if a client made more retries of one call than the policy allows or, if no policy with a limit \
              is known, 50 or more.",
    check: |_| None,
};

pub(crate) static POLICY_MISMATCH: Rule = Rule {
    code: "L005",
    name: "log-policy-mismatch",
    severity: Severity::Warning,
    title: "the delays do not follow the distribution of the policy",
    rationale: "the running policy is not the planned one, so forecasts and simulations of the policy do not apply \
                to it",
    details: "Compares the delays before each retry with their distribution under the policy (Kolmogorov-Smirnov \
              test), if there are at least 20. Logs of the policy itself are reported once in a thousand times.",
    check: |_| None,
};
