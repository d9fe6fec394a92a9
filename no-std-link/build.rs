//! Leaves out the C library's start-up code, which would ask for a `main`, and keeps its `memcpy` and the like, which
//! the compiler calls on every host; on bare metal it has its own.

fn main() {
    println!("cargo::rustc-link-arg-bins=-nostartfiles");
    println!("cargo::rustc-link-arg-bins=-lc");
    println!("cargo::rerun-if-changed=build.rs");
}
