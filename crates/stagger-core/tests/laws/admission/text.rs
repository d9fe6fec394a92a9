//! Reservations as text.

use proptest::prelude::*;
use stagger_core::admission::{Admission, Admit, Reservation, ReservationToken, Secret};

use crate::laws::support::{at, cases, ms, secs};

fn reservation(secret: u8) -> Reservation {
    let admission = Admission::per_second(10).burst(1).build(Secret::new([secret; 16])).unwrap();
    assert_eq!(admission.try_admit(at(secs(5))), Admit::Now);
    match admission.try_admit(at(secs(5))) {
        Admit::At(reservation) => reservation,
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn a_reservation_round_trips() {
    let reservation = reservation(7);
    let text = reservation.to_string();
    assert!(text.starts_with("100;token=") && text.len() == 10 + 32, "{text}");
    assert_eq!(text.parse(), Ok(reservation));
    assert_eq!(text.replace(";t", " ; t").parse(), Ok(reservation));
    assert_eq!(reservation.token.to_string().parse(), Ok(reservation.token));
}

/// If the wait were rounded down, the client would come a fraction of a millisecond early and have to wait again.
#[test]
fn a_wait_is_rounded_up() {
    let token = reservation(7).token;
    for (micros, want) in [(0, "0"), (1, "1"), (999, "1"), (1000, "1"), (1001, "2")] {
        let text = Reservation { after: core::time::Duration::from_micros(micros), token }.to_string();
        assert_eq!(text.split_once(';').unwrap().0, want, "{micros} µs");
    }
}

#[test]
fn malformed_reservations_are_rejected_with_an_example() {
    let good = reservation(7).to_string();
    for text in [
        "",
        "100",
        "100;",
        ";token=0123456789abcdef0123456789abcdef",
        "-1;token=0123456789abcdef0123456789abcdef",
        "+1;token=0123456789abcdef0123456789abcdef",
        "1.5;token=0123456789abcdef0123456789abcdef",
        "100;token=0123456789abcdef0123456789abcde",
        "100;token=+123456789abcdef0123456789abcdef",
        "100;token=0123456789abcdef0123456789abcdeg",
        "100;token=ä123456789abcdef0123456789abcde",
        "99999999999999999999999;token=0123456789abcdef0123456789abcdef",
        &good[1..10],
    ] {
        let error = text.parse::<Reservation>().unwrap_err().to_string();
        assert!(error.contains("write it as 1520;token="), "{text:?}: {error}");
    }
}

/// Each token is authenticated with the secret of the server that issued it.
#[test]
fn a_token_of_another_server_is_ignored() {
    let admission = Admission::per_second(10).burst(1).build(Secret::new([7; 16])).unwrap();
    assert_eq!(admission.try_admit(at(secs(5))), Admit::Now);
    let Admit::At(ours) = admission.try_admit(at(secs(5))) else { panic!("the burst is used up") };
    let (theirs, then) = (reservation(8).token, at(secs(5) + ms(100)));
    // It has no reservation here, and takes none from a client without a token.
    assert_eq!(admission.admit_reserved(&theirs, then), Admit::Full(ms(100)));
    assert_eq!(admission.admit_reserved(&ours.token, then), Admit::Now);
    assert!(matches!(admission.try_admit(then), Admit::At(next) if next.after == ms(100)));
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn any_text_is_parsed_or_rejected(text in "\\PC{0,60}") {
        if let Ok(reservation) = text.parse::<Reservation>() {
            prop_assert_eq!(reservation.to_string().parse(), Ok(reservation));
        }
        let _ = text.parse::<ReservationToken>();
    }
}
