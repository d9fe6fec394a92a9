//! `stagger serve`, through its socket and in a browser.

mod browser;
mod figures;
mod hostile;
mod page;
mod picture;
mod server;
