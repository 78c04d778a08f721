//! Random valid values of every type are read, lose nothing, and are written the same way ever
//! after.

use attache_testkit::registry::{V1, V2, Version};
use attache_testkit::sample::{Rng, shuffled};
use serde_json::Value;

/// Values per type; failures are repeated by type and seed.
const SEEDS: u64 = 60;

#[test]
fn values_of_version_1_survive_in_any_order_of_members() {
    values_survive(V1);
}

#[test]
fn values_of_version_2_survive_in_any_order_of_members() {
    values_survive(V2);
}

fn values_survive(version: Version) {
    let catalogue = (version.catalogue)();
    let mut failures = Vec::new();
    for (name, read) in version.readers() {
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
