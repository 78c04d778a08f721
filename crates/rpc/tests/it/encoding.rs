//! Messages as lines.

use attache_rpc::{ErrorObject, Frame, Id, encode};
use proptest::prelude::*;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn line(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn the_four_kinds() {
    // shows RPC-01, RPC-02, RPC-03, STDIO-04
    let request = line(|out| encode::request(out, &Id::Int(3), "a/b", &json!({"x": 1})).unwrap());
    assert_eq!(request, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"a/b\",\"params\":{\"x\":1}}\n");
    let notification = line(|out| encode::notification(out, "a", &json!({})).unwrap());
    assert_eq!(notification, "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{}}\n");
    let result = line(|out| encode::result(out, &"i".into(), &()).unwrap());
    assert_eq!(result, "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"result\":null}\n");
    let error = line(|out| encode::error(out, &Id::Null, &ErrorObject::new(1, "m").with_data(&[1])).unwrap());
    assert_eq!(
        error,
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":1,\"message\":\"m\",\"data\":[1]}}\n"
    );
}

#[test]
fn no_params_is_no_member() {
    let notification = line(|out| encode::notification(out, "a", &()).unwrap());
    assert_eq!(notification, "{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n");
}

#[test]
fn a_message_is_one_line_whatever_it_holds() {
    // shows STDIO-05, STDIO-16
    let raw: Box<RawValue> = serde_json::from_str("{\r\n\t\"a\":\n\"x\\ny\u{2028}\"\n}").unwrap();
    let notification = line(|out| encode::notification(out, "a", &raw).unwrap());
    assert_eq!(notification.matches('\n').count(), 1);
    assert!(!notification.contains('\r') && notification.ends_with("}\n"));
    let Frame::Notification { params, .. } = Frame::parse(notification.trim_end().as_bytes(), 64) else {
        panic!()
    };
    let value: Value = serde_json::from_str(params.unwrap().get()).unwrap();
    assert_eq!(value, json!({"a": "x\ny\u{2028}"}));
}

struct Broken;

impl Serialize for Broken {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::{Error, SerializeMap};
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("written", &1)?;
        Err(S::Error::custom("no"))
    }
}

struct Panics;

impl Serialize for Panics {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("a user's own failure")
    }
}

#[test]
fn half_a_message_is_never_left_behind() {
    let mut out = b"before\n".to_vec();
    assert!(encode::request(&mut out, &Id::Int(1), "a", &Broken).is_err());
    assert!(encode::notification(&mut out, "a", &Broken).is_err());
    assert!(encode::result(&mut out, &Id::Int(1), &Broken).is_err());
    let mut shared = std::panic::AssertUnwindSafe(&mut out);
    let panicked =
        std::panic::catch_unwind(move || encode::result(&mut shared, &Id::Int(1), &Panics).is_ok());
    assert!(panicked.is_err());
    assert_eq!(out, b"before\n");
}

pub fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(Value::from("\n\r\u{2028}\u{7f}\"\\/\u{0}")),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(any::<String>(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_id() -> impl Strategy<Value = Id> {
    prop_oneof![
        Just(Id::Null),
        any::<i64>().prop_map(Id::Int),
        any::<String>().prop_map(|text| Id::Str(text.into())),
    ]
}

fn read_back(out: &[u8]) -> Frame<'_> {
    let (end, body) = out.split_last().unwrap();
    assert_eq!(*end, b'\n');
    assert!(!body.contains(&b'\n'));
    Frame::parse(body, 1024)
}

proptest! {
    #[test]
    fn what_was_written_is_what_is_read(id in any_id(), method in "[^$_].*", params in any_json(), code in any::<i32>()) {
        let mut out = Vec::new();
        let object = json!({ "p": params });
        encode::request(&mut out, &id, &method, &object).unwrap();
        match read_back(&out) {
            Frame::Request { id: got, method: name, params: Some(raw) } => {
                prop_assert_eq!((&got, &*name), (&id, method.as_str()));
                prop_assert_eq!(serde_json::from_str::<Value>(raw.get()).unwrap(), object);
            }
            other => prop_assert!(false, "{other:?}"),
        }
        out.clear();
        encode::result(&mut out, &id, &params).unwrap();
        match read_back(&out) {
            Frame::Response { id: got, outcome: Ok(raw) } => {
                prop_assert_eq!(&got, &id);
                prop_assert_eq!(serde_json::from_str::<Value>(raw.get()).unwrap(), params.clone());
            }
            other => prop_assert!(false, "{other:?}"),
        }
        out.clear();
        let mut error = ErrorObject::new(code, method);
        if !params.is_null() {
            error = error.with_data(&params);
        }
        encode::error(&mut out, &id, &error).unwrap();
        match read_back(&out) {
            Frame::Response { id: got, outcome: Err(read) } => prop_assert_eq!((got, read), (id, error)),
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn any_bytes_are_survived(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Frame::parse(&line, 16);
    }

    #[test]
    fn nearly_messages_are_survived(
        line in r#"[{\[]("(jsonrpc|id|method|params|result|error)":("2.0"|1|null|\{\}|\[|"x"|\{"code":1\}),?){0,5}[}\]]?"#,
    ) {
        let _ = Frame::parse(line.as_bytes(), 16);
    }
}
