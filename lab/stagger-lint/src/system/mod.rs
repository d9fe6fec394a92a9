//! Checks of systems of services: what makes the retries between the services of a file cause storms.
//!
//! ```
//! use stagger_lint::system::check;
//! use stagger_sim::system::SystemFile;
//!
//! let text = r#"
//! users.rate = 90
//! tier.database = { service = "5ms", backlog = 100 }
//! edge = [{ from = "users", to = "database", policy = "zero max-attempts=3" }]
//! "#;
//! let found = check(&SystemFile::parse(text)?);
//! assert_eq!(found[0].finding().rule().name(), "unguarded-retries");
//! assert_eq!(found[0].place().unwrap().to_string(), "4:53");
//!
//! let fix = found[0].fix().unwrap();
//! assert!(fix.text().contains("budget = { tokens = 10, refund = 0.1 }"));
//! assert!(check(&SystemFile::parse(fix.applied_to(text).unwrap())?).is_empty());
//! # Ok::<(), stagger_sim::system::SystemFileError>(())
//! ```

mod change;
mod facts;
mod rules;

pub use rules::check;
