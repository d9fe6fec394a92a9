//! Pages in a real browser, driven through its DevTools protocol.

mod admission;
mod api;
mod background;
mod browser;
mod chat;
mod feed;
mod fetch;
mod hostile;
mod kills;
mod scripted;
mod site;
