//! The table: figures, ratios, targets, and whether they are met.

use super::scenarios::{Figure, SCENARIOS, Scenario, Target, Unit};
use super::{Options, Peer, Row};

/// Prints the table as Markdown and returns what was missed.
pub(super) fn print(rows: &[(&Scenario, Row)], peers: &[Peer], options: &Options) -> Vec<String> {
    let table = Table { rows, peers };
    println!("{}", conditions(options));
    println!();
    table.head();
    let mut missed = Vec::new();
    for (scenario, row) in rows {
        for (i, figure) in scenario.figures.iter().enumerate() {
            missed.extend(table.line(scenario, row, figure, i == 0));
        }
        missed.extend(table.disorder(scenario, row));
    }
    missed.extend(table.versions());
    println!();
    for (scenario, row) in rows {
        for (peer, measured) in peers.iter().zip(row) {
            if let Some(why) = &measured.failure
                && !why.starts_with("has no")
            {
                println!("- {} in `{}`: {why}", peer.name, scenario.name);
            }
        }
    }
    missed
}

fn conditions(options: &Options) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model =
        cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = read("/proc/loadavg");
    format!(
        "{cores} cores of {}, Linux {}; {}; load {}. Medians of {} interleaved runs{}.\n\
         Ratios are ours to the official Rust SDK, above 1 is better; `floor` is typed serde on one blocking \
         thread without any SDK.",
        model.map_or("an unknown kind", |(_, model)| model),
        read("/proc/sys/kernel/osrelease").trim(),
        match super::measure::has_priority() && options.machine != super::Machine::Busy {
            true => format!("{}, what is measured has the highest priority", options.machine.describe()),
            false => options.machine.describe().to_owned(),
        },
        load.split(' ').next().unwrap_or("unknown"),
        options.reps,
        if options.quick { ", small sizes" } else { "" },
    )
}

struct Table<'a> {
    rows: &'a [(&'a Scenario, Row)],
    peers: &'a [Peer],
}

impl Table<'_> {
    fn head(&self) {
        let names: Vec<&str> = self.in_v1().map(|(_, peer)| peer.name).collect();
        println!("| scenario | figure | {} | ours / rust-sdk | target | met |", names.join(" | "));
        println!("|---|---|{}---:|---|---|", "---:|".repeat(names.len()));
    }

    /// The columns of the first table: the peers that speak version 1.
    fn in_v1(&self) -> impl Iterator<Item = (usize, &Peer)> {
        self.peers.iter().enumerate().filter(|(_, peer)| peer.protocol == 1)
    }

    /// Prints version 2 beside version 1, and returns what was missed.
    fn versions(&self) -> Vec<String> {
        let mut missed = Vec::new();
        let rows = self.rows.iter().filter(|(scenario, _)| scenario.in_v2.is_some());
        let figures = rows
            .flat_map(|(scenario, row)| scenario.figures.iter().map(move |figure| (scenario, row, figure)));
        let mut last = "";
        for (scenario, row, figure) in figures.filter(|(_, _, figure)| figure.unit.is_judged_in_v2()) {
            let values = (self.value(row, "ours", figure.key), self.value(row, "ours-v2", figure.key));
            let (Some(v1), Some(v2)) = values else { continue };
            if last.is_empty() {
                println!("\n| scenario | figure | version 1 | version 2 | v2 / v1 | target | met |");
                println!("|---|---|---:|---:|---:|---|---|");
            }
            let (good, bad) = if figure.unit.is_rate() { (v2, v1) } else { (v1, v2) };
            let part = if bad > 0.0 { good / bad } else { 1.0 };
            let least = scenario.in_v2.unwrap_or_default();
            let is_met = part >= least;
            println!(
                "| {} | {} | {} | {} | {:.0} % | at least {:.0} % | {} |",
                if last == scenario.name { "" } else { scenario.title },
                figure.what,
                show(figure.unit, v1),
                show(figure.unit, v2),
                part * 100.0,
                least * 100.0,
                if is_met { "yes" } else { "**no**" },
            );
            if !is_met {
                missed.push(format!(
                    "{} {} in version 2 is {:.0} % of version 1",
                    scenario.name,
                    figure.what,
                    part * 100.0
                ));
            }
            last = scenario.name;
        }
        missed
    }

    fn value(&self, row: &Row, peer: &str, key: &str) -> Option<f64> {
        let i = self.peers.iter().position(|other| other.name == peer)?;
        row.get(i)?.median(key)
    }

    /// A figure of ours in another scenario of this run.
    fn ours(&self, scenario: &str, key: &str) -> Option<f64> {
        let (_, row) = self.rows.iter().find(|(other, _)| other.name == scenario)?;
        self.value(row, "ours", key)
    }

    /// How many times better than the official SDK a peer is.
    fn ratio(&self, row: &Row, peer: &str, figure: &Figure) -> Option<f64> {
        let (mine, theirs) = (self.value(row, peer, figure.key)?, self.value(row, "rust-sdk", figure.key)?);
        let (good, bad) = if figure.unit.is_rate() { (mine, theirs) } else { (theirs, mine) };
        (bad > 0.0).then(|| good / bad)
    }

    fn line(&self, scenario: &Scenario, row: &Row, figure: &Figure, first: bool) -> Option<String> {
        let cell = |(i, _)| row.get::<usize>(i)?.median(figure.key).map(|value| show(figure.unit, value));
        let cells: Vec<String> =
            self.in_v1().map(|column| cell(column).unwrap_or_else(|| "–".to_owned())).collect();
        let ratio = self.ratio(row, "ours", figure);
        let (target, met) = self.judge(row, figure, ratio);
        // Nothing can be much faster than the floor, so it says what this machine allows.
        let floor = self.ratio(row, "floor", figure).filter(|_| matches!(figure.target, Target::Times(_)));
        println!(
            "| {} | {} | {} | {} | {target} | {} |",
            if first { scenario.title } else { "" },
            figure.what,
            cells.join(" | "),
            ratio.map_or("–".into(), times),
            match (met, figure.target, floor) {
                (_, Target::Open, _) => String::new(),
                (Some(true), ..) => "yes".into(),
                (Some(false), _, Some(floor)) => format!("**no** (floor {})", times(floor)),
                (Some(false), ..) => "**no**".into(),
                (None, ..) => "not measured".into(),
            },
        );
        (met == Some(false)).then(|| {
            let mine =
                self.value(row, "ours", figure.key).map_or("–".into(), |value| show(figure.unit, value));
            let reached = ratio.map_or(String::new(), |ratio| format!(", {}", times(ratio)));
            let bound =
                floor.map_or(String::new(), |floor| format!(" where the floor reaches {}", times(floor)));
            format!("{} {} is {mine}{reached}{bound}; target {target}", scenario.name, figure.what)
        })
    }

    fn judge(&self, row: &Row, figure: &Figure, ratio: Option<f64>) -> (String, Option<bool>) {
        let mine = self.value(row, "ours", figure.key);
        match figure.target {
            Target::Open => (String::new(), None),
            Target::Times(1.0) if figure.unit == Unit::Megabytes => {
                ("not more".into(), ratio.map(|ratio| ratio >= 1.0))
            }
            Target::Times(1.0) => ("not slower".into(), ratio.map(|ratio| ratio >= 1.0)),
            Target::Times(wanted) => {
                (format!("at least {}", times(wanted)), ratio.map(|ratio| ratio >= wanted))
            }
            Target::AtMost(most) => (
                format!("at most {}", show_scaled(figure.unit, most)),
                mine.map(|mine| scaled(figure.unit, mine) <= most),
            ),
            Target::Sum { of, times } => {
                let sum: Option<f64> = of.iter().map(|name| self.ours(name, figure.key)).sum();
                let most = sum.map(|sum| sum * times);
                let shown = most.map_or(String::new(), |most| format!(" = {}", show(figure.unit, most)));
                let names: Vec<String> = of.iter().map(|name| format!("“{}”", title(name))).collect();
                (
                    format!("at most {times} x ({}){shown}", names.join(" + ")),
                    mine.zip(most).map(|(mine, most)| mine <= most),
                )
            }
            Target::Flat { from, part } => {
                let few = self.ours(from, figure.key);
                let whole = title(from);
                (
                    format!("at least {:.0} % of “{whole}”", part * 100.0),
                    mine.zip(few).map(|(mine, few)| mine >= few * part),
                )
            }
        }
    }

    /// Whatever was lost or came out of order is no result at all.
    fn disorder(&self, scenario: &Scenario, row: &Row) -> Vec<String> {
        let mut missed = Vec::new();
        for (peer, measured) in self.peers.iter().zip(row) {
            let wrong = if measured.disorder > 0.0 {
                format!("{} messages lost, doubled or out of order", measured.disorder)
            } else if let Some(why) = measured.failure.as_ref().filter(|why| !why.starts_with("has no")) {
                why.clone()
            } else {
                continue;
            };
            if peer.name.starts_with("ours") {
                missed.push(format!("{} {}: {wrong}", scenario.name, peer.name));
            } else if measured.disorder > 0.0 {
                println!("| | {}: {wrong} |", peer.name);
            }
        }
        missed
    }
}

fn title(scenario: &str) -> &'static str {
    SCENARIOS.iter().find(|other| other.name == scenario).map_or("", |other| other.title)
}

fn times(ratio: f64) -> String {
    if ratio >= 100.0 { format!("{ratio:.0}x") } else { format!("{ratio:.1}x") }
}

/// The figure as the table shows it.
fn scaled(unit: Unit, value: f64) -> f64 {
    // The kernel's kB are 1024 bytes; megabytes here are a million.
    if unit == Unit::Megabytes { value * 1024.0 / 1e6 } else { value }
}

pub(super) fn show(unit: Unit, value: f64) -> String {
    show_scaled(unit, scaled(unit, value))
}

fn show_scaled(unit: Unit, value: f64) -> String {
    let figures = |value: f64| match value {
        large if large >= 100.0 => format!("{large:.0}"),
        medium if medium >= 10.0 => format!("{medium:.1}"),
        small => format!("{small:.2}"),
    };
    match unit {
        Unit::Millis => format!("{} ms", figures(value)),
        Unit::Micros | Unit::MicrosCpu => format!("{} us", figures(value)),
        Unit::SecondsCpu => format!("{value:.0} CPU-s"),
        Unit::PerSecond if value >= 1e6 => format!("{}M/s", figures(value / 1e6)),
        Unit::PerSecond if value >= 1e4 => format!("{}k/s", figures(value / 1e3)),
        Unit::PerSecond => format!("{value:.0}/s"),
        Unit::MegabytesPerSecond => format!("{value:.0} MB/s"),
        Unit::Megabytes => format!("{value:.1} MB"),
        Unit::Kilobytes => format!("{value:.1} kB"),
        Unit::Count => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_shown_with_three_digits_and_their_unit() {
        assert_eq!(show(Unit::PerSecond, 1_213_456.0), "1.21M/s");
        assert_eq!(show(Unit::PerSecond, 27_100.0), "27.1k/s");
        assert_eq!(show(Unit::PerSecond, 301.4), "301/s");
        assert_eq!(show(Unit::Micros, 46.72), "46.7 us");
        // The kernel says kB and means 1024 bytes.
        assert_eq!(show(Unit::Megabytes, 8000.0), "8.2 MB");
        assert_eq!(times(3.96), "4.0x");
        assert_eq!(times(30.42), "30.4x");
        assert_eq!(times(304.2), "304x");
    }
}
