//! The lines of `docs/guide/recipes.md`, as they are on the page, with the tools that they are for.

mod apt;
mod bench;
mod cloud;
mod containers;
mod cron;
mod limits;
mod page;
mod site;
mod systemd;
mod transfer;
