//! Any text parses as a reservation or as an error. A reservation is displayed as text that parses as the same
//! reservation, and a server accepts any token at any time without a panic.

use core::time::Duration;

use stagger_core::Instant;
use stagger_core::admission::{Admission, Admit, Reservation, Secret};

/// Parses `text` as a reservation, and presents its token to a server after `millis` milliseconds.
pub fn check((text, millis): (&str, u32)) {
    match text.parse::<Reservation>() {
        Ok(reservation) => {
            assert_eq!(reservation.to_string().parse(), Ok(reservation), "{text:?} is displayed as {reservation}");
            let server = Admission::per_second(100).burst(1).build(Secret::new([1; 16]));
            let Ok(server) = server else { panic!("the settings are valid") };
            let now = Instant::ZERO.saturating_add(Duration::from_millis(millis.into()));
            assert_eq!(server.try_admit(now), Admit::Now);
            if let Admit::At(other) = server.admit_reserved(&reservation.token, now) {
                assert!(other.after <= Duration::from_secs(300), "{other} exceeds the longest wait");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty(), "{text:?}: the error has no message"),
    }
}
