//! Attaché against the official crate.

use attache_differential::differences::{Case, documented};
use attache_differential::mutation::{Mutation, every_change, mutate};
use attache_differential::official;
use attache_differential::schema::Schema;
use attache_testkit::catalogue::Catalogue;
use attache_testkit::registry::{self, Reader};
use attache_testkit::sample::Rng;
use serde_json::Value;

/// Values per type; `DIFFERENTIAL_SEEDS` asks for more.
fn seeds() -> u64 {
    std::env::var("DIFFERENTIAL_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(40)
}

/// One protocol version: ours, the official crate's types, and the schema.
struct Version {
    number: u8,
    ours: registry::Version,
    official: &'static [(&'static str, Reader)],
    schema: &'static Schema,
    catalogue: &'static Catalogue,
}

impl Version {
    fn v1() -> Version {
        Version {
            number: 1,
            ours: registry::V1,
            official: official::V1,
            schema: Schema::v1(),
            catalogue: Catalogue::v1(),
        }
    }

    fn v2() -> Version {
        Version {
            number: 2,
            ours: registry::V2,
            official: official::V2,
            schema: Schema::v2(),
            catalogue: Catalogue::v2(),
        }
    }

    /// Every type that both have, with both readers.
    fn types(&self) -> Vec<(&'static str, Reader, Reader)> {
        let pair =
            |(name, official): &(&'static str, Reader)| Some((*name, *official, self.ours.reader(name)?));
        self.official.iter().filter_map(pair).collect()
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("what was written is JSON")
}

fn report(failures: &[String]) {
    assert!(failures.is_empty(), "{}:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn both_have_the_same_types() {
    for version in [Version::v1(), Version::v2()] {
        let names = version.official.iter().map(|(name, _)| *name);
        let missing: Vec<&str> = names.filter(|name| version.ours.reader(name).is_none()).collect();
        assert!(missing.iter().all(|name| version.ours.inner.contains(name)), "{missing:?}");
        assert!(version.types().len() > 200, "{} types", version.types().len());
    }
}

#[test]
fn we_read_and_emit_all_that_it_emits_in_version_1() {
    round_trip(&Version::v1());
}

#[test]
fn we_read_and_emit_all_that_it_emits_in_version_2() {
    round_trip(&Version::v2());
}

#[test]
fn values_that_are_wrong_in_version_1_are_wrong_for_both() {
    wrong_values(&Version::v1());
}

#[test]
fn values_that_are_wrong_in_version_2_are_wrong_for_both() {
    wrong_values(&Version::v2());
}

fn round_trip(version: &Version) {
    let (schema, catalogue) = (version.schema, version.catalogue);
    let mut failures = Vec::new();
    for (name, official, ours) in version.types() {
        for seed in 0..seeds() {
            let value = schema.random(name, &mut Rng::new(seed));
            // The crate refuses some values that its schema allows; those are skipped.
            let Ok(emitted) = official(&value.to_string()) else { continue };
            let outcome = ours(&emitted).map_err(|error| format!("we refuse: {error}")).and_then(|again| {
                catalogue.same(name, &json(&emitted), &json(&again))?;
                schema.check(name, &json(&again)).map_err(|error| format!("not valid: {again}: {error}"))?;
                let back = official(&again).map_err(|error| format!("it refuses {again}: {error}"))?;
                if json(&back) == json(&emitted) {
                    Ok(())
                } else {
                    Err(format!("it reads {again} as {back}"))
                }
            });
            if let Err(failure) = outcome {
                failures.push(format!("{name} (seed {seed}): {failure}\n    {emitted}"));
                break;
            }
        }
    }
    report(&failures);
}

fn wrong_values(version: &Version) {
    let mut failures = Vec::new();
    for (name, official, ours) in version.types() {
        for seed in 0..seeds() * 5 {
            let mut rng = Rng::new(seed);
            let value = version.schema.random(name, &mut rng);
            let Some(mutation) = mutate(&value, &mut rng) else { continue };
            failures.extend(compare(version, name, (official, ours), &mutation));
        }
    }
    report(&failures);
}

#[test]
fn every_member_is_read_in_the_same_way() {
    for version in [Version::v1(), Version::v2()] {
        let (mut failures, mut changes) = (Vec::new(), 0);
        for (name, official, ours) in version.types() {
            for seed in 0..8 {
                let Value::Object(object) = version.schema.random(name, &mut Rng::new(seed)) else {
                    continue;
                };
                for mutation in every_change(version.catalogue, name, &object) {
                    changes += 1;
                    failures.extend(compare(&version, name, (official, ours), &mutation));
                }
            }
        }
        report(&failures);
        assert!(changes > 15_000, "only {changes} changes");
    }
}

/// Compares the results of both for one mutation; returns a difference that is not documented.
fn compare(
    version: &Version,
    name: &str,
    (official, ours): (Reader, Reader),
    mutation: &Mutation,
) -> Option<String> {
    let text = mutation.value.to_string();
    let case = Case {
        version: version.number,
        name,
        mutation,
        official: official(&text).map(|text| json(&text)),
        ours: ours(&text).map(|text| json(&text)),
    };
    let failure = match (&case.official, &case.ours) {
        (Err(_), Err(_)) => return None,
        (Ok(official), Ok(ours)) => {
            let failure = version.catalogue.same(name, official, ours).err()?;
            format!("it reads {failure}")
        }
        (Ok(official), Err(error)) => format!("it reads {official}, we refuse: {error}"),
        (Err(error), Ok(ours)) => format!("we read {ours}, it refuses: {error}"),
    };
    if documented(&case).is_some() {
        return None;
    }
    Some(format!("{name} {:?}: {failure}", (&mutation.pointer, &mutation.before, &mutation.after)))
}
