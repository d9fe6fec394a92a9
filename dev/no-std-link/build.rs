//! Excludes the start-up code of the C library, which needs a `main`, but links the library for `memcpy` and similar
//! functions, which the compiler calls on every host. On bare metal, the compiler provides them.

fn main() {
    println!("cargo::rustc-link-arg-bins=-nostartfiles");
    println!("cargo::rustc-link-arg-bins=-lc");
    println!("cargo::rerun-if-changed=build.rs");
}
