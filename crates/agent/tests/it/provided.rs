//! A client that provides its files and terminals.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use attache::client::{Client, RequestContext};
use attache::wire::v1::{ReadTextFileRequest, ToolCallContent, WriteTextFileRequest};
use attache_agent::Mode;
use attache_host::Host;
use attache_host::policy::{Mode as Policing, Policy};

use crate::rig::{Project, allow, session_of};

#[tokio::test]
async fn unsaved_text_counts_and_edits_go_through_the_client() {
    // shows FS-01, FS-04, FS-09, TOOL-22
    let project = Project::new();
    project.write("a.txt", "on disk\n");
    let buffers =
        Arc::new(Mutex::new(HashMap::from([(project.path_of("a.txt"), "in the editor\n".to_owned())])));
    let (reading, writing) = (buffers.clone(), buffers.clone());
    let client = Client::new()
        .read_files(move |_: RequestContext, request: ReadTextFileRequest| {
            let text = reading.lock().unwrap().get(&request.path).cloned();
            async move { text.ok_or_else(|| attache::Error::not_found("no such buffer")) }
        })
        .write_files(move |_: RequestContext, request: WriteTextFileRequest| {
            writing.lock().unwrap().insert(request.path, request.content);
            async { Ok(()) }
        });
    let script = r#"==
--
call read {"path": "a.txt"}
--
call edit {"path": "a.txt", "old": "editor", "new": "buffer"}
call write {"path": "b.txt", "content": "new"}
--
say done
"#;
    let mut session = session_of(client, &project, script, Mode::Code).await;
    let seen = allow(&mut session, "go").await;
    assert_eq!(seen.text, "done", "{seen:#?}");
    assert_eq!(buffers.lock().unwrap()[&project.path_of("a.txt")], "in the buffer\n");
    assert_eq!(buffers.lock().unwrap()[&project.path_of("b.txt")], "new");
    assert_eq!(project.read("a.txt"), "on disk\n", "the client writes, and this one keeps it in memory");
    assert!(!project.has("b.txt"));
}

#[tokio::test]
async fn lines_of_a_file_of_the_client_are_counted() {
    let project = Project::new();
    project.write("a.txt", "on disk\n");
    let client = Client::new().read_files(|_: RequestContext, request: ReadTextFileRequest| {
        let (first, most) = (request.line.unwrap_or(1) as usize, request.limit.unwrap_or(u32::MAX) as usize);
        let lines = (1..=3000).map(|number| format!("{number}\n")).skip(first - 1).take(most);
        let text = lines.collect::<String>();
        async move { Ok(text) }
    });
    let script = "==\n--\ncall read {\"path\": \"a.txt\", \"limit\": 10}\n--\nsay ${result}\n";
    let mut session = session_of(client, &project, script, Mode::Code).await;
    let seen = allow(&mut session, "go").await;
    assert!(seen.text.contains("(lines 1 to 10 of 3000; continue with line=11)"), "{seen:#?}");
}

#[tokio::test]
async fn a_missing_file_reported_as_empty_is_missing() {
    // shows FS-13
    let project = Project::new();
    project.write("empty.txt", "");
    let client =
        Client::new().read_files(|_: RequestContext, _: ReadTextFileRequest| async { Ok(String::new()) });
    let script =
        "==\n--\ncall read {\"path\": \"no.txt\"}\ncall read {\"path\": \"empty.txt\"}\n--\nsay ${result}\n";
    let mut session = session_of(client, &project, script, Mode::Code).await;
    let seen = allow(&mut session, "go").await;
    assert!(seen.text.contains("no such file: no.txt"), "{seen:#?}");
    assert!(seen.text.contains("the file is empty"), "{seen:#?}");
}

#[tokio::test]
async fn a_client_that_provides_only_reading_gets_no_unsaved_text_on_disk() {
    // shows FS-02
    let project = Project::new();
    project.write("a.txt", "on disk\n");
    let client = Client::new()
        .read_files(|_: RequestContext, _: ReadTextFileRequest| async { Ok("unsaved\n".to_owned()) });
    let script = "==\n--\ncall edit {\"path\": \"a.txt\", \"old\": \"disk\", \"new\": \"the disk\"}\n--\nsay ${result}\n";
    // The model sees the text on disk before it changes it.
    let script = &script.replacen("--\n", &format!("--\n{}\n--\n", script.lines().nth(2).unwrap()), 1);
    let mut session = session_of(client, &project, script, Mode::Code).await;
    let seen = allow(&mut session, "go").await;
    assert_eq!(project.read("a.txt"), "on the disk\n", "{seen:#?}");
}

#[tokio::test]
async fn commands_run_in_the_clients_terminals_and_are_released() {
    // shows TERM-01, TERM-05, TOOL-16
    let project = Project::new();
    let host = Host::new(Policy::new(Policing::APPROVE_ALL));
    let client = Client::new().terminals(host.terminals());
    let script = "==\n--\ncall run {\"command\": \"echo $((6 * 7))\"}\n--\nsay ${result}\n";
    let mut session = session_of(client, &project, script, Mode::Auto).await;
    let seen = allow(&mut session, "go").await;
    assert_eq!(seen.text, "42\n(exit code 0)", "{seen:#?}");
    let embedded = seen.calls.iter().flat_map(|call| call.content.iter().flatten());
    assert!(embedded.clone().any(|content| matches!(content, ToolCallContent::Terminal(_))), "{seen:#?}");
    let last = seen.calls.last().unwrap();
    assert!(last.content.is_none(), "the terminal stays in the call: {last:?}");
}
