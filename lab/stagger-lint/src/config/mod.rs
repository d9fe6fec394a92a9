//! Checks of configurations of other systems, as [`stagger_config`] reads them.
//!
//! ```
//! use stagger_lint::config::ConfigFile;
//!
//! let text = "
//! [Service]
//! Restart=always
//! RestartSec=5s
//! ";
//! let file = ConfigFile::read("app.service", text, None)?;
//! let found = file.check();
//! assert_eq!(found[0].finding().rule().name(), "start-limit-unreachable");
//! assert_eq!(found[0].place().unwrap().to_string(), "4:1");
//!
//! let fixed = found[0].fix().unwrap().applied_to(text).unwrap();
//! assert!(fixed.contains("RestartMaxDelaySec="));
//! assert!(ConfigFile::read("app.service", fixed, None)?.check().is_empty());
//! # Ok::<(), stagger_config::ReadError>(())
//! ```
//!
//! [`check_layers`] judges several files that are layers of one path.

mod calls;
mod circumstances;
mod draft;
mod edits;
mod file;
mod layers;
mod processes;
mod remedy;
mod translate;

pub use circumstances::UnusedFact;
pub use file::ConfigFile;
pub use layers::check_layers;
