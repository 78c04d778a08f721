//! What is decided, and with which of the offered options.

use attache::wire::v1::{PermissionOptionKind, SessionId};
use attache_host::policy::{
    CommandLine, Decision, Mode, Policy, Rules, Silence, Source, Subject, Unanswered, Verdict,
};
use proptest::prelude::*;
use serde_json::json;

use crate::kit::{permission, permission_with};

const ALL: [&str; 4] = ["allow_always", "allow_once", "reject_always", "reject_once"];

fn chosen(decision: &Decision) -> Option<&str> {
    match decision {
        Decision::Choose(choice) => Some(choice.option.as_str()),
        _ => None,
    }
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
        assert_eq!(chosen(&decide(Mode::ApproveReads, kind)), Some("allow_once"));
    }
    for kind in ["edit", "delete", "move", "execute", "fetch", "think", "switch_mode", "other"] {
        assert!(matches!(decide(Mode::ApproveReads, kind), Decision::Ask(_)), "{kind}");
        assert_eq!(chosen(&decide(Mode::ApproveAll, kind)), Some("allow_once"));
        assert_eq!(chosen(&decide(Mode::DenyAll, kind)), Some("reject_once"));
    }
    assert_eq!(chosen(&decide(Mode::DenyAll, "read")), Some("reject_once"));
}

#[test]
fn reads_are_approved_only_inside() {
    let policy = Policy::new(Mode::ApproveReads).roots(["/p"]);
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
fn always_is_not_chosen_for_the_user() {
    // shows PERM-04, PERM-11
    let call = json!({ "kind": "edit", "title": "x" });
    let decide = |mode, kinds: &[&str]| Policy::new(mode).decide(&permission_with(call.clone(), kinds));
    let only_always = decide(Mode::ApproveAll, &["allow_always", "reject_once"]);
    assert!(
        matches!(&only_always, Decision::Ask(reason) if reason.text.contains("just once")),
        "{only_always:?}"
    );
    assert!(matches!(decide(Mode::DenyAll, &["allow_once", "reject_always"]), Decision::Deny(_)));
    assert!(matches!(decide(Mode::DenyAll, &["allow_once"]), Decision::Deny(_)));
    assert!(matches!(decide(Mode::ApproveAll, &[]), Decision::Deny(_)));
    // The first of two of a kind.
    let mut two = permission_with(call.clone(), &["allow_once", "allow_once"]);
    two.options[0].option_id = "first".into();
    assert_eq!(chosen(&Policy::new(Mode::ApproveAll).decide(&two)), Some("first"));
}

#[test]
fn a_persons_answer_must_have_been_offered() {
    let policy = Policy::new(Mode::Ask);
    let request = permission(json!({ "kind": "edit", "title": "x" }));
    assert!(policy.answered(&request, &"ghost".into()).is_err());
    let decision = policy.answered(&request, &"reject_once".into()).unwrap();
    assert!(!decision.allows() && decision.reason().source == Source::Person);
    assert!(policy.answered(&request, &"allow_once".into()).unwrap().allows());
    assert!(policy.remembered().list().is_empty(), "once is not for always");
}

#[test]
fn always_is_remembered_as_what_it_was_about() {
    // shows PERM-14
    let cases = [
        (json!({ "kind": "edit", "title": "Edit a" }), json!({ "kind": "edit", "title": "Edit b" }), true),
        (json!({ "kind": "edit", "title": "Edit a" }), json!({ "kind": "delete", "title": "Edit a" }), false),
        (
            json!({ "kind": "edit", "title": "a", "locations": [{ "path": "/p/a" }] }),
            json!({ "kind": "edit", "title": "b", "locations": [{ "path": "/etc/b" }] }),
            false,
        ),
        (
            json!({ "kind": "execute", "title": "x", "rawInput": { "command": "make test" } }),
            json!({ "kind": "execute", "title": "y", "rawInput": { "command": "make test" } }),
            true,
        ),
        (
            json!({ "kind": "execute", "title": "x", "rawInput": { "command": "make test" } }),
            json!({ "kind": "execute", "title": "x", "rawInput": { "command": "make test; rm x" } }),
            false,
        ),
        (
            json!({ "kind": "fetch", "title": "x", "rawInput": { "url": "https://docs.rs/a" } }),
            json!({ "kind": "fetch", "title": "y", "rawInput": { "url": "https://docs.rs/b" } }),
            true,
        ),
        (
            json!({ "kind": "fetch", "title": "x", "rawInput": { "url": "https://docs.rs/a" } }),
            json!({ "kind": "fetch", "title": "x", "rawInput": { "url": "https://other.rs/a" } }),
            false,
        ),
        (
            json!({ "kind": "other", "name": "t", "title": "a" }),
            json!({ "kind": "other", "name": "t", "title": "b" }),
            true,
        ),
        (json!({ "kind": "execute", "title": "a" }), json!({ "kind": "execute", "title": "b" }), false),
        (json!({ "kind": "delete", "title": "a" }), json!({ "kind": "delete", "title": "a" }), true),
    ];
    for (first, second, same) in cases {
        let policy = Policy::new(Mode::Ask).roots(["/p"]);
        policy.answered(&permission(first.clone()), &"allow_always".into()).unwrap();
        let decision = policy.decide(&permission(second.clone()));
        assert_eq!(decision.allows(), same, "{first} then {second}: {decision:?}");
        if same {
            assert_eq!(chosen(&decision), Some("allow_always"));
            let once = policy.decide(&permission_with(second, &["allow_once"]));
            assert_eq!(chosen(&once), Some("allow_once"));
        }
    }
}

#[test]
fn what_would_be_remembered_can_be_shown() {
    let policy = Policy::new(Mode::Ask);
    let subject = policy.would_remember(&permission(json!({ "kind": "edit", "title": "x" }))).unwrap();
    assert_eq!(subject.to_string(), "editing files of this project");
    let run = json!({ "kind": "execute", "title": "x", "rawInput": { "command": " make test" } });
    assert_eq!(policy.would_remember(&permission(run)), Some(Subject::Command("make test".to_owned())));
    assert_eq!(policy.would_remember(&permission(json!({}))), None);
}

#[test]
fn never_counts_more_than_rules_and_deny_all_more_than_always() {
    let call = json!({ "kind": "edit", "title": "x" });
    let rules = Rules::parse(r#"{"autoApprove":["edit"]}"#).unwrap();
    let policy = Policy::new(Mode::ApproveAll).rules(rules);
    policy.answered(&permission(call.clone()), &"reject_always".into()).unwrap();
    let decision = policy.decide(&permission(call.clone()));
    assert_eq!((chosen(&decision), decision.reason().source), (Some("reject_always"), Source::Remembered));

    let policy = Policy::new(Mode::DenyAll);
    policy.answered(&permission(call.clone()), &"allow_always".into()).unwrap();
    assert_eq!(chosen(&policy.decide(&permission(call.clone()))), Some("reject_once"));

    let rules = Rules::parse(r#"{"escalate":["edit"]}"#).unwrap();
    let policy = Policy::new(Mode::Ask).rules(rules);
    policy.answered(&permission(call.clone()), &"allow_always".into()).unwrap();
    assert!(
        matches!(policy.decide(&permission(call)), Decision::Ask(_)),
        "the rule wants a person each time"
    );
}

#[test]
fn silence_is_never_an_approval() {
    let request = permission(json!({ "kind": "edit", "title": "x" }));
    for silence in [Silence::TimeLimit, Silence::Unattended] {
        let policy = Policy::new(Mode::Ask).asking(None, Unanswered::Deny);
        assert_eq!(chosen(&policy.unanswered(&request, silence)), Some("reject_once"));
        let policy = Policy::new(Mode::Ask).asking(None, Unanswered::Fail);
        assert!(matches!(policy.unanswered(&request, silence), Decision::Fail(_)));
    }
}

#[test]
fn a_permission_is_good_for_what_it_was_given_for() {
    let session = SessionId::from("s1");
    let policy = Policy::new(Mode::Ask).roots(["/p"]);
    let may = |verdict: Verdict| matches!(verdict, Verdict::Allow(_));
    let write = |path: &str| may(policy.may_write(Some(&session), path.as_ref()));
    let run = |text: &str| may(policy.may_run(Some(&session), &CommandLine::shell(text)));
    assert!(!write("/p/a") && !run("make test"));
    let diff = json!({ "kind": "edit", "title": "x", "content": [{ "type": "diff", "path": "/p/a", "newText": "" }] });
    policy.answered(&permission(diff), &"allow_once".into()).unwrap();
    let command = json!({ "kind": "execute", "title": "x", "rawInput": { "command": "make test" } });
    policy.answered(&permission(command), &"allow_once".into()).unwrap();
    let look = json!({ "kind": "read", "title": "x", "locations": [{ "path": "/p/only-read" }] });
    policy.answered(&permission(look), &"allow_once".into()).unwrap();
    let refused = json!({ "kind": "edit", "title": "x", "locations": [{ "path": "/p/refused" }] });
    policy.answered(&permission(refused), &"reject_once".into()).unwrap();
    assert!(write("/p/a") && run("make test"));
    assert!(may(policy.may_run(Some(&session), &CommandLine::program("make", &["test"]))));
    assert!(!write("/p/b") && !write("/p/only-read") && !write("/p/refused"));
    assert!(!run("make test; rm x") && !run("make"));
    let other = SessionId::from("s2");
    assert!(!may(policy.may_write(Some(&other), "/p/a".as_ref())));
    policy.turn_over(&session);
    assert!(!write("/p/a") && !run("make test"));
}

proptest! {
    #[test]
    fn only_offered_options_are_ever_chosen(
        mode in prop::sample::select(vec![Mode::Ask, Mode::ApproveReads, Mode::ApproveAll, Mode::DenyAll]),
        offered in prop::collection::vec(prop::sample::select(ALL.to_vec()), 0..5),
        kind in prop::sample::select(vec!["read", "edit", "execute", "other"]),
        before in prop::option::of(prop::sample::select(ALL.to_vec())),
        rules in prop::sample::select(vec!["{}", r#"{"autoDeny":["edit"]}"#, r#"{"autoApprove":["*"]}"#, r#"{"defaultAction":"deny"}"#]),
    ) {
        // shows PERM-04
        let policy = Policy::new(mode).rules(Rules::parse(rules).unwrap());
        let call = json!({ "kind": kind, "title": "x" });
        if let Some(before) = before {
            policy.answered(&permission(call.clone()), &before.into()).unwrap();
        }
        let request = permission_with(call, &offered);
        for decision in [policy.decide(&request), policy.unanswered(&request, Silence::TimeLimit)] {
            if let Decision::Choose(choice) = &decision {
                let option = request.options.iter().find(|option| option.option_id == choice.option);
                let option = option.expect("an option that was not offered");
                prop_assert_eq!(option.kind.allows(), choice.allows);
                let always = matches!(option.kind, PermissionOptionKind::AllowAlways | PermissionOptionKind::RejectAlways);
                prop_assert!(!always || choice.reason.source == Source::Remembered);
            }
        }
    }
}
