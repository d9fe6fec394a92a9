//! Advice from outside: what it leads to, and that nothing else is better.

#[cfg(test)]
mod advise {
    mod best;
    mod decided;
    mod rust;
}
