//! The rules of the lint as their users meet them.

#[cfg(test)]
mod lint {
    mod as_shipped;
    mod effect;
    mod fixes;
    mod logs;
    mod our_own;
    mod pairs;
    mod rules_page;
    mod support;
}
