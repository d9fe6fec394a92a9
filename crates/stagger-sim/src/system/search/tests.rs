//! Searches on artificial responses, whose borders are known.

use core::convert::Infallible;

use stagger_core::Seed;

use super::found::Found;
use super::settings::Search;
use super::tries::Tries;

/// Searches where a share of the seeds stays down that is known for each value.
fn find(search: Search, first: u64, share: impl Fn(f64) -> f64) -> Found {
    let run = |value: f64, seeds: &[Seed]| {
        let is_down = |seed: &&Seed| ((seed.draw(1) >> 11) as f64) < share(value) * (1_u64 << 53) as f64;
        Ok::<_, Infallible>(Some(seeds.iter().filter(is_down).count() as u64))
    };
    match search.find(&mut Tries::new(first, run)) {
        Ok(found) => found,
        Err(_) => unreachable!("nothing cancels it or fails"),
    }
}

fn logistic(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

fn runs(found: &Found) -> u64 {
    found.tried.iter().map(|tried| tried.seeds).sum()
}

/// The response of the chain of three services: half of the seeds at 28, and 10 % to 90 % from 24 to 32.5.
fn chain(value: f64) -> f64 {
    logistic((value / 28.0).ln() * 15.0)
}

#[test]
fn searches_with_other_seeds_agree() {
    let search = Search::between(20.0, 40.0).precision(0.02);
    let found: Vec<_> = (1..=2).map(|seed| find(search, seed, chain)).collect();
    for one in &found {
        assert_eq!(one.borders.len(), 1, "{one:?}");
        let border = one.borders[0];
        assert!(border.is_worse_above && (border.half.value / 28.0 - 1.0).abs() < 0.04, "{border:?}");
        assert!(border.half.high - border.half.low <= 0.0402 * border.half.value, "{border:?}");
        for (point, want) in
            [(border.tenth, 28.0 / 9_f64.powf(1.0 / 15.0)), (border.nine_tenths, 28.0 * 9_f64.powf(1.0 / 15.0))]
        {
            let point = point.unwrap();
            assert!((point.value / want - 1.0).abs() < 0.1, "{point:?}, {want}");
        }
        assert!(runs(one) < 800, "{}", runs(one));
    }
    assert_eq!(found[0], find(search, 1, chain), "the same seed gives the same search");
}

#[test]
fn intervals_contain_the_border_as_often_as_they_say() {
    let found: Vec<_> = (1..=100).map(|seed| find(Search::between(20.0, 40.0).precision(0.03), seed, chain)).collect();
    assert!(found.iter().all(|one| one.borders.len() == 1));
    let half: Vec<_> = found.iter().map(|one| one.borders[0].half).collect();
    // Of 95 expected, with a standard deviation of 2.2.
    let covered = half.iter().filter(|half| half.low <= 28.0 && 28.0 <= half.high).count();
    assert!((88..=100).contains(&covered), "{covered} of 100");
    let farthest = half.iter().map(|half| (half.value / 28.0 - 1.0).abs()).fold(0.0, f64::max);
    assert!(farthest < 0.06, "{farthest}");
}

#[test]
fn a_sharp_border_takes_few_runs() {
    let found = find(Search::between(20.0, 180.0), 1, |value| f64::from(value > 67.3));
    let half = found.borders[0].half;
    assert!(
        found.borders.len() == 1 && half.low <= 67.3 && 67.3 <= half.high && half.high / half.low < 1.021,
        "{half:?}"
    );
    assert!(runs(&found) < 120, "{}", runs(&found));
}

#[test]
fn each_border_of_a_response_that_falls_again_is_found() {
    let response = |value: f64| logistic((value - 2.0) * 20.0) * logistic((7.0 - value) * 4.0);
    let borders = find(Search::between(0.0, 10.0).precision(0.02), 1, response).borders;
    let sides: Vec<_> = borders.iter().map(|border| border.is_worse_above).collect();
    assert_eq!(sides, [true, false], "{borders:?}");
    for (border, want) in borders.iter().zip([2.0, 7.0]) {
        assert!((border.half.value - want).abs() < 0.3, "{border:?}");
    }
    // The system is in the better half above the second one.
    let [tenth, nine] = [borders[1].tenth, borders[1].nine_tenths].map(|point| point.unwrap().value);
    assert!(nine < 7.0 && 7.0 < tenth, "{borders:?}");
}

#[test]
fn a_border_that_is_broader_than_the_range_has_no_tails() {
    let found = find(Search::between(26.0, 30.0), 1, chain);
    let border = found.borders[0];
    assert!(found.borders.len() == 1 && (border.half.value / 28.0 - 1.0).abs() < 0.03, "{border:?}");
    assert_eq!((border.tenth, border.nine_tenths), (None, None));
}

#[test]
fn where_chance_decides_everywhere_there_is_no_border() {
    let found = find(Search::between(20.0, 40.0), 1, |_| 0.5);
    assert!(found.borders.is_empty() && found.undecided.len() >= 8, "{found:?}");
    assert!(find(Search::between(20.0, 40.0), 1, |_| 0.02).undecided.is_empty());
}

#[test]
fn a_border_between_whole_numbers_is_found_with_few_runs() {
    let found = find(Search::between(1.0, 9.0).whole_numbers(), 1, |value| f64::from(value > 3.5));
    let half = found.borders[0].half;
    assert!((3.0..4.0).contains(&half.low) && half.value > 3.0 && half.high <= 4.01, "{half:?}");
    assert!(runs(&found) < 120, "{}", runs(&found));
    let mixed = find(Search::between(1.0, 9.0).whole_numbers(), 1, |value| logistic((value - 4.0) * 2.0));
    assert!((mixed.borders[0].half.value - 4.0).abs() < 0.5 && runs(&mixed) < 1_200, "{mixed:?}");
}

/// Measures what the documentation promises: `cargo test --release -p stagger-sim --lib
/// search::tests::accuracy -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes, for a table of the guide"]
fn accuracy() {
    let long = |value: f64| (-(-(value / 28.0).ln() * 15.0 + 2_f64.ln().ln()).exp()).exp();
    let steep = |value: f64| logistic((value / 28.0).ln() * 400.0);
    let step = |value: f64| f64::from(value > 28.0);
    let responses: [(&str, &dyn Fn(f64) -> f64); 4] = [
        ("rises over a third of the value", &chain),
        ("the same, with a long tail above", &long),
        ("rises within 1 % of the value", &steep),
        ("from none to all at once", &step),
    ];
    for (name, share) in responses {
        let quantile = |want: f64| {
            let (mut low, mut high) = (1.0, 100.0);
            for _ in 0..60 {
                let middle = f64::midpoint(low, high);
                if share(middle) < want { low = middle } else { high = middle }
            }
            low
        };
        let (mut covered, mut borders, mut total, mut errors) = ([0; 3], 0, 0, Vec::new());
        let searches = 400;
        for seed in 1..=searches {
            let found = find(Search::between(20.0, 40.0), seed, share);
            total += runs(&found);
            borders += u32::from(found.borders.len() != 1);
            let Some(border) = found.borders.first() else { continue };
            errors.push(100.0 * (border.half.value / quantile(0.5) - 1.0).abs());
            let points = [(Some(border.half), 0.5), (border.tenth, 0.1), (border.nine_tenths, 0.9)];
            for (covered, (point, share)) in covered.iter_mut().zip(points) {
                let want = quantile(share);
                *covered += u32::from(point.is_some_and(|point| point.low <= want && want <= point.high));
            }
        }
        let [half, tenth, nine] = covered.map(|count| 100.0 * f64::from(count) / searches as f64);
        errors.sort_by(f64::total_cmp);
        println!(
            "| {name} | {half:.1} % | {tenth:.1} % | {nine:.1} % | {borders} | {} | {:.2} % | {:.2} % |",
            total / searches,
            errors[errors.len() / 2],
            errors[errors.len() - 1]
        );
    }
}
