//! The result of a run as a table.

use super::play::Played;

/// The quantile of a 95 % interval.
const Z: f64 = 1.959_964;

/// The Wilson score interval of a proportion, at 95 %.
pub(super) fn wilson(passed: usize, all: usize) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let (n, p) = (all as f64, passed as f64 / all as f64);
    let centre = p + Z * Z / (2.0 * n);
    let spread = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    (((centre - spread) / scale).max(0.0), ((centre + spread) / scale).min(1.0))
}

/// The Markdown tables: one row per agent, then one column per agent for each task.
pub(super) fn markdown(agents: &[String], played: &[Played]) -> String {
    let mut text = String::from(
        "| agent | passed | rate | 95 % interval | requests | first request | tokens read | tokens written | seconds | malformed calls |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for agent in agents {
        let own: Vec<&Played> = played.iter().filter(|played| played.agent == *agent).collect();
        let (passed, all) = (own.iter().filter(|played| played.has_passed()).count(), own.len());
        let (low, high) = wilson(passed, all);
        let mean = |count: fn(&Played) -> f64| {
            own.iter().map(|played| count(played)).sum::<f64>() / all.max(1) as f64
        };
        // A task whose server reported nothing says nothing.
        let firsts: Vec<u64> = own.iter().map(|played| played.first).filter(|tokens| *tokens > 0).collect();
        let first = match firsts.len() as u64 {
            0 => "–".to_owned(),
            count => (firsts.iter().sum::<u64>() / count).to_string(),
        };
        let malformed: usize = own.iter().map(|played| played.malformed).sum();
        let calls: usize = own.iter().map(|played| played.requests).sum();
        text.push_str(&format!(
            "| {agent} | {passed} of {all} | {:.0} % | {:.0}–{:.0} % | {:.1} | {first} | {:.0} | {:.0} | {:.0} | {malformed} in {calls} answers |\n",
            100.0 * passed as f64 / all.max(1) as f64,
            100.0 * low,
            100.0 * high,
            mean(|played| played.requests as f64),
            mean(|played| played.read as f64),
            mean(|played| played.written as f64),
            mean(|played| played.took.as_secs_f64()),
        ));
    }
    let mut tasks: Vec<&str> = played.iter().map(|played| played.task.as_str()).collect();
    tasks.sort_unstable();
    tasks.dedup();
    text.push_str(&format!("\n| task | {} |\n|---|{}\n", agents.join(" | "), "---|".repeat(agents.len())));
    for task in tasks {
        let cell = |agent: &String| {
            let own = played.iter().filter(|played| played.agent == *agent && played.task == task);
            let marks: Vec<&str> = own.map(|played| if played.has_passed() { "✓" } else { "✗" }).collect();
            marks.join("")
        };
        text.push_str(&format!("| {task} | {} |\n", agents.iter().map(cell).collect::<Vec<_>>().join(" | ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_wilson() {
        let near = |(low, high): (f64, f64), want: (f64, f64)| {
            assert!((low - want.0).abs() < 5e-4 && (high - want.1).abs() < 5e-4, "{low} {high}");
        };
        near(wilson(0, 10), (0.0, 0.2775));
        near(wilson(5, 10), (0.2366, 0.7634));
        near(wilson(81, 263), (0.2553, 0.3662));
        near(wilson(10, 10), (0.7225, 1.0));
        assert_eq!(wilson(0, 0), (0.0, 1.0));
    }

    #[test]
    fn a_table_has_a_row_per_agent_and_per_task() {
        let played = |agent: &str, task: &str, failures: &[&str]| Played {
            agent: agent.to_owned(),
            task: task.to_owned(),
            failures: failures.iter().map(|why| (*why).to_owned()).collect(),
            requests: 2,
            first: if agent == "ours" && failures.is_empty() { 1100 } else { 0 },
            malformed: 1,
            ..Played::default()
        };
        let all = [played("ours", "a", &[]), played("ours", "a", &["wrong"]), played("pi", "b", &[])];
        let text = markdown(&["ours".to_owned(), "pi".to_owned()], &all);
        assert!(text.contains("| ours | 1 of 2 | 50 % | 9–91 % | 2.0 | 1100 |"), "{text}");
        assert!(text.contains("| 100 % | 21–100 % | 2.0 | – |"), "{text}");
        assert!(text.contains("2 in 4 answers |") && text.contains("| a | ✓✗ |  |"), "{text}");
    }
}
