//! The rules for systems of services, which `crate::system` applies to files. They find nothing in a policy.

use crate::rule::{Rule, Severity};

pub(crate) static ATTEMPTS_MULTIPLY: Rule = Rule {
    code: "M001",
    name: "attempts-multiply",
    severity: Severity::Warning,
    title: "services retry inside retried attempts, which multiply",
    rationale: "a service that is down receives the product of all attempts and calls for every request of the users, \
                exactly when it can serve none",
    details: "Applies to an edge between services that makes more than one attempt and has no budget, if an edge above \
              it does so, too, and its nested calls multiply. The figures are those of the worst case, in which no \
              call succeeds: `worst_attempts_per_request` of `stagger simulate system`. With `nested = \
              \"stand-down\"`, as nested calls of this library do by default, only the users retry.",
    check: |_| None,
};

pub(crate) static TIMEOUT_INVERTED: Rule = Rule {
    code: "M002",
    name: "timeout-inverted",
    severity: Severity::Warning,
    title: "a caller gives up before the calls that are made for it can end",
    rationale: "the service goes on with retries for callers that have given up, and the services below do work that \
                nobody waits for",
    details: "Applies to an edge whose time limit is shorter than what the calls of its service may take: for each of \
              them the time limits of all attempts and the longest delays between them; of calls in parallel one, and \
              of calls in sequence all. Does not apply if the deadline of the attempt ends these calls: if it is \
              handed on, and the service drops expired or hopeless work.",
    check: |_| None,
};

pub(crate) static UNGUARDED_RETRIES: Rule = Rule {
    code: "M003",
    name: "unguarded-retries",
    severity: Severity::Warning,
    title: "retries without a budget can exceed the capacity",
    rationale: "when its calls fail, the service is busy with retries, and refuses first attempts that it could serve",
    details: "Applies to an edge that makes more than one attempt and has no budget, if the service it leads to would \
              receive more attempts than it can serve if no call succeeded: `worst_load` above `capacity` in `stagger \
              simulate system`. Does not apply where M001 or M005 name the edge. A budget bounds the retries of all \
              calls of a process to a share of them.",
    check: |_| None,
};

pub(crate) static DEADLINE_DROPPED: Rule = Rule {
    code: "M004",
    name: "deadline-dropped",
    severity: Severity::Warning,
    title: "a service does not know how long its callers wait",
    rationale: "it works on attempts whose callers' callers have given up, and its queue stays full of them",
    details: "Applies to an edge between services with `deadline = \"own\"`, if the service it leads to drops expired \
              or hopeless work, and its queue holds more work than the time limit of the edge allows for: backlog * \
              service / workers > timeout - 2 * one-way. With the deadline handed on, the service drops what nobody \
              waits for any more.",
    check: |_| None,
};

pub(crate) static LOOP_GAIN: Rule = Rule {
    code: "M005",
    name: "loop-gain",
    severity: Severity::Warning,
    title: "retries can keep a service down after the failure is over",
    rationale: "a full queue makes answers late, callers retry, and their retries keep the queue full",
    details: "Applies to a service whose loop gain is above 1: the load it is offered if a share q of its attempts \
              fails, over its capacity, for the q at which that is largest; and whose queue can make answers late. The \
              edge named first is that whose retries raise the gain most. A gain above 1 says that an overload can \
              sustain itself, and not that a given trigger starts it: `stagger simulate system --find rate` says which \
              loads survive it. The guide, \"Systems of services\", has the formula, and how far it can be trusted.",
    check: |_| None,
};

pub(crate) static STALE_QUEUE: Rule = Rule {
    code: "M006",
    name: "queue-outlives-callers",
    severity: Severity::Warning,
    title: "the queue of a service outlives its callers",
    rationale: "once the queue is full, the service completes nothing but attempts whose callers have given up",
    details: "Applies to a service that works off stale work (`stale = \"done\"`), if its queue holds more work than \
              the time limit of a caller allows for: backlog * service / workers > timeout - 2 * one-way; and if, once \
              it is full, it answers nothing in time for longer than callers wait: (backlog - in time) / (capacity - \
              load). A shorter queue refuses at once what it could not serve in time; a service that drops hopeless \
              work passes over it. Dropping work that has expired is not enough: the head of a full queue is always \
              about to expire.",
    check: |_| None,
};

pub(crate) static OVERLOADED: Rule = Rule {
    code: "M007",
    name: "service-overloaded",
    severity: Severity::Warning,
    title: "the load of a service exceeds its capacity when all is well",
    rationale: "its queue grows without any failure, and no retry policy can serve the requests",
    details: "Applies to a service that receives more attempts per second, without any retry, than its workers can \
              serve: workers / (own time + time held for calls). Workers are held for calls with `waits = true`; a \
              call then takes the way to the other service and back, its own work and calls, and the usual time in its \
              queue. Calls that a warm cache serves are not counted.",
    check: |_| None,
};

pub(crate) static TIMEOUT_TOO_SHORT: Rule = Rule {
    code: "M008",
    name: "timeout-below-need",
    severity: Severity::Warning,
    title: "a time limit is below what the service needs when all is well",
    rationale: "attempts run out of time without any failure, and their retries and their unused work are a load that \
                never ends",
    details: "Applies to an edge whose time limit is below the time in which nine of ten attempts are answered when \
              all is well: the way to the service and back, its own time, the calls that it makes, and the usual time \
              in its queue, with 1.3 standard deviations of these times. The fix is twice this time. Does not apply \
              while a service is overloaded (M007).",
    check: |_| None,
};
