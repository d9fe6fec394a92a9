use core::fmt;

use stagger_core::Guard;
use stagger_terminal::output::error::CliError;

use super::file::MachineBudget;
#[cfg(feature = "fleet")]
use super::fleet::FleetBudget;
use crate::run::args::RunArgs;

/// Where a budget is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BudgetPlace {
    /// In a file of the user on this machine.
    Machine(String),
    /// In Redis.
    Store(StoreAddress),
}

impl BudgetPlace {
    /// Parses a name or an address.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if StoreAddress::is_address(text) {
            return StoreAddress::parse(text).map(Self::Store);
        }
        check_name(text).map(|()| Self::Machine(text.to_owned()))
    }

    /// Returns the name, or the address without a password.
    pub(crate) fn shown(&self) -> &str {
        match self {
            Self::Machine(name) => name,
            Self::Store(address) => &address.shown,
        }
    }
}

impl fmt::Display for BudgetPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

/// The address of a name in Redis: `redis://HOST/NAME`, or with a database `redis://HOST/DATABASE/NAME`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoreAddress {
    /// What the client connects to.
    pub(crate) url: String,
    pub(crate) name: String,
    /// The address without user and password.
    pub(crate) shown: String,
}

/// The longest name, in bytes.
const LONGEST_NAME: usize = 64;

impl StoreAddress {
    /// Returns whether this is an address and not a name.
    pub(crate) fn is_address(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| scheme_of_store(scheme).is_some())
    }

    /// Parses an address.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let usage = |problem: &str| format!("{problem}; write redis://HOST/NAME or redis://HOST:PORT/DATABASE/NAME");
        let parts = text.split_once("://").and_then(|(scheme, rest)| Some((scheme_of_store(scheme)?, rest)));
        let Some((scheme, rest)) = parts else {
            return Err(usage("the address does not begin with redis:// or rediss://"));
        };
        let (authority, path) = rest.split_once('/').ok_or_else(|| usage("the address has no name"))?;
        // No name has one, so it is the rest of a password, which no message shows.
        if path.contains('@') {
            return Err(usage("the password has a `/`, which is written as %2F"));
        }
        // The user's password may contain an @.
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        if host.is_empty() {
            return Err(usage("the address has no host"));
        }
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (database, name) = match path.split_once('/') {
            Some((database, name)) if is_number(database) => (Some(database), name),
            Some(_) => return Err(usage(&format!("`{path}` is not a database and a name"))),
            None if is_number(path) => return Err(usage(&format!("`{path}` is a database, and there is no name"))),
            None => (None, path),
        };
        check_name(name)?;
        let database = database.map(|database| format!("/{database}")).unwrap_or_default();
        Ok(Self {
            url: format!("{scheme}://{authority}{database}"),
            name: name.to_owned(),
            shown: format!("{scheme}://{host}{database}/{name}"),
        })
    }
}

/// Returns the scheme of a store as it is written; upper case is the same (RFC 3986 §3.1).
fn scheme_of_store(scheme: &str) -> Option<&'static str> {
    ["redis", "rediss"].into_iter().find(|known| scheme.eq_ignore_ascii_case(known))
}

#[cfg(not(feature = "fleet"))]
impl StoreAddress {
    /// Returns why the store cannot be used.
    pub(crate) fn unsupported(&self) -> String {
        format!("{}: this build of stagger does not know Redis; it was built without the feature `fleet`", self.shown)
    }
}

/// Does not show the password.
impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// Checks a name, which becomes part of a file's name or of a key.
fn check_name(name: &str) -> Result<(), String> {
    let is_name = name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if is_name {
        return Ok(());
    }
    Err(format!(
        "`{name}` is not a name; use up to {LONGEST_NAME} letters, digits, `.`, `_` and `-`, the first a letter \
             or digit"
    ))
}

/// The budget of `--budget`. A retry takes one from it, and a success puts one back.
#[derive(Debug)]
pub(crate) enum SharedBudget {
    Machine(MachineBudget),
    #[cfg(feature = "fleet")]
    Fleet(FleetBudget),
}

impl SharedBudget {
    /// Returns the budget, if there is one.
    pub(crate) fn new(args: &RunArgs) -> Result<Option<Self>, CliError> {
        let (size, refill) = (args.budget_size, args.budget_refill);
        Ok(match (&args.budget, args.budget_processes) {
            (None, _) => None,
            (Some(BudgetPlace::Machine(name)), None) => Some(Self::Machine(MachineBudget::new(name, size, refill)?)),
            (Some(BudgetPlace::Machine(name)), Some(_)) => {
                return Err(CliError::usage(format_args!(
                    "--budget-processes is for a budget in Redis, and `{name}` is one of this machine; leave it out"
                )));
            }
            #[cfg(feature = "fleet")]
            (Some(BudgetPlace::Store(address)), Some(processes)) => {
                Some(Self::Fleet(FleetBudget::new(address, processes, size, refill)?))
            }
            #[cfg(not(feature = "fleet"))]
            (Some(BudgetPlace::Store(address)), Some(_)) => return Err(CliError::usage(address.unsupported())),
            (Some(BudgetPlace::Store(address)), None) => {
                return Err(CliError::usage(format_args!(
                    "--budget {} needs --budget-processes N, the number of runs at the same time: without the store, \
                     each has that part of the refill",
                    address.shown
                )));
            }
        })
    }

    /// Returns what the user must be told, once.
    pub(crate) fn take_warning(&self) -> Option<String> {
        match self {
            Self::Machine(budget) => budget.take_warning(),
            #[cfg(feature = "fleet")]
            Self::Fleet(budget) => budget.take_warning(),
        }
    }

    /// Returns the budget as a guard.
    pub(crate) fn guard(&self) -> &dyn Guard {
        match self {
            Self::Machine(budget) => budget,
            #[cfg(feature = "fleet")]
            Self::Fleet(budget) => budget,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_perhaps_a_database_and_a_name() {
        for (text, url, name, shown) in [
            ("redis://h/jobs", "redis://h", "jobs", "redis://h/jobs"),
            ("REDISS://h/jobs", "rediss://h", "jobs", "rediss://h/jobs"),
            ("redis://h:6380/3/jobs", "redis://h:6380/3", "jobs", "redis://h:6380/3/jobs"),
            ("rediss://:p@ss@h/jobs", "rediss://:p@ss@h", "jobs", "rediss://h/jobs"),
            ("redis://[::1]:1/0/2026", "redis://[::1]:1/0", "2026", "redis://[::1]:1/0/2026"),
        ] {
            let address = StoreAddress::parse(text).unwrap();
            assert_eq!((&*address.url, &*address.name, &*address.shown), (url, name, shown), "{text}");
            assert!(!format!("{address:?}").contains("p@ss"));
        }
    }

    #[test]
    fn what_is_no_address_is_told_with_the_form() {
        for (text, want) in [
            ("redis://h", "has no name"),
            ("redis://h/", "`` is not a name"),
            ("redis://h/0", "`0` is a database"),
            ("redis://h/a/b", "`a/b` is not a database and a name"),
            ("redis:///jobs", "has no host"),
            ("redis://u:p@/jobs", "has no host"),
            ("redis://h/jobs?protocol=resp3", "is not a name"),
            ("http://h/jobs", "does not begin with redis://"),
            ("redis://u:s3/cret@h/jobs", "the password has a `/`"),
            ("redis://u:s3/cret@h", "the password has a `/`"),
        ] {
            let error = StoreAddress::parse(text).unwrap_err();
            assert!(error.contains(want), "{text}: {error}");
            assert!(!error.contains("cret"), "{error}");
        }
    }
}
