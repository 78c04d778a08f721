//! When a run has to end, and what is said then.

use std::time::{Duration, Instant};

use attache::wire::v1::{Cost, UsageUpdate};
use attache_host::budget::{Budget, Exceeded, Meter};

fn costing(amount: f64) -> UsageUpdate {
    let mut update = UsageUpdate::new(10_u64, 100_u64);
    update.cost = Some(Cost::new(amount, "USD"));
    update
}

#[test]
fn time() {
    let start = Instant::now();
    let mut meter = Meter::starting_at(Budget::new().time(Some(Duration::from_secs(90))), start);
    assert_eq!(meter.deadline(), Some(start + Duration::from_secs(90)));
    meter.turn(start).unwrap();
    meter.check(start + Duration::from_secs(89)).unwrap();
    let over = meter.check(start + Duration::from_secs(90)).unwrap_err();
    assert_eq!(over.to_string(), "time limit of 90 s reached");
    assert!(meter.turn(start + Duration::from_secs(91)).is_err());
    assert_eq!(meter.turns(), 1);
}

#[test]
fn turns() {
    let now = Instant::now();
    let mut meter = Meter::starting_at(Budget::new().turns(Some(2)), now);
    meter.turn(now).unwrap();
    meter.turn(now).unwrap();
    assert_eq!(meter.turn(now).unwrap_err().to_string(), "limit of 2 turns reached");
}

#[test]
fn tokens() {
    // shows MSG-05, PROMPT-19
    let mut meter = Meter::new(Budget::new().tokens(Some(100)));
    meter.usage(&UsageUpdate::new(80_u64, 200_u64)).unwrap();
    meter.usage(&UsageUpdate::new(20_u64, 200_u64)).unwrap();
    assert_eq!(meter.tokens(), 80, "a compacted window gives nothing back");
    meter.counted(100).unwrap();
    let over = meter.counted(101).unwrap_err();
    assert_eq!(over, Exceeded::Tokens { used: 101, limit: 100 });
    assert_eq!(over.to_string(), "101 tokens are used, the limit is 100");
    assert!(meter.usage(&UsageUpdate::new(1_u64, 200_u64)).is_err(), "over is over");
}

#[test]
fn money() {
    let mut meter = Meter::new(Budget::new().cost(Some(0.5)));
    meter.usage(&costing(0.5)).unwrap();
    meter.usage(&UsageUpdate::new(1_u64, 2_u64)).unwrap();
    assert_eq!(meter.cost(), Some(&Cost::new(0.5, "USD")));
    let over = meter.usage(&costing(0.7512)).unwrap_err();
    assert_eq!(over.to_string(), "0.7512 USD are spent, the limit is 0.5");
}

#[test]
fn without_limits_nothing_ends() {
    let mut meter = Meter::new(Budget::default());
    assert_eq!(meter.deadline(), None);
    for _ in 0..100 {
        meter.turn(Instant::now()).unwrap();
    }
    meter.usage(&costing(1e9)).unwrap();
    meter.counted(u64::MAX).unwrap();
}
