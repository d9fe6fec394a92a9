//! Frozen delays: a seed gives the same delays in every version and on every platform.

use core::time::Duration;

use stagger_core::machine::RetryState;
use stagger_core::{FailureKind, Jitter, Outcome, Policy, PolicyBuilder, Ratio, Seed};

use crate::laws::support::{Call, at, ms, secs};

const EXPONENTIAL: PolicyBuilder = Policy::exponential(ms(100), secs(10));

fn assert_frozen(builder: PolicyBuilder, seed: u64, want: [u64; 8]) {
    let policy = builder.build().unwrap();
    let got: Vec<_> = policy.schedule(Seed::new(seed)).take(8).map(|delay| delay.as_nanos() as u64).collect();
    assert_eq!(got, want, "{policy}, seed {seed}");
    let reached = [1, 2, 3, 4, 5, 6, 7, 8].map(|n| policy.delay(n, Seed::new(seed)).unwrap());
    assert_eq!(reached, want.map(Duration::from_nanos), "{policy}, seed {seed}, without state");
}

#[test]
fn delays_without_jitter_are_frozen() {
    let want = [100, 200, 400, 800, 1600, 3200, 6400, 10_000].map(|ms: u64| ms * 1_000_000);
    for seed in [0, 42] {
        assert_frozen(EXPONENTIAL.jitter(Jitter::None), seed, want);
    }
}

#[test]
fn full_jitter_is_frozen() {
    assert_frozen(
        EXPONENTIAL,
        0,
        [71_459_398, 47_167_285, 364_153_163, 785_534_855, 881_899_726, 1_808_151_152, 5_095_098_316, 3_767_700_242],
    );
    assert_frozen(
        EXPONENTIAL,
        42,
        [25_126_332, 190_288_171, 5_156_833, 519_007_759, 1_537_665_745, 615_735_795, 5_538_331_821, 8_154_188_126],
    );
    assert_frozen(
        EXPONENTIAL,
        u64::MAX,
        [82_382_203, 184_443_400, 9_239_016, 341_606_218, 1_495_551_397, 980_859_250, 2_295_124_719, 2_667_800_457],
    );
}

#[test]
fn equal_jitter_is_frozen() {
    assert_frozen(
        EXPONENTIAL.jitter(Jitter::Equal),
        0,
        [85_729_699, 123_583_642, 382_076_582, 792_767_428, 1_240_949_863, 2_504_075_576, 5_747_549_158, 6_883_850_121],
    );
    assert_frozen(
        EXPONENTIAL.jitter(Jitter::Equal),
        42,
        [62_563_166, 195_144_086, 202_578_416, 659_503_880, 1_568_832_873, 1_907_867_897, 5_969_165_911, 9_077_094_063],
    );
}

#[test]
fn decorrelated_jitter_is_frozen() {
    assert_frozen(
        EXPONENTIAL.jitter(Jitter::Decorrelated),
        0,
        [
            242_918_796,
            248_283_659,
            687_061_307,
            2_025_722_908,
            3_394_539_662,
            5_693_967_627,
            7_981_480_208,
            3_830_023_240,
        ],
    );
    assert_frozen(
        EXPONENTIAL.jitter(Jitter::Decorrelated),
        42,
        [150_252_665, 433_725_487, 115_485_666, 259_891_368, 753_194_743, 515_541_660, 1_351_857_681, 3_325_448_674],
    );
}

#[test]
fn a_factor_is_frozen() {
    assert_frozen(
        EXPONENTIAL.jitter(Jitter::Factor(Ratio::percent(20))),
        0,
        [
            108_583_759,
            178_866_914,
            465_661_266,
            954_213_942,
            1_632_759_890,
            3_283_260_461,
            7_158_039_327,
            9_507_080_097,
        ],
    );
    assert_frozen(
        EXPONENTIAL.jitter(Jitter::Factor(Ratio::percent(50))),
        42,
        [
            75_126_332,
            290_288_171,
            205_156_833,
            919_007_759,
            2_337_665_745,
            2_215_735_795,
            8_738_331_821,
            13_154_188_126,
        ],
    );
}

#[test]
fn additive_jitter_is_frozen() {
    assert_frozen(
        EXPONENTIAL.jitter(Jitter::Added(ms(500))),
        0,
        [
            457_296_989,
            317_918_213,
            855_191_454,
            1_290_959_285,
            1_875_593_664,
            3_482_523_618,
            6_798_054_556,
            10_000_000_000,
        ],
    );
    assert_frozen(
        EXPONENTIAL.jitter(Jitter::Added(ms(500))),
        42,
        [
            225_631_662,
            675_720_428,
            406_446_041,
            1_124_379_850,
            2_080_520_546,
            3_296_208_718,
            6_832_682_174,
            10_000_000_000,
        ],
    );
}

#[test]
fn the_other_backoffs_are_frozen() {
    assert_frozen(
        EXPONENTIAL.multiplier(1.1).floor(ms(70)),
        42,
        [77_537_900, 108_057_635, 70_657_496, 110_936_737, 143_433_150, 87_519_800, 162_729_069, 171_822_742],
    );
    assert_frozen(
        Policy::linear(ms(100), ms(33), secs(10)),
        42,
        [25_126_332, 126_541_634, 2_140_085, 129_103_180, 222_961_533, 50_990_620, 257_878_576, 269_903_627],
    );
    // Equal jitter is uniform on the same interval.
    for builder in [Policy::constant(ms(100)), Policy::uniform(ms(50), ms(100))] {
        assert_frozen(
            builder,
            42,
            [62_563_166, 97_572_043, 50_644_604, 82_437_985, 98_052_055, 59_620_871, 93_268_218, 90_770_941],
        );
    }
    assert_frozen(
        Policy::list(&[ms(1), ms(20), ms(300)]),
        42,
        [625_631, 19_514_409, 151_933_812, 247_313_955, 294_156_164, 178_862_615, 279_804_652, 272_312_822],
    );
}

/// Spreads, hints and episodes have their own draw numbers, which are frozen, too.
#[test]
fn spread_hints_and_episodes_are_frozen() {
    let policy = EXPONENTIAL.spread(secs(10)).max_attempts(3).build().unwrap();
    assert_eq!(policy.first_spread(Seed::new(42)).as_nanos(), 7_907_996_468);

    let hinted =
        Outcome::Failed { kind: FailureKind::Transient, hint: Some(stagger_core::ServerHint::AtLeast(secs(1))) };
    let waits = Call::new(&policy).seed(42).run([hinted; 2]).waits;
    assert_eq!(waits, [1_105_670_277, 1_123_175_565].map(Duration::from_nanos));

    let policy = policy.to_builder().stable_after(secs(1)).build().unwrap();
    let mut state = RetryState::new();
    let mut retry = stagger_core::machine::RetryMachine::new(&policy, &mut state, Seed::new(42));
    let (now, guards) = (|| at(secs(1)), stagger_core::Guards::none());
    let waits = [(); 2].map(|()| {
        let permit = retry.begin(stagger_core::guard::Permits::NONE, now, &guards).unwrap();
        retry.reset_if_healthy(secs(1));
        match retry.decide(Outcome::TRANSIENT, permit, now, &guards) {
            stagger_core::machine::Decision::Retry { after, .. } => after.as_nanos(),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(waits, [25_165_260, 66_114_740]);
}
