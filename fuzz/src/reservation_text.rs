//! Any text is an appointment or an error; an appointment is printed as text that is the same one, and whoever comes
//! with any ticket at any time is given an answer.

use core::time::Duration;

use stagger_core::{Instant, Seed, admission::Admission, admission::Admit, admission::Reservation};

/// Reads `text` as an appointment, and comes with it to a server after `millis`.
pub fn check((text, millis): (&str, u32)) {
    match text.parse::<Reservation>() {
        Ok(appointment) => {
            assert_eq!(appointment.to_string().parse(), Ok(appointment), "{text:?} is printed as {appointment}");
            let server = Admission::per_second(100).burst(1).secret(Seed::new(1)).build();
            let Ok(server) = server else { panic!("these settings make sense") };
            let now = Instant::ZERO.saturating_add(Duration::from_millis(millis.into()));
            assert_eq!(server.try_admit(now), Admit::Now);
            if let Admit::At(other) = server.admit_reserved(&appointment.token, now) {
                assert!(other.after <= Duration::from_secs(300), "{other} is further away than the longest");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty(), "{text:?}: an error without a word"),
    }
}
