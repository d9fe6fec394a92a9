//! Tests of the recommendations: the decision tree, and that no other policy is better.

#[cfg(test)]
mod advise {
    mod agreement;
    mod decision_tree;
    mod guards;
    mod optimality;
    mod rust_code;
}
