//! A run of an outage, with its simulations.

use core::num::NonZero;
use core::time::Duration;
use std::sync::Arc;
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use stagger_core::{Policy, Seed};
use stagger_report::progress::{Interrupt, ProgressLine};
use stagger_report::report::seconds;
use stagger_sim::storm::Measurements;
use stagger_sim::system::{SystemFigures, SystemRecorder};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::Term;
use tokio::runtime::Runtime;

use super::client::{RequestLoad, RequestTrace, ended};
use super::document::{Compared, Figures, Machine, PolicyEntry, compare};
use super::serve::WorkCounts;
use super::settings::OutageSettings;
use crate::machine::{
    CpuTicks, ProcessTicks, SATURATED, TICK, TICKS_PER_SECOND, TcpCounters, TimerLag, saturation, warnings,
};
use crate::server::Server;

/// What all runs share.
#[derive(Debug)]
pub(super) struct OutageDrill<'a> {
    pub(super) settings: &'a OutageSettings,
    pub(super) runtime: &'a Runtime,
    pub(super) timer_lag: &'a TimerLag,
    pub(super) interrupt: &'a Interrupt,
    pub(super) term: &'a Term,
}

/// What was recorded during a run.
struct Record {
    begin: Instant,
    traces: Vec<RequestTrace>,
    server: WorkCounts,
    one_way: [Duration; 2],
    counters: TcpCounters,
    load: LoadSamples,
}

/// The CPU time of the machine, of the clients and of the server, sampled during a run.
#[derive(Debug, Default)]
struct LoadSamples {
    machine: Vec<CpuTicks>,
    clients: Vec<ProcessTicks>,
    server: Vec<ProcessTicks>,
}

impl LoadSamples {
    fn sample(&mut self, server: u32) {
        let machine = CpuTicks::read();
        self.machine.extend(machine);
        self.clients.extend(ProcessTicks::read(std::process::id(), machine));
        self.server.extend(ProcessTicks::read(server, machine));
    }
}

/// Time from the probes to the start of the load, for the server to learn of it.
const LEAD: Duration = Duration::from_millis(100);

/// Seeds of the simulation. Policies with jitter differ between them.
const SEEDS: u64 = 8;

/// A timer that is later than this share of the timeout changes which attempts succeed.
const LATE: f64 = 0.05;

impl OutageDrill<'_> {
    /// Runs the drill with one policy, and its simulation; returns `None` if it was interrupted.
    pub(super) fn run(&self, name: &str, policy: &Policy) -> Result<Option<PolicyEntry>, CliError> {
        let Some(record) = self.measure(name, policy)? else { return Ok(None) };
        let system = self.settings.system(policy, record.one_way)?;
        let mut recorder = SystemRecorder::new(&system);
        let since = |at: Instant| at.saturating_duration_since(record.begin);
        for trace in &record.traces {
            let sent: Vec<_> = trace.sent.iter().copied().map(since).collect();
            recorder.record_request(since(trace.arrived), &sent, trace.served.map(since));
        }
        let measured = Figures::new(&with_server(recorder.figures(), &record));
        let seeds = (0..SEEDS).map(|offset| Seed::new(self.settings.seed.get().wrapping_add(offset)));
        let simulated: Vec<_> = seeds.map(|seed| Figures::new(&system.run(seed))).collect();
        let mut machine = self.machine(&record);
        let comparison = compare(&measured, &simulated);
        let agrees = comparison.iter().all(|compared| compared.agrees);
        // Timers in time and processors of its own that were idle leave no gross difference to the machine.
        let is_gross = comparison.iter().any(Compared::is_gross);
        if !agrees && (!is_gross || !machine.warnings.is_empty()) {
            machine.warnings.extend(saturation(machine.peak_cpu_ratio, "lower --rate"));
        }
        let agrees = if machine.warnings.is_empty() { Some(agrees) } else { None };
        let Some(simulated) = simulated.into_iter().next() else { return Ok(None) };
        let (name, policy) = (name.to_owned(), policy.to_string());
        Ok(Some(PolicyEntry { name, policy, measured, simulated, comparison, agrees, machine }))
    }

    /// Runs the server and the load:
    ///
    /// ```text
    /// server listens → probes → LEAD → load up to the horizon → tail, until the last calls are decided → counts
    /// ```
    ///
    /// Returns `None` if it was interrupted.
    fn measure(&self, name: &str, policy: &Policy) -> Result<Option<Record>, CliError> {
        let settings = self.settings;
        let mut server = Server::start(settings.server.to_words())?;
        let load =
            RequestLoad::new(server.address, *policy, settings.timeout, settings.seed).map_err(CliError::usage)?;
        let one_way = self.runtime.block_on(load.one_way());
        let begin = Instant::now() + LEAD;
        let since = (SystemTime::now() + LEAD).duration_since(UNIX_EPOCH).unwrap_or_default();
        server.tell(&format!("{}\n", since.as_micros()))?;
        let counters = TcpCounters::read();
        self.timer_lag.take();
        let end = begin + settings.horizon + settings.tail(policy);
        let load = self.runtime.spawn(Arc::new(load).run(settings.rate, begin, end));
        let mut samples = LoadSamples::default();
        samples.sample(server.process());
        let mut progress = ProgressLine::new(self.term);
        while !load.is_finished() {
            if self.interrupt.is_requested() {
                load.abort();
                return Ok(None);
            }
            samples.sample(server.process());
            progress.update(|| format!("{name}: {:.1}s", begin.elapsed().as_secs_f64()));
            thread::sleep(TICK);
        }
        let traces = self.runtime.block_on(load).map_err(|error| CliError::io("the load ended early", error))?;
        Ok(Some(Record {
            begin,
            traces: ended(&traces),
            server: server.report()?,
            one_way,
            counters: TcpCounters::read().since(&counters),
            load: samples,
        }))
    }

    /// Returns what the machine did, with the reasons why it may have shaped the run.
    fn machine(&self, record: &Record) -> Machine {
        let mut measured = Measurements::default();
        [measured.listen_overflows, measured.listen_drops, measured.syn_retransmits, _] = record.counters.0;
        let own = self.timer_lag.take().as_secs_f64();
        measured.max_timer_delay_s = own;
        let late_s = LATE * self.settings.timeout.as_secs_f64();
        let mut warnings = warnings(&measured, late_s, "lower --rate");
        if record.server.max_timer_delay_s > late_s {
            let late = seconds(record.server.max_timer_delay_s);
            warnings.push(format!("timers of the server fired up to {late} late (lower --rate)"));
        }
        let clients = ProcessTicks::busiest(&record.load.clients, TICKS_PER_SECOND);
        let server = ProcessTicks::busiest(&record.load.server, TICKS_PER_SECOND);
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        // The server has one thread.
        for (whose, busy, most) in [("clients", clients, processors as f64), ("server", server, 1.0)] {
            if let Some(busy) = busy
                && busy > SATURATED * most
            {
                warnings
                    .push(format!("the {whose} kept {busy:.2} of {most} processors busy in one second (lower --rate)"));
            }
        }
        let broken: u64 = record.traces.iter().map(|trace| trace.broken).sum();
        if broken > 0 {
            warnings.push(format!("{broken} attempts failed without an answer of the server (lower --rate)"));
        }
        Machine {
            one_way_min_s: record.one_way[0].as_secs_f64(),
            one_way_max_s: record.one_way[1].as_secs_f64(),
            max_timer_delay_s: own,
            max_server_timer_delay_s: record.server.max_timer_delay_s,
            peak_cpu_ratio: CpuTicks::busiest(&record.load.machine, TICKS_PER_SECOND),
            peak_client_processors: clients,
            peak_server_processors: server,
            broken,
            warnings,
        }
    }
}

/// Adds what the server counted, and which attempts ran out of time.
fn with_server(mut figures: SystemFigures, record: &Record) -> SystemFigures {
    let WorkCounts { completed, answered, refused, peak, .. } = record.server;
    if let Some(service) = figures.services.first_mut() {
        (service.completed, service.useful, service.refused, service.peak) = (completed, answered, refused, peak);
    }
    // Those that are open at the end were sent after the horizon.
    let timed_out = |trace: &RequestTrace| (trace.sent.len() as u64).saturating_sub(trace.ended);
    if let Some(edge) = figures.edges.first_mut() {
        edge.timed_out = record.traces.iter().map(timed_out).sum();
    }
    figures
}
