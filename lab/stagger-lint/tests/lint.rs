//! Tests of the lint through its public API.

#[cfg(test)]
mod lint {
    mod as_shipped;
    #[cfg(feature = "config")]
    mod configs;
    #[cfg(feature = "config")]
    mod deployments;
    mod examples;
    mod fixes;
    #[cfg(feature = "config")]
    mod layers;
    mod logs;
    mod no_effect;
    mod own_profiles;
    mod promises;
    mod rules_page;
    mod suggestions;
    mod support;
    #[cfg(feature = "toml")]
    mod systems;
    #[cfg(feature = "config")]
    mod unknown;
}
