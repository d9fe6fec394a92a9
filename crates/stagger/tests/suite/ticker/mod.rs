//! Native tickers: ticks at the delays of a policy, and periodic ticks.

mod asynchronous;
mod interval;
mod scheduled;
