//! Bounds on the entries and members of one message.

use attache_wire::v1::{SessionUpdate, ToolCallUpdate};
use attache_wire::{Patch, v2};

fn locations(count: usize) -> String {
    let list = vec![r#"{"path":"/"}"#; count].join(",");
    format!(r#"{{"toolCallId":"c","locations":[{list}],"content":[]}}"#)
}

#[test]
fn lists_are_bounded_and_counted_separately() {
    let read = |count| serde_json::from_str::<ToolCallUpdate>(&locations(count));
    for _ in 0..3 {
        assert!(read(16_384).is_ok_and(|call| call.locations.is_some_and(|list| list.len() == 16_384)));
        assert!(read(16_385).is_err_and(|error| error.to_string().contains("more than 16384 entries")));
    }
}

#[test]
fn lists_with_three_states_are_bounded_too() {
    let read = |count| serde_json::from_str::<v2::ToolCallUpdate>(&locations(count));
    let count = |call: v2::ToolCallUpdate| match call.locations {
        Patch::Set(list) => list.len(),
        other => panic!("{other:?}"),
    };
    assert!(read(16_384).is_ok_and(|call| count(call) == 16_384));
    assert!(read(16_385).is_err_and(|error| error.to_string().contains("more than 16384 entries")));
}

#[test]
fn lists_inside_of_lists_count_together() {
    let option = |choices: usize| {
        let choices = vec![r#"{"value":"v","name":"n"}"#; choices].join(",");
        let group = format!(r#"{{"group":"g","name":"g","options":[{choices}]}}"#);
        format!(r#"{{"id":"o","name":"o","type":"select","currentValue":"v","options":[{group}]}}"#)
    };
    let update = |options: usize, choices: usize| {
        let options = vec![option(choices); options].join(",");
        let update = format!(r#"{{"sessionUpdate":"config_option_update","configOptions":[{options}]}}"#);
        serde_json::from_str::<SessionUpdate>(&update)
    };
    let count = |update: SessionUpdate| match update {
        SessionUpdate::ConfigOptionUpdate(update) => update.config_options.len(),
        other => panic!("{other:?}"),
    };
    assert!(update(100, 100).is_ok_and(|update| count(update) == 100));
    assert!(update(100, 1_000).is_err_and(|error| error.to_string().contains("more than 16384 entries")));
}

#[test]
fn a_tag_after_very_many_members_is_refused() {
    let update = |before: usize| {
        let members = vec![r#""x":1,"#; before].concat();
        let text = format!(r#"{{{members}"sessionUpdate":"current_mode_update","currentModeId":"m"}}"#);
        serde_json::from_str::<SessionUpdate>(&text)
    };
    assert!(update(256).is_ok());
    assert!(update(257).is_err_and(|error| error.to_string().contains("more than 256 members")));
}
