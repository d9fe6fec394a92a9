use super::super::analysis::PolicyAnalysis;
use super::super::rule::{Diagnosis, Rule, Severity};

/// These look at logs: what finds them is in `log`.
fn never(_: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    None
}

pub(in crate::lint) static IN_STEP: Rule = Rule {
    code: "L001",
    name: "log-in-step",
    severity: Severity::Warning,
    title: "many delays are equal",
    why: "jitter would have set them apart: clients that fail together come back together",
    more: "It speaks where at least half of the delays before the same retry (of all delays, where the retry is not \
           said) lie in clusters: within 0.1 % or 1 ms of each other, and five of them, a tenth of all, and five times \
           as many as even spreading would bring at least. Eight delays are needed. Whether it is the policy that \
           wants it so, S001 and S002 say of the policy.",
    check: never,
};

pub(in crate::lint) static BEYOND_BOUNDS: Rule = Rule {
    code: "L002",
    name: "log-beyond-bounds",
    severity: Severity::Warning,
    title: "delays lie outside what the policy can draw",
    why: "something else than this policy has made them: another configuration, another library, or a hint",
    more: "It speaks where a delay is more than 1 ms shorter or longer than the bounds of its retry; where the retry \
           is not said, than those of all retries. Delays that a server asked for are marked in logs of `stagger run` \
           and left out.",
    check: never,
};

pub(in crate::lint) static SYNCHRONIZED: Rule = Rule {
    code: "L003",
    name: "log-synchronized",
    severity: Severity::Warning,
    title: "the clients arrive in phase",
    why: "they hit the server in waves, one period apart, for as long as it is in trouble",
    more: "It needs the times of arrival and eight clients. The last arrival of each is taken modulo the median of the \
           delays before them; it speaks where these phases point one way: a mean resultant length of 0.7 or more (all \
           within about a quarter of the period), which chance brings about in less than one of a thousand logs \
           (Rayleigh's test, exp(-n R^2)).",
    check: never,
};

pub(in crate::lint) static ENDLESS_RETRIES: Rule = Rule {
    code: "L004",
    name: "log-endless-retries",
    severity: Severity::Warning,
    title: "retries without end",
    why: "what has failed so often will fail again, and each such call only adds load",
    more: "It speaks where a client made more retries of one call than the policy allows, or, where no policy with a \
           limit is known, 50 and more.",
    check: never,
};

pub(in crate::lint) static POLICY_MISMATCH: Rule = Rule {
    code: "L005",
    name: "log-policy-mismatch",
    severity: Severity::Warning,
    title: "the delays do not fall as the policy says",
    why: "what runs is not what was planned, so no forecast and no simulation of the policy tells anything about it",
    more: "It compares the delays before each retry with the distribution that the policy has for them (Kolmogorov and \
           Smirnov), where there are 20 of them. Logs of the policy itself are called wrong once in a thousand times.",
    check: never,
};
