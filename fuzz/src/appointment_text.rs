//! Any text is an appointment or an error; an appointment is printed as text that is the same one, and whoever comes
//! with any ticket at any time is given an answer.

use core::time::Duration;

use stagger_core::{Admission, Admitted, Appointment, Instant, Seed};

/// Reads `text` as an appointment, and comes with it to a server after `millis`.
pub fn check((text, millis): (&str, u32)) {
    match text.parse::<Appointment>() {
        Ok(appointment) => {
            assert_eq!(appointment.to_string().parse(), Ok(appointment), "{text:?} is printed as {appointment}");
            let server = Admission::per_second(100).burst(1).secret(Seed::new(1)).build();
            let Ok(server) = server else { panic!("the settings are valid") };
            let now = Instant::ZERO.saturating_add(Duration::from_millis(millis.into()));
            assert_eq!(server.ask(now), Admitted::Yes);
            if let Admitted::Later(other) = server.come(&appointment.ticket, now) {
                assert!(other.after <= Duration::from_secs(300), "{other} is further away than the longest");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty(), "{text:?}: the error has no message"),
    }
}
