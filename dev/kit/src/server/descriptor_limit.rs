use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::server::resource_error::ResourceError;

/// Reserve for descriptors that a process opens implicitly: standard streams, event queue, name resolver.
const RESERVE: u64 = 64;

/// Ensures that the process can open `needed` more files, including connections.
///
/// Raises the soft limit of `RLIMIT_NOFILE` to the hard limit if it is too low. Call it before measuring anything:
/// otherwise a test measures the limit.
///
/// # Errors
/// [`ResourceError::Descriptors`] if the hard limit is too low.
pub fn raise_descriptor_limit(needed: u64) -> Result<(), ResourceError> {
    // /dev/fd exists on every Unix; without it, the reserve must suffice.
    let open = fs::read_dir("/dev/fd").map_or(0, |entries| entries.count() as u64);
    let limit = getrlimit(Resource::Nofile);
    let Some(raised) = new_limit(open.saturating_add(needed).saturating_add(RESERVE), limit)? else {
        return Ok(());
    };
    setrlimit(Resource::Nofile, raised)
        .map_err(|error| ResourceError::Unknown { source: "RLIMIT_NOFILE", reason: error.to_string() })
}

/// Returns the limit to set, or `None` if the current one suffices. In an [`Rlimit`], `None` means unlimited.
fn new_limit(total: u64, limit: Rlimit) -> Result<Option<Rlimit>, ResourceError> {
    match limit {
        Rlimit { current, .. } if current.is_none_or(|soft| soft >= total) => Ok(None),
        Rlimit { maximum: Some(hard), .. } if hard < total => Err(ResourceError::Descriptors { needed: total, hard }),
        Rlimit { maximum, .. } => Ok(Some(Rlimit { current: maximum, maximum })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;
    use core::time::Duration;
    use std::env;
    use std::fs::File;

    #[test]
    fn the_soft_limit_is_raised_only_when_needed_and_never_above_the_hard_one() {
        let limit = |current, maximum| Rlimit { current, maximum };
        let short = Err(ResourceError::Descriptors { needed: 4097, hard: 4096 });
        for (total, now, want) in [
            (1024, limit(Some(1024), Some(4096)), Ok(None)),
            (1025, limit(Some(1024), Some(4096)), Ok(Some(limit(Some(4096), Some(4096))))),
            (4096, limit(Some(1024), Some(4096)), Ok(Some(limit(Some(4096), Some(4096))))),
            (4097, limit(Some(1024), Some(4096)), short),
            (4097, limit(Some(1024), None), Ok(Some(limit(None, None)))),
            (u64::MAX, limit(None, None), Ok(None)),
        ] {
            assert_eq!(new_limit(total, now), want, "{total} with {now:?}");
        }
    }

    #[test]
    fn a_process_can_open_more_files_than_its_soft_limit_allowed() {
        let child = Program::this_test("server::descriptor_limit::tests::opens_300_files_from_a_limit_of_100").unwrap();
        let done = child.env("KIT_LOW_LIMIT", "yes").run(Duration::from_secs(10)).unwrap();
        assert!(done.stdout_text().contains("300 files are open"), "{done}");
    }

    #[test]
    #[ignore = "lowers the limit of the whole process; the test above runs it in a child process"]
    fn opens_300_files_from_a_limit_of_100() {
        if env::var_os("KIT_LOW_LIMIT").is_none() {
            return;
        }
        let maximum = getrlimit(Resource::Nofile).maximum;
        setrlimit(Resource::Nofile, Rlimit { current: Some(100), maximum }).unwrap();
        let open = || (0..300).map(|_| File::open("/dev/null")).collect::<Result<Vec<_>, _>>();
        open().expect_err("100 is the limit");
        raise_descriptor_limit(300).unwrap();
        println!("{} files are open", open().unwrap().len());
    }

    #[test]
    fn the_message_of_a_resource_error_includes_the_fix() {
        let message = ResourceError::Descriptors { needed: 70_064, hard: 20_000 }.to_string();
        assert!(message.contains("70064 open files") && message.contains("`ulimit -Hn 70064`"), "{message}");
    }
}
