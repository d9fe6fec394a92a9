//! Pages in a real browser, driven through its DevTools protocol.

mod admission;
mod background;
mod browser;
mod hostile;
mod kills;
mod scripted;
mod site;
