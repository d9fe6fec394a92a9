//! Appointments as text.

use proptest::prelude::*;
use stagger_core::{Admission, Admitted, Appointment, Seed, Ticket};

use crate::laws::support::{at, cases, ms, secs};

fn appointment(secret: u64) -> Appointment {
    let admission = Admission::per_second(10).burst(1).secret(Seed::new(secret)).build().unwrap();
    assert_eq!(admission.ask(at(secs(5))), Admitted::Yes);
    match admission.ask(at(secs(5))) {
        Admitted::Later(appointment) => appointment,
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn an_appointment_is_read_back() {
    let appointment = appointment(7);
    let text = appointment.to_string();
    assert!(text.starts_with("100;ticket=") && text.len() == 11 + 32, "{text}");
    assert_eq!(text.parse(), Ok(appointment));
    assert_eq!(text.replace(";t", " ; t").parse(), Ok(appointment));
    assert_eq!(appointment.ticket.to_string().parse(), Ok(appointment.ticket));
}

/// A client that comes a fraction of a millisecond early would be sent away again.
#[test]
fn a_wait_is_rounded_up() {
    let ticket = appointment(7).ticket;
    for (micros, want) in [(0, "0"), (1, "1"), (999, "1"), (1000, "1"), (1001, "2")] {
        let text = Appointment { after: core::time::Duration::from_micros(micros), ticket }.to_string();
        assert_eq!(text.split_once(';').unwrap().0, want, "{micros} µs");
    }
}

#[test]
fn what_is_no_appointment_is_refused_with_an_example() {
    let good = appointment(7).to_string();
    for text in [
        "",
        "100",
        "100;",
        ";ticket=0123456789abcdef0123456789abcdef",
        "-1;ticket=0123456789abcdef0123456789abcdef",
        "+1;ticket=0123456789abcdef0123456789abcdef",
        "1.5;ticket=0123456789abcdef0123456789abcdef",
        "100;ticket=0123456789abcdef0123456789abcde",
        "100;ticket=+123456789abcdef0123456789abcdef",
        "100;ticket=0123456789abcdef0123456789abcdeg",
        "100;ticket=ä123456789abcdef0123456789abcde",
        "99999999999999999999999;ticket=0123456789abcdef0123456789abcdef",
        &good[1..10],
    ] {
        let error = text.parse::<Appointment>().unwrap_err().to_string();
        assert!(error.contains("it looks like 1520;ticket="), "{text:?}: {error}");
    }
}

/// Each is sealed by the server that gave it.
#[test]
fn a_ticket_of_another_server_is_no_ticket() {
    let (ours, theirs) = (appointment(7).ticket, appointment(8).ticket);
    let admission = Admission::per_second(10).burst(1).secret(Seed::new(7)).build().unwrap();
    let then = at(secs(5) + ms(100));
    assert_eq!(admission.ask(then), Admitted::Yes, "the room is used up");
    assert_eq!(admission.come(&ours, then), Admitted::Yes);
    assert!(matches!(admission.come(&theirs, then), Admitted::Later(other) if other.ticket != theirs));
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        if let Ok(appointment) = text.parse::<Appointment>() {
            prop_assert_eq!(appointment.to_string().parse(), Ok(appointment));
        }
        let _ = text.parse::<Ticket>();
    }
}
