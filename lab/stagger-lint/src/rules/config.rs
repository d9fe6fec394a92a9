//! The rules for configurations of other systems, which `crate::config` applies to what is read from them. They find
//! nothing in a policy.

use crate::rule::{Rule, Severity};

pub(crate) static RETRIES_BY_DEFAULT: Rule = Rule {
    code: "C001",
    name: "retries-by-default",
    severity: Severity::Note,
    title: "the system retries although the file does not say so",
    rationale: "retries that no file shows multiply with those of the application, and are found last",
    details: "Applies to calls of Istio, nginx and HAProxy that are retried because the file says nothing about \
              retries: Istio makes 3 attempts, HAProxy 4, and nginx as many as the group has servers. A line that \
              states the number, or turns the retries off, silences the rule.",
    check: |_| None,
};

pub(crate) static LAYERS_OF_FILES: Rule = Rule {
    code: "C002",
    name: "layers-of-files",
    severity: Severity::Warning,
    title: "files of several layers retry, and their attempts multiply",
    rationale: "a server that fails receives the product of the attempts of all layers, exactly when it can serve none",
    details: "Applies if the files that are checked together retry calls in more than one layer: proxies at the edge \
              (Envoy, Envoy Gateway, the Gateway API, nginx, HAProxy), workflows (AWS Step Functions), libraries in \
              applications (gRPC, resilience4j, .NET), meshes (Istio, Linkerd, Dapr). They are taken for layers of one \
              path, because files do not say what calls what: of each layer the call with the most attempts counts. \
              Check files of different paths one by one, or allow the rule.",
    check: |_| None,
};

pub(crate) static NO_TIMEOUT: Rule = Rule {
    code: "C003",
    name: "no-timeout",
    severity: Severity::Warning,
    title: "nothing limits the time of a call",
    rationale: "if the server stalls, callers wait without end, and what waits for them fills up, too",
    details: "Applies to a call without a time limit, neither of an attempt nor of all of them, whether the file says \
              so or the system has no default. Limits of idle time or of connecting do not count.",
    check: |_| None,
};

pub(crate) static NO_DELAY: Rule = Rule {
    code: "C004",
    name: "no-delay",
    severity: Severity::Note,
    title: "calls are retried without a delay",
    rationale: "retries arrive while the cause of the failure lasts, and double the load at the moment it is least \
                welcome",
    details: "Applies to calls of which more than one attempt is made without a delay. Some systems cannot wait: nginx \
              tries again at once, HAProxy tries another server at once. There a small number of tries and a limit of \
              time bound the damage.",
    check: |_| None,
};

pub(crate) static GIVES_UP: Rule = Rule {
    code: "C005",
    name: "gives-up-after-burst",
    severity: Severity::Warning,
    title: "a process is given up for good after a short burst",
    rationale: "a dependency that is away for longer than the burst leaves the service stopped until it is started by \
                hand",
    details: "Applies to a systemd unit that is restarted, and whose start limit is reached in less than a minute by a \
              process that ends at once: burst * RestartSec below a minute. With the defaults of systemd, 5 starts \
              100 ms apart, that takes half a second. From systemd 254 on, RestartSteps and RestartMaxDelaySec let \
              the delay grow, so that no start limit is needed.",
    check: |_| None,
};

pub(crate) static LIMIT_UNREACHABLE: Rule = Rule {
    code: "C006",
    name: "start-limit-unreachable",
    severity: Severity::Warning,
    title: "the start limit can never be reached",
    rationale: "a process that cannot start is started for ever at a fixed pace, by every machine that has the unit",
    details: "Applies to a systemd unit whose restarts are so far apart that the starts of its limit do not fall into \
              the interval: burst * RestartSec at or above StartLimitIntervalSec, which is 10 s by default. Does not \
              apply if the limit is turned off, or if the delay grows.",
    check: |_| None,
};

pub(crate) static IMPATIENT_PROBE: Rule = Rule {
    code: "C007",
    name: "impatient-probe",
    severity: Severity::Warning,
    title: "a liveness probe fails after a second of slowness",
    rationale: "under load healthy instances answer late, are killed, and leave their load to the others",
    details: "Applies to a liveness probe of Kubernetes with a time limit of at most a second, which is the default, \
              and to one whose limit exceeds its period. The probes of a fleet fail together, so a slow moment \
              restarts all of it.",
    check: |_| None,
};

pub(crate) static FIELD_WITHOUT_EFFECT: Rule = Rule {
    code: "C008",
    name: "field-without-effect",
    severity: Severity::Note,
    title: "a field has no effect",
    rationale: "the file looks as if the field limited something",
    details: "Applies to a field that the system ignores where it is written: a backoff without the switch that turns \
              it on, a name that does not exist, a value that another replaces.",
    check: |_| None,
};

pub(crate) static BINDS_NOTHING: Rule = Rule {
    code: "C009",
    name: "binds-nothing",
    severity: Severity::Note,
    title: "a policy or a limit applies to nothing",
    rationale: "the file looks as if calls were retried, or limited, as it says",
    details: "Applies to a policy that no target names (Dapr), and to a limit of retries without a call that is \
              retried.",
    check: |_| None,
};

pub(crate) static REFUSED_VALUE: Rule = Rule {
    code: "C010",
    name: "refused-value",
    severity: Severity::Warning,
    title: "the system refuses a value, or reads another one",
    rationale: "the configuration is rejected as a whole, or the default applies in place of what is written",
    details: "Applies to a value that the system does not accept, or that it reads differently than its author can \
              have meant.",
    check: |_| None,
};

pub(crate) static LAYERS_INVERT: Rule = Rule {
    code: "C011",
    name: "layers-invert",
    severity: Severity::Warning,
    title: "an outer layer gives up before an inner one has finished",
    rationale: "the inner layer goes on with attempts for a caller that has given up and starts the same work again",
    details: "Applies if files of several layers are checked together, as for C002, and the attempt of an outer layer \
              has a time limit below that of all attempts of an inner one.",
    check: |_| None,
};

pub(crate) static MAKES_WORSE: Rule = Rule {
    code: "C013",
    name: "makes-failures-worse",
    severity: Severity::Note,
    title: "a setting makes a failure worse",
    rationale: "what is down is asked again and again, and what needs it fails with it",
    details: "Applies to a server of nginx with max_fails=0, which is tried for every request while it is down, and to \
              a service of Docker Compose that is restarted and does not wait until those it depends on are healthy.",
    check: |_| None,
};

pub(crate) static NO_RETRY_BUDGET: Rule = Rule {
    code: "C012",
    name: "no-retry-budget",
    severity: Severity::Note,
    title: "nothing limits the retries of all calls together",
    rationale: "if the server is in trouble, every call fails and every call retries; backoff spaces these retries and \
                does not reduce them",
    details: "Applies to retried calls of gRPC without retryThrottling, of Envoy with max_retries of 1,000 or more and \
              no retry_budget, and to a DestinationRule of Istio that leaves the number of retries at once unlimited.",
    check: |_| None,
};

pub(crate) static REJECTIONS_RETRIED: Rule = Rule {
    code: "C014",
    name: "rejections-retried",
    severity: Severity::Warning,
    title: "what a rate limiter rejects is sent again",
    rationale: "the limiter sheds load, and each of its rejections becomes another request, which counts against the \
                limit as well",
    details: "Applies to a location of nginx that passes a request on after the status (http_503, http_429 and others) \
              with which limit_req or limit_conn of a server of the same file, behind it, rejects: 503 unless \
              limit_req_status says otherwise. Leave the condition out, or let the limiter answer with a status that \
              is not retried.",
    check: |_| None,
};

pub(crate) static RUNS_PILE_UP: Rule = Rule {
    code: "C015",
    name: "runs-pile-up",
    severity: Severity::Warning,
    title: "runs of a job that fail pile up",
    rationale: "while what the job needs is down, every run that begins adds its retries to those of the runs before \
                it",
    details: "Applies to a CronJob of Kubernetes with concurrencyPolicy Allow, which is the default, whose runs begin \
              more often than the delays before the retries of one run take together (630 s with the default \
              backoffLimit of 6), unless activeDeadlineSeconds ends a run before the next begins. Applies to schedules \
              of less than an hour.",
    check: |_| None,
};
