use super::reference::Variant;

/// A published incident as a model: what is known and what is assumed, and two files that differ by the cure.
#[derive(Debug)]
pub(crate) struct Incident {
    /// `@incident/` and its name.
    pub(super) reference: &'static str,
    pub(super) title: &'static str,
    pub(super) date: &'static str,
    /// What happened, in two or three sentences.
    pub(super) happened: &'static str,
    /// The addresses of the reports.
    pub(super) sources: &'static [&'static str],
    /// What the reports say and the model contains.
    pub(super) published: &'static str,
    /// What the model contains and the reports do not say.
    pub(super) assumed: &'static str,
    /// What the model leaves out, or cannot say.
    pub(super) left_out: &'static str,
    /// The changes of the cure, and where they come from.
    pub(super) cure: &'static str,
    pub(super) model: Model,
    failure: &'static str,
    cured: &'static str,
}

/// The simulator that runs an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Model {
    /// A file of `stagger simulate system`.
    System,
    /// A scenario file of `stagger simulate --file`: a mass disconnect.
    Reconnect,
}

impl Incident {
    /// Returns its name.
    pub(super) fn name(&self) -> &'static str {
        self.reference.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the text of one of its files.
    pub(super) const fn text(&self, variant: Variant) -> &'static str {
        match variant {
            Variant::Failure => self.failure,
            Variant::Cure => self.cured,
        }
    }

    /// Returns the lines of one file that the other does not have, without comments.
    pub(super) fn own_lines(&self, variant: Variant) -> Vec<&'static str> {
        let other = match variant {
            Variant::Failure => Variant::Cure,
            Variant::Cure => Variant::Failure,
        };
        let lines = |variant| self.text(variant).lines().map(without_comment).filter(|line| !line.is_empty());
        let others: Vec<_> = lines(other).collect();
        lines(variant).filter(|line| !others.contains(line)).collect()
    }
}

/// Returns a line of TOML without its comment. No value of these files contains `#`.
fn without_comment(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim_end()
}

/// The two files of an incident.
macro_rules! files {
    ($name:literal) => {
        [include_str!(concat!("files/", $name, ".toml")), include_str!(concat!("files/", $name, "-cure.toml"))]
    };
}

/// All incidents, in the order in which they are listed.
pub(super) static INCIDENTS: [Incident; 8] = [
    Incident {
        reference: "@incident/discord-2026-03",
        title: "Discord: a sixth of all sessions returns at once",
        date: "25 March 2026",
        happened: "A deployment ended half of the pods of the sessions service in one of three zones before they had handed over \
                   their sessions, so 17 % of all sessions were lost at once. The clients that came back exhausted the memory of \
                   gateway nodes in that zone; then the voice service fell behind, and calls could not be started from 12:13 until \
                   15:30 PDT.",
        sources: &[
            "https://leewoobin.com/posts/discord-voice-outage-mailbox-storm/",
            "https://outofdesk.netlify.app/discord-voice-outage-system-design",
        ],
        published: "the share of the sessions, that they were lost together, and that gateway nodes ran short of memory under the \
                    clients that returned. Both sources are accounts of Discord's own report by others",
        assumed: "every number, and that a gateway cluster crashes above a rate of attempts and loses all of its connections. The \
                  accounts do not say how Discord's clients wait; the model without the cure has clients without backoff and jitter",
        left_out: "the voice service, whose repair took most of the three hours",
        cure: "the loss of an open connection is spread over a minute, and later delays grow and have full jitter; not from the \
               accounts",
        model: Model::Reconnect,
        failure: files!("discord-2026-03")[0],
        cured: files!("discord-2026-03")[1],
    },
    Incident {
        reference: "@incident/aws-2025-10",
        title: "AWS: leases expire before they are established",
        date: "19 and 20 October 2025",
        happened: "The name of DynamoDB's endpoint in us-east-1 did not resolve from 23:48 until 2:25 PDT, and EC2's DropletWorkflow \
                   Manager could not renew its leases on physical servers. When DynamoDB was back, establishing the leases took so \
                   long that the work ran out of time before it was done and was queued again: congestive collapse. Engineers \
                   throttled incoming work and restarted hosts from 4:14; all leases were back at 5:28.",
        sources: &["https://aws.amazon.com/message/101925"],
        published: "a manager that needs DynamoDB, work that times out and is queued again, and that it did not recover by itself",
        assumed: "every number; that a lease is tried ten times, five seconds apart; a queue without a bound. The trigger lasts a \
                  minute in place of two and a half hours",
        left_out: "the race in the DNS automation that was the trigger, and the network load balancers, which failed later",
        cure: "a queue no longer than what is worked off within the time limit, as a throttle of incoming work keeps it",
        model: Model::System,
        failure: files!("aws-2025-10")[0],
        cured: files!("aws-2025-10")[1],
    },
    Incident {
        reference: "@incident/google-2025-06",
        title: "Google Cloud: all tasks read one table at once",
        date: "12 June 2025",
        happened: "A policy with blank fields crashed Service Control, which authorizes the requests to Google's APIs, in all regions. \
                   Its tasks restarted together and overloaded the Spanner table that they read their policies from; they had no \
                   randomized exponential backoff. In us-central1 it took 2 hours and 40 minutes, with the start of tasks throttled, \
                   where smaller regions had begun to recover after 40 minutes.",
        sources: &["https://status.cloud.google.com/incidents/ow5i3PPK96RduMcb1SsW"],
        published: "tasks that restart together, a table that they overload, and retries without randomized exponential backoff",
        assumed: "every number: 4,000 tasks, 100 reads per second, a time limit of ten seconds, and a retry each second without end",
        left_out: "the crash itself, and the traffic that was routed to multi-regional databases. Backoff with jitter alone, from a \
                   base of one second, does not bring this model back within its seven minutes: the first retries fill the queue \
                   with reads that nothing waits for",
        cure: "randomized exponential backoff, which the report names as missing, and starts that are spread over a minute, in place of \
               the throttle that engineers set by hand",
        model: Model::System,
        failure: files!("google-2025-06")[0],
        cured: files!("google-2025-06")[1],
    },
    Incident {
        reference: "@incident/cloudflare-2025-09",
        title: "Cloudflare: a dashboard that calls in a loop",
        date: "12 September 2025",
        happened: "A new version of the dashboard called the Tenant Service many times per render instead of once, because an effect of \
                   React depended on an object that was always new. When a new version of the service was deployed at 17:50 UTC, it \
                   was overwhelmed and did not recover; it authorizes requests, so the dashboard and much of the API failed until \
                   19:12. After each restart, all dashboards came back at once.",
        sources: &["https://blog.cloudflare.com/deep-dive-into-cloudflares-sept-12-dashboard-and-api-outage/"],
        published: "many calls per render, with retries in the event of failure; a service without the capacity for a spike; and the \
                    remedies: a hotfix of the dashboard, and random delays to spread its retries",
        assumed: "every number: ten calls per render, three attempts at both edges, and a deployment that leaves a quarter of the \
                  capacity for 20 seconds",
        left_out: "the second fault: a change of the service at 18:58 that was reverted",
        cure: "one call per render, and retries with backoff and random delays, as published",
        model: Model::System,
        failure: files!("cloudflare-2025-09")[0],
        cured: files!("cloudflare-2025-09")[1],
    },
    Incident {
        reference: "@incident/kubernetes-87794",
        title: "Kubernetes: kubelets overload their API servers",
        date: "3 February 2020",
        happened: "In a cluster of about 3,000 nodes, an API server ran out of memory and was killed. Its clients reconnected in step, \
                   with a fixed delay of one second: 18,000 requests per second, seven times as many as usual, which killed further \
                   replicas.",
        sources: &[
            "https://github.com/kubernetes/kubernetes/issues/87794",
            "https://github.com/kubernetes/kubernetes/pull/87795",
        ],
        published: "the number of nodes, the requests per second, the delay, that further servers were killed, and the cure",
        assumed: "the capacity of 5,000 lists per second, the rate above which a server is killed, twice of that, and ten seconds of \
                  downtime. It can be killed ten times; then the model ends the loop",
        left_out: "the memory of the server: the model counts attempts in its place. Several replicas are one server",
        cure: "the merged change: 0.8 s doubled up to 30 s, each with up to as much again at random, which is equal jitter from 1.6 s up \
               to a minute",
        model: Model::Reconnect,
        failure: files!("kubernetes-87794")[0],
        cured: files!("kubernetes-87794")[1],
    },
    Incident {
        reference: "@incident/slack-2022-02",
        title: "Slack: a cache that timeouts keep empty",
        date: "22 February 2022",
        happened: "While an agent was upgraded, cache nodes left the service catalog for a moment and were replaced by empty ones, so the \
                   hit rate fell. Booting clients then sent a query for group conversations to every shard of a database; it was \
                   overloaded, queries timed out, and the caches could not fill. Engineers throttled boots, made the query read only \
                   what was missing, from replicas too, and raised the limit step by step.",
        sources: &["https://slack.engineering/slacks-incident-on-2-22-22/"],
        published: "a cache before a database, an expensive query for what it does not have, and timeouts that kept it from filling",
        assumed: "every number; that all entries are lost at once, and not a quarter of the nodes, one after another; and that clients \
                  try to boot three times, two seconds apart",
        left_out: "clients that were already booted, which the throttle protected, and the cheaper query. With a service time of 5 ms \
                   in place of 20 the model does not fall at all",
        cure: "boots beyond what the database does within the time limit are refused, as the throttle did",
        model: Model::System,
        failure: files!("slack-2022-02")[0],
        cured: files!("slack-2022-02")[1],
    },
    Incident {
        reference: "@incident/hotos-2021-retries",
        title: "HotOS 2021: one retry against a database",
        date: "June 2021",
        happened: "The first example of the paper that named metastable failures: a database serves 300 queries per second, a web \
                   application sends 280 and retries once. After an outage of ten seconds it sends 560, and the database stays \
                   overloaded until the load falls below 150.",
        sources: &["https://sigops.org/s/conferences/hotos/2021/papers/hotos21-s11-bronson.pdf"],
        published: "capacity, load, the length of the outage and the retry",
        assumed: "a time limit of one second, a retry without delay, and 3,000 places in the queue",
        left_out: "nothing that the example has",
        cure: "a retry budget of 10 tokens per process to which a success adds 0.1, and deadlines: work that cannot be done in time is \
               dropped. With the budget alone, the model needs two minutes to work off its queue",
        model: Model::System,
        failure: files!("hotos-2021-retries")[0],
        cured: files!("hotos-2021-retries")[1],
    },
    Incident {
        reference: "@incident/hotos-2021-cache",
        title: "HotOS 2021: a look-aside cache that stays cold",
        date: "June 2021",
        happened: "The second example of the same paper: with a hit rate of 90 %, a database of 300 queries per second carries 3,000. If \
                   the contents of the cache are lost above 300, the database is overloaded, the application counts its late answers \
                   as failures, and the cache that it should fill stays empty.",
        sources: &["https://sigops.org/s/conferences/hotos/2021/papers/hotos21-s11-bronson.pdf"],
        published: "capacity, hit rate, and that late answers do not fill the cache",
        assumed: "a load of 1,000 per second, 10,000 keys, a time limit of one second, and 3,000 places in the queue",
        left_out: "expiry: an entry stays until the trigger",
        cure: "a late answer is stored, although its request has failed",
        model: Model::System,
        failure: files!("hotos-2021-cache")[0],
        cured: files!("hotos-2021-cache")[1],
    },
];

#[cfg(test)]
mod tests {
    use stagger_sim::system::SystemFile;

    use super::*;

    #[test]
    fn the_files_of_systems_are_valid_and_those_of_reconnects_are_toml() {
        for incident in &INCIDENTS {
            for variant in Variant::ALL {
                let text = incident.text(variant);
                match incident.model {
                    Model::System => {
                        SystemFile::parse(text).unwrap_or_else(|error| panic!("{}: {error}", incident.name()));
                    }
                    Model::Reconnect => {
                        toml::from_str::<toml::Table>(text)
                            .unwrap_or_else(|error| panic!("{}: {error}", incident.name()));
                    }
                }
            }
        }
    }

    #[test]
    fn the_two_files_of_an_incident_differ_in_a_few_lines() {
        for incident in &INCIDENTS {
            let [failure, cure] = Variant::ALL.map(|variant| incident.own_lines(variant));
            assert!((1..=3).contains(&cure.len()), "{}: {cure:?}", incident.name());
            assert!(failure.len() <= cure.len(), "{}: {failure:?}", incident.name());
        }
    }

    #[test]
    fn names_are_unique_and_each_incident_has_a_source() {
        for (nth, incident) in INCIDENTS.iter().enumerate() {
            assert!(INCIDENTS[..nth].iter().all(|other| other.name() != incident.name()), "{}", incident.name());
            assert!(incident.sources.iter().all(|source| source.starts_with("https://")), "{}", incident.name());
            assert!(!incident.sources.is_empty(), "{}", incident.name());
            // So that the heading of its picture fits.
            assert!(incident.title.chars().count() <= 50, "{}", incident.title);
        }
    }

    #[test]
    fn every_number_of_a_file_says_where_it_comes_from() {
        // What is compared is the load that is offered to both: times at which something happens are no claim.
        const WITHOUT: [&str; 12] =
            ["horizon", "at", "from", "to", "kind", "on", "scenario", "compare", "order", "calls", "policy", "["];
        for incident in &INCIDENTS {
            for line in incident.text(Variant::Failure).lines().filter(|line| !line.is_empty()) {
                let is_plain = WITHOUT.iter().any(|word| line.starts_with(word));
                assert!(is_plain || line.contains('#'), "{}: {line}", incident.name());
            }
        }
    }
}
