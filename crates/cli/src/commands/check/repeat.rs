//! The command line that shows one failure again.

use attache_check::run::Repeat;

/// Flags with a value that say what is chosen or where the report goes.
const LEFT_OUT: &[&str] = &[
    "--only",
    "--scenario",
    "--tier",
    "--jobs",
    "-j",
    "--format",
    "--out",
    "--report",
    "--traces",
    "--baseline",
    "--require-coverage",
];

/// The words of this run without those that choose scenarios and reports. The values of variables
/// stay out of reports: the shell puts them in again.
pub(super) fn of(words: impl Iterator<Item = String>) -> Option<Repeat> {
    let mut words = words.skip(1);
    let mut before = vec!["attache".to_owned()];
    let mut after = Vec::new();
    // The choice follows the name of the command.
    let mut is_named = false;
    while let Some(word) = words.next() {
        if word == "--" {
            after.push(word);
            after.extend(words);
            break;
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name.to_owned(), Some(value.to_owned())),
            _ => (word.clone(), None),
        };
        let half = if is_named { &mut after } else { &mut before };
        if LEFT_OUT.contains(&name.as_str()) {
            if value.is_none() {
                words.next();
            }
        } else if name == "--env" {
            let variable = value.or_else(|| words.next())?;
            let variable = variable.split('=').next().unwrap_or_default();
            half.extend([name, format!("{variable}=${variable}")]);
        } else {
            half.push(word);
        }
        is_named = before.len() >= 2
            && ["agent", "server", "client"].contains(&before[before.len() - 1].as_str())
            && before[before.len() - 2] == "check";
    }
    is_named.then_some(Repeat { before, after })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(words: &[&str]) -> Option<String> {
        let repeat = of(words.iter().map(|word| (*word).to_owned()))?;
        Some([repeat.before.join(" "), repeat.after.join(" ")].join(" HERE "))
    }

    #[test]
    fn what_chose_and_what_reports_is_left_out() {
        let words = [
            "/usr/bin/attache",
            "-v",
            "check",
            "agent",
            "--faults",
            "--only",
            "RPC-01",
            "--report=json=x",
            "-j",
            "2",
            "--deadline",
            "5",
            "--env",
            "KEY=secret",
            "--env=A=b",
            "--",
            "agent",
            "--only",
            "x",
        ];
        assert_eq!(
            again(&words).as_deref(),
            Some(
                "attache -v check agent HERE --faults --deadline 5 --env KEY=$KEY --env A=$A -- agent --only x"
            )
        );
    }

    #[test]
    fn a_url_stays_and_a_recording_has_no_scenario() {
        let words = ["attache", "check", "server", "--transport", "ws", "ws://127.0.0.1:1/acp"];
        assert_eq!(
            again(&words).as_deref(),
            Some("attache check server HERE --transport ws ws://127.0.0.1:1/acp")
        );
        assert_eq!(again(&["attache", "check", "trace", "file"]), None);
    }
}
