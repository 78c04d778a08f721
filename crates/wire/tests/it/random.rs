//! Random valid values of every type are read, lose nothing, and are written the same way ever after.

use attache_testkit::catalogue::Catalogue;
use attache_testkit::registry::readers;
use attache_testkit::sample::{Rng, shuffled};
use serde_json::Value;

/// Values per type; failures are repeated by type and seed.
const SEEDS: u64 = 60;

#[test]
fn values_survive_in_any_order_of_members() {
    let catalogue = Catalogue::v1();
    let mut failures = Vec::new();
    for (name, read) in readers() {
        for seed in 0..SEEDS {
            let mut rng = Rng::new(seed);
            let value = catalogue.random(name, &mut rng);
            let text = shuffled(&value, &mut rng);
            let outcome = read(&text).and_then(|written| {
                let back: Value = serde_json::from_str(&written).map_err(|error| error.to_string())?;
                catalogue.same(name, &value, &back)?;
                catalogue.check_no_nulls(name, &back)?;
                // STDIO-05: no raw line break in what we write.
                if written.contains(['\n', '\r']) {
                    return Err("a raw line break".to_owned());
                }
                let again = read(&written)?;
                if again == written { Ok(()) } else { Err(format!("{written} becomes {again}")) }
            });
            if let Err(failure) = outcome {
                failures.push(format!("{name} (seed {seed}): {failure}\n    {text}"));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}
