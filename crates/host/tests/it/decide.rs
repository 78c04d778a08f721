//! Decisions about permission requests, and the options with which they are answered.

use attache::wire::v1::{PermissionOptionKind, RequestPermissionRequest, SessionId};
use attache_host::policy::{
    Answer, CommandLine, Confined, Content, Decision, Effect, FilePath, Mode, Policy, Question, Request,
    Rules, Run, Section, Silence, Source, Unanswered, Verdict,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::kit::{permission, permission_with};

const ALL: [&str; 4] = ["allow_always", "allow_once", "reject_always", "reject_once"];

fn chosen(decision: &Decision) -> Option<&str> {
    match decision {
        Decision::Choose(selected) => Some(selected.option.as_str()),
        _ => None,
    }
}

fn question(policy: &Policy, request: &RequestPermissionRequest) -> Box<Question> {
    match policy.decide(request) {
        Decision::Ask(question) => question,
        other => panic!("{other:?}"),
    }
}

/// Asks and answers.
fn answer(policy: &Policy, call: Value, answer: Answer) -> Decision {
    let request = permission(call);
    let question = question(policy, &request);
    policy.answer(&request, &question, &answer).unwrap()
}

fn labels(question: &Question) -> Vec<&str> {
    question.choices.iter().map(|choice| choice.label.as_str()).collect()
}

fn write(path: &str, text: &str) -> Effect {
    Effect::Write { path: FilePath::from_real(path), content: Content::known(None, text) }
}

fn run(line: &str, cwd: &str) -> Effect {
    Effect::Run(Run::new(CommandLine::shell(line), FilePath::from_real(cwd)))
}

fn may(policy: &Policy, session: &str, effect: Effect) -> bool {
    matches!(policy.judge(&Request::direct(Some(&SessionId::from(session)), effect)), Verdict::Allow(_))
}

fn diff(path: &str, text: &str) -> Value {
    json!({ "kind": "edit", "title": "Edit", "content": [{ "type": "diff", "path": path, "newText": text }] })
}

fn command(line: &str) -> Value {
    json!({ "kind": "execute", "title": "Run", "rawInput": { "command": line } })
}

#[test]
fn without_a_setting_everything_is_asked() {
    // shows PERM-05, PERM-06, PERM-07
    for kind in ["read", "search", "edit", "execute", "think", "other"] {
        let decision =
            Policy::new(Mode::default()).decide(&permission(json!({ "kind": kind, "title": "x" })));
        assert!(matches!(decision, Decision::Ask(_)), "{kind}: {decision:?}");
    }
}

#[test]
fn modes() {
    let decide =
        |mode, kind: &str| Policy::new(mode).decide(&permission(json!({ "kind": kind, "title": "x" })));
    for kind in ["read", "search"] {
        assert_eq!(chosen(&decide(Mode::APPROVE_READS, kind)), Some("allow_once"));
    }
    for kind in ["edit", "delete", "move", "execute", "fetch", "think", "switch_mode", "other"] {
        assert!(matches!(decide(Mode::APPROVE_READS, kind), Decision::Ask(_)), "{kind}");
        assert_eq!(chosen(&decide(Mode::APPROVE_ALL, kind)), Some("allow_once"));
        assert_eq!(chosen(&decide(Mode::DENY_ALL, kind)), Some("reject_once"));
    }
    assert_eq!(chosen(&decide(Mode::DENY_ALL, "read")), Some("reject_once"));
}

#[test]
fn reads_are_approved_only_inside() {
    let policy = Policy::new(Mode::APPROVE_READS).roots(["/p"]);
    let read = |path: &str| {
        policy.decide(&permission(json!({ "kind": "read", "title": "x", "locations": [{ "path": path }] })))
    };
    assert!(read("/p/a").allows());
    assert!(!read("/home/user/.ssh/id_ed25519").allows());
    assert!(!read("/p/../etc/passwd").allows());
    let disguised = json!({ "kind": "read", "title": "x", "rawInput": { "command": "rm -rf /" } });
    assert!(!policy.decide(&permission(disguised)).allows());
}

#[test]
fn no_mode_writes_a_protected_file() {
    for mode in Mode::CLIENT {
        let policy = Policy::new(mode).roots(["/p"]);
        for path in
            ["/p/.git/hooks/post-checkout", "/p/AGENTS.md", "/p/.attache.toml", "/p/.vscode/tasks.json"]
        {
            assert!(!policy.decide(&permission(diff(path, "x"))).allows(), "{mode} {path}");
            assert!(!may(&policy, "s1", write(path, "x")), "{mode} {path}");
        }
    }
    let everything = Policy::new(Mode::APPROVE_ALL).roots(["/p"]);
    let rules = |text: &str| Policy::new(Mode::APPROVE_ALL).roots(["/p"]).rules(Rules::parse(text).unwrap());
    assert!(may(&everything, "s1", write("/p/src/a", "x")));
    assert!(!may(&rules(r#"{"autoApprove":["*"]}"#), "s1", write("/p/AGENTS.md", "x")));
    assert!(!may(&rules(r#"{"defaultAction":"approve"}"#), "s1", write("/p/AGENTS.md", "x")));
    let named = rules(r#"{"autoApprove":[{"path":"AGENTS.md","protected":true}]}"#);
    assert!(may(&named, "s1", write("/p/AGENTS.md", "x")));
    assert!(!may(&named, "s1", write("/p/.git/config", "x")));
}

#[test]
fn always_is_not_chosen_for_the_user() {
    // shows PERM-04, PERM-11
    let call = json!({ "kind": "edit", "title": "x" });
    let decide = |mode, kinds: &[&str]| Policy::new(mode).decide(&permission_with(call.clone(), kinds));
    let only_always = decide(Mode::APPROVE_ALL, &["allow_always", "reject_once"]);
    assert!(
        matches!(&only_always, Decision::Ask(question) if question.reason.text.contains("just once")),
        "{only_always:?}"
    );
    assert!(matches!(decide(Mode::DENY_ALL, &["allow_once", "reject_always"]), Decision::Deny(_)));
    assert!(matches!(decide(Mode::DENY_ALL, &["allow_once"]), Decision::Deny(_)));
    assert!(matches!(decide(Mode::APPROVE_ALL, &[]), Decision::Deny(_)));
    // The first of two of a kind.
    let mut two = permission_with(call.clone(), &["allow_once", "allow_once"]);
    two.options[0].option_id = "first".into();
    assert_eq!(chosen(&Policy::new(Mode::APPROVE_ALL).decide(&two)), Some("first"));
}

#[test]
fn an_answer_must_have_been_offered() {
    let policy = Policy::new(Mode::ASK);
    let request = permission(json!({ "kind": "edit", "title": "x" }));
    let asked = question(&policy, &request);
    assert!(policy.answer(&request, &asked, &Answer::Offered("ghost".into())).is_err());
    let decision = policy.answer(&request, &asked, &Answer::Reject).unwrap();
    assert!(!decision.allows() && decision.reason().source == Source::Person);
    assert!(policy.answer(&request, &asked, &Answer::Once).unwrap().allows());
    assert!(policy.remembered().list().is_empty(), "once is not for always");
    let no_yes = permission_with(json!({ "kind": "edit" }), &["reject_once"]);
    let asked = question(&policy, &no_yes);
    assert!(policy.answer(&no_yes, &asked, &Answer::Once).is_err());
}

#[test]
fn the_buttons_state_our_scope_and_quote_the_agent() {
    let policy = Policy::new(Mode::ASK).roots(["/p"]).agent("claude");
    let mut request = permission_with(diff("/p/a", "x"), &["allow_once", "allow_always", "reject_once"]);
    request.options[0].name = "Allow".to_owned();
    request.options[1].name = "Yes, allow all edits during this session".to_owned();
    request.options[2].name = "No, keep planning".to_owned();
    assert_eq!(
        labels(&question(&policy, &request)),
        [
            "Yes, once",
            "Yes, until this chat ends: edit files",
            "Always in this project: edit files (claude)",
            "claude: “Yes, allow all edits during this session”",
            "No (“No, keep planning”)",
        ]
    );
    // The agent's own label never becomes a rule of ours.
    let asked = question(&policy, &request);
    let decision = policy.answer(&request, &asked, &Answer::Offered("allow_always".into())).unwrap();
    assert_eq!(chosen(&decision), Some("allow_always"));
    assert!(policy.remembered().list().is_empty());
    assert!(!may(&policy, "s1", write("/p/b", "y")));

    let labels_of = |call: Value| question(&policy, &permission(call)).choices;
    let shell = labels_of(command("cargo test"));
    assert_eq!(shell[2].label, "Always in this project: `cargo test` in this directory (claude)");
    // Answers that cannot be remembered are not offered.
    for call in [
        diff("/p/AGENTS.md", "x"),
        diff("/etc/hosts", "x"),
        json!({ "kind": "delete", "title": "x", "locations": [{ "path": "/p/a" }] }),
        json!({ "kind": "other", "title": "x" }),
        json!({ "kind": "execute", "title": "x", "rawInput": { "command": "make", "env": { "API_KEY": "x" } } }),
    ] {
        let choices = labels_of(call.clone());
        assert!(
            choices.iter().all(|choice| !matches!(choice.answer, Answer::Session | Answer::Project)),
            "{call}"
        );
    }
}

#[test]
fn a_question_shows_every_effect() {
    let policy = Policy::new(Mode::ASK).roots(["/p"]).agent("claude");
    let call = json!({
        "kind": "execute", "title": "Run the tests",
        "rawInput": { "command": "cargo test", "shell": "touch PWNED", "paths": ["/p/hidden"], "url": "https://evil.org/x",
                      "env": { "LD_PRELOAD": "/tmp/x.so", "NO_COLOR": "1" } },
        "locations": [{ "path": "/p/.git/hooks/post-checkout" }],
        "content": [
            { "type": "diff", "path": "/p/a", "oldText": "old\n", "newText": "new\n" },
            { "type": "content", "content": { "type": "text", "text": "a note" } },
        ],
    });
    let asked = question(&policy, &permission(call));
    let sections = asked.sections();
    let has = |wanted: &Section| assert!(sections.contains(wanted), "{wanted:?} in {sections:#?}");
    has(&Section::Command("cargo test".into()));
    has(&Section::Command("touch PWNED".into()));
    has(&Section::Quote("Run the tests".into()));
    has(&Section::Quote("a note".into()));
    has(&Section::Change { path: "a".into(), old: Some("old\n".into()), new: "new\n".into() });
    has(&Section::Text("with LD_PRELOAD=/tmp/x.so".into()));
    has(&Section::Text("+1 variable".into()));
    let text = format!("{sections:?}");
    for shown in ["Use hidden", "Use .git/hooks/post-checkout", "Connect to evil.org:443"] {
        assert!(text.contains(shown), "{shown} in {text}");
    }
    assert_eq!(asked.headline(), "Allow these 6 actions?");
}

#[test]
fn a_permission_is_for_what_was_shown_and_once() {
    let policy = Policy::new(Mode::ASK).roots(["/p"]);
    assert!(!may(&policy, "s1", write("/p/a", "new")));
    answer(&policy, diff("/p/a", "new"), Answer::Once);
    assert!(!may(&policy, "s1", write("/p/a", "other")), "another text");
    assert!(!may(&policy, "s1", write("/p/b", "new")), "another file");
    assert!(!may(&policy, "s2", write("/p/a", "new")), "another session");
    assert!(may(&policy, "s1", write("/p/a", "new")));
    assert!(!may(&policy, "s1", write("/p/a", "new")), "a second time");

    answer(&policy, command("make test"), Answer::Once);
    assert!(!may(&policy, "s1", run("make test; rm x", "/p")));
    assert!(!may(&policy, "s1", run("make test", "/p/sub")), "another directory");
    let mut preload = Run::new(CommandLine::shell("make test"), FilePath::from_real("/p"));
    preload.env.insert("LD_PRELOAD".into(), "/p/x.so".into());
    assert!(!may(&policy, "s1", Effect::Run(preload)), "another environment");
    assert!(may(
        &policy,
        "s1",
        Effect::Run(Run::new(CommandLine::program("make", &["test"]), FilePath::from_real("/p")))
    ));
    assert!(!may(&policy, "s1", run("make test", "/p")), "a second time");

    // Hidden beside what was shown as a change: named, but with no content that could be granted.
    let hidden = json!({
        "kind": "edit", "title": "Edit notes.md", "locations": [{ "path": "/p/.git/hooks/post-checkout" }],
        "rawInput": { "paths": ["/p/c"] },
        "content": [{ "type": "diff", "path": "/p/notes.md", "newText": "n" }],
    });
    answer(&policy, hidden, Answer::Once);
    assert!(
        !may(&policy, "s1", write("/p/.git/hooks/post-checkout", "x"))
            && !may(&policy, "s1", write("/p/c", "x"))
    );
    assert!(may(&policy, "s1", write("/p/notes.md", "n")));

    answer(&policy, diff("/p/refused", "x"), Answer::Reject);
    assert!(!may(&policy, "s1", write("/p/refused", "x")));

    answer(&policy, diff("/p/late", "x"), Answer::Once);
    policy.turn_over(&SessionId::from("s1"));
    assert!(!may(&policy, "s1", write("/p/late", "x")), "the turn is over");
}

#[test]
fn a_command_may_be_confined_more_than_was_agreed() {
    let policy = Policy::new(Mode::ASK).roots(["/p"]);
    answer(&policy, command("make"), Answer::Once);
    let confined = Run {
        confined: Confined::Workspace,
        ..Run::new(CommandLine::shell("make"), FilePath::from_real("/p"))
    };
    assert!(may(&policy, "s1", Effect::Run(confined.clone())));
    // The other way round it is not the same.
    let request = Request::direct(Some(&"s1".into()), Effect::Run(confined.clone()));
    let Verdict::Ask(asked) = policy.judge(&request) else { panic!() };
    policy.settle("terminal", &asked, &Answer::Project);
    assert!(may(&policy, "s1", Effect::Run(confined)));
    assert!(!may(&policy, "s1", run("make", "/p")));
}

#[test]
fn an_answer_for_the_project_is_remembered() {
    // shows PERM-14
    let cases = [
        (diff("/p/a", "1"), diff("/p/b", "2"), true),
        (diff("/p/a", "1"), diff("/etc/b", "2"), false),
        (diff("/p/a", "1"), diff("/p/.git/config", "2"), false),
        (
            diff("/p/a", "1"),
            json!({ "kind": "delete", "title": "x", "locations": [{ "path": "/p/a" }] }),
            false,
        ),
        (command("make test"), command("make test"), true),
        (command("make test"), command("make test; rm x"), false),
        (
            command("make test"),
            json!({ "kind": "execute", "rawInput": { "command": "make test", "cwd": "/p/evil" } }),
            false,
        ),
        (
            command("make test"),
            json!({ "kind": "execute", "rawInput": { "command": "make test", "cmd": "rm x" } }),
            false,
        ),
        (command("a | b"), command("a | b"), true),
        (
            json!({ "kind": "execute", "title": "t", "rawInput": { "command": "a", "cmd": "b" } }),
            json!({ "kind": "execute", "title": "t", "rawInput": { "command": "a", "cmd": "c" } }),
            false,
        ),
        (
            json!({ "kind": "fetch", "title": "x", "rawInput": { "url": "https://docs.rs/a" } }),
            json!({ "kind": "fetch", "title": "y", "rawInput": { "url": "https://docs.rs/b" } }),
            true,
        ),
        (
            json!({ "kind": "fetch", "title": "x", "rawInput": { "url": "https://docs.rs/a" } }),
            json!({ "kind": "fetch", "title": "x", "rawInput": { "url": "https://docs.rs:8443/a" } }),
            false,
        ),
        (
            json!({ "kind": "other", "name": "t", "title": "a" }),
            json!({ "kind": "other", "name": "t", "title": "b" }),
            true,
        ),
        (
            json!({ "kind": "other", "name": "t", "title": "a" }),
            json!({ "kind": "other", "name": "t", "title": "a", "rawInput": { "command": "rm x" } }),
            false,
        ),
    ];
    for (first, second, same) in cases {
        for span in [Answer::Session, Answer::Project] {
            let policy = Policy::new(Mode::ASK).roots(["/p"]);
            answer(&policy, first.clone(), span.clone());
            policy.turn_over(&SessionId::from("s1"));
            let decision = policy.decide(&permission(second.clone()));
            assert_eq!(decision.allows(), same, "{first} then {second}: {decision:?}");
            if same {
                assert_eq!(chosen(&decision), Some("allow_once"), "never the agent's own always");
            }
            assert_eq!(!policy.remembered().list().is_empty(), span == Answer::Project);
        }
    }
}

#[test]
fn a_session_ends_with_its_answers() {
    let policy = Policy::new(Mode::ASK).roots(["/p"]);
    answer(&policy, diff("/p/a", "1"), Answer::Session);
    assert!(may(&policy, "s1", write("/p/b", "2")));
    assert!(!may(&policy, "s2", write("/p/b", "2")));
    policy.remembered().end_session(&SessionId::from("s1"));
    assert!(!may(&policy, "s1", write("/p/b", "2")));
}

#[test]
fn never_counts_more_than_rules_and_deny_all_more_than_always() {
    let call = diff("/p/a", "x");
    let policy =
        Policy::new(Mode::ASK).roots(["/p"]).rules(Rules::parse(r#"{"autoApprove":["edit"]}"#).unwrap());
    let request = permission(call.clone());
    let asking = Policy::new(Mode::ASK).roots(["/p"]);
    policy.answer(&request, &question(&asking, &request), &Answer::Never).unwrap();
    let decision = policy.decide(&request);
    assert_eq!((chosen(&decision), decision.reason().source), (Some("reject_once"), Source::Remembered));

    let policy = Policy::new(Mode::DENY_ALL).roots(["/p"]);
    policy.answer(&request, &question(&asking, &request), &Answer::Project).unwrap();
    assert_eq!(chosen(&policy.decide(&request)), Some("reject_once"));

    let policy =
        Policy::new(Mode::ASK).roots(["/p"]).rules(Rules::parse(r#"{"escalate":["edit"]}"#).unwrap());
    answer(&policy, call.clone(), Answer::Project);
    assert!(matches!(policy.decide(&request), Decision::Ask(_)), "the rule wants a person each time");
}

#[test]
fn silence_is_never_an_approval() {
    let request = permission(json!({ "kind": "edit", "title": "x" }));
    for silence in [Silence::TimeLimit, Silence::Unattended] {
        let policy = Policy::new(Mode::ASK).asking(None, Unanswered::Deny);
        assert_eq!(chosen(&policy.unanswered(&request, silence)), Some("reject_once"));
        let policy = Policy::new(Mode::ASK).asking(None, Unanswered::Fail);
        assert!(matches!(policy.unanswered(&request, silence), Decision::Fail(_)));
    }
}

#[test]
fn a_read_only_command_is_a_read() {
    for (mode, allowed) in [(Mode::DENY_ALL, false), (Mode::ASK, true), (Mode::APPROVE_READS, true)] {
        let policy = Policy::new(mode).roots(["/p"]);
        let look = Run {
            confined: Confined::ReadOnly,
            ..Run::new(CommandLine::shell("ls | wc"), FilePath::from_real("/p"))
        };
        assert_eq!(may(&policy, "s1", Effect::Run(look)), allowed, "{mode}");
        assert!(!may(&policy, "s1", run("ls", "/p")), "{mode}");
    }
}

proptest! {
    #[test]
    fn only_offered_options_are_ever_chosen(
        mode in prop::sample::select(Mode::CLIENT.to_vec()),
        offered in prop::collection::vec(prop::sample::select(ALL.to_vec()), 0..5),
        kind in prop::sample::select(vec!["read", "edit", "execute", "other"]),
        before in prop::option::of(prop::sample::select(vec![Answer::Once, Answer::Session, Answer::Project, Answer::Never, Answer::Reject])),
        rules in prop::sample::select(vec!["{}", r#"{"autoDeny":["edit"]}"#, r#"{"autoApprove":["*"]}"#, r#"{"defaultAction":"deny"}"#]),
    ) {
        // shows PERM-04
        let policy = Policy::new(mode).roots(["/p"]).rules(Rules::parse(rules).unwrap());
        let call = json!({ "kind": kind, "title": "x", "locations": [{ "path": "/p/a" }] });
        let request = permission_with(call.clone(), &offered);
        if let (Some(before), Decision::Ask(asked)) = (before, policy.decide(&permission(call))) {
            let _ = policy.answer(&request, &asked, &before);
        }
        let mut decisions = vec![policy.decide(&request), policy.unanswered(&request, Silence::TimeLimit)];
        if let Decision::Ask(asked) = decisions[0].clone() {
            for choice in asked.choices.clone() {
                decisions.extend(policy.answer(&request, &asked, &choice.answer));
            }
        }
        for decision in decisions {
            if let Decision::Choose(selected) = &decision {
                let option = request.options.iter().find(|option| option.option_id == selected.option);
                let option = option.expect("an option that was not offered");
                prop_assert_eq!(option.kind.allows(), selected.allows);
                let always = matches!(option.kind, PermissionOptionKind::AllowAlways | PermissionOptionKind::RejectAlways);
                prop_assert!(!always || selected.reason.source == Source::Person);
            }
        }
    }
}
