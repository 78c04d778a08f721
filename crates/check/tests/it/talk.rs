//! Conversations written down as lines: `c …` is what the client says, `a …` the agent.

use std::time::Duration;

use attache_check::judge::judge;
use attache_check::{Entry, EntryKind, LineEnd, Role, Trace, Verdict};

pub fn trace(lines: &[&str]) -> Trace {
    let entry = |(number, line): (usize, &&str)| {
        let (who, text) = line.split_once(' ').unwrap_or((line, ""));
        let from = if who == "c" { Role::Client } else { Role::Agent };
        let kind = EntryKind::Line { from, text: text.into(), end: LineEnd::Lf };
        Entry { at: Duration::from_millis(number as u64), kind }
    };
    Trace { entries: lines.iter().enumerate().map(entry).collect(), ..Trace::default() }
}

/// Begins a conversation with these capabilities of both.
pub fn begun(client: &str, agent: &str, lines: &[&str]) -> Trace {
    let ask = format!(
        r#"c {{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":1,"clientCapabilities":{client},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    );
    let answer = format!(
        r#"a {{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":1,"agentCapabilities":{agent},"agentInfo":{{"name":"a","version":"1"}}}}}}"#
    );
    let new = r#"c {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#;
    let named = r#"a {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#;
    let mut all = vec![ask.as_str(), answer.as_str(), new, named];
    all.extend(lines);
    trace(&all)
}

/// The rules that were broken, each once, in order.
pub fn broken(trace: &Trace) -> Vec<&'static str> {
    let mut rules: Vec<&str> = judge(trace, None)
        .into_iter()
        .filter(|finding| finding.verdict == Verdict::Fail)
        .map(|finding| finding.rule)
        .collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

/// Whether the rule was exercised and kept.
pub fn kept(trace: &Trace, rule: &str) -> bool {
    let findings = judge(trace, None);
    let of = |verdict| findings.iter().any(|finding| finding.rule == rule && finding.verdict == verdict);
    of(Verdict::Pass) && !of(Verdict::Fail)
}
