//! The list of guards at every entry point: its order, its length, and a guard of the user's own in it.

mod bulkhead;
mod held_items;
mod order;
