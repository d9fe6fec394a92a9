//! Tries each law in fixed cases.
