//! The rules of the lint as their users meet them.

#[cfg(test)]
mod lint {
    mod as_shipped;
    mod effect;
    mod logs;
    mod mending;
    mod our_own;
    mod pairs;
    mod rules_page;
    mod support;
}
