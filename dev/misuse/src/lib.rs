//! Mistakes that the compiler finds: the sources are in `tests/ui`, its messages beside them.
//!
//! A separate package, because trybuild compiles the code with all dependencies of the package.
