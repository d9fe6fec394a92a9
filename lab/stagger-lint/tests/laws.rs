//! Laws: whether what the linter, the advisor, the profiles and the simulator say agrees with what is computed.
//!
//! Each law is tried in circumstances drawn at random: in a few hundred fixed cases, or in as many as `STAGGER_CASES`
//! says, beginning with the case of `STAGGER_SEED`. A case is a function of its seed, so a broken one can be repeated.

#[cfg(test)]
mod laws {
    mod advise;
    mod calls;
    mod check;
    mod circumstances;
    mod criterion;
    mod draws;
    mod grid;
    mod help;
    mod law;
    mod neighbors;
    mod own_profiles;
    mod policies;
    mod profiles;
    mod systems;
    mod trials;
}
