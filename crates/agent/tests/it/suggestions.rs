//! Next-edit suggestions, from an editor's side.

use attache::client::{Client, NesSession, SuggestionPoint};
use attache::wire::v1::{
    ClientNesCapabilities, NesDiagnostic, NesDiagnosticSeverity, NesJumpCapabilities, NesRejectReason,
    NesSuggestContext, NesSuggestion, NesTriggerKind, Position, PositionEncodingKind, Range, StartNesRequest,
    TextDocumentContentChangeEvent,
};

use crate::rig::{Project, connect};

const URI: &str = "file:///project/a.rs";

/// Suggests by what it is shown: a diagnostic, or a change that was begun.
const SCRIPT: &str = r#"
== when "expected `;`"
--
call suggest {"suggestions": [{"kind": "edit", "old": "let x = 1\n", "new": "let x = 1;\n"}]}
== when "became"
--
call suggest {"suggestions": [{"kind": "edit", "old": "😀 old()", "new": "😀 new()"}, {"kind": "jump", "old": "fn last"}, {"kind": "rename", "old": "last", "new": "end"}]}
== when "File"
--
call suggest {"suggestions": [{"kind": "edit", "old": "not in the file", "new": "x"}, {"kind": "nonsense"}, {"kind": "edit", "old": "same", "new": "same"}]}
"#;

async fn editor(project: &Project, client: Client) -> NesSession {
    let agent = connect(client, project.script(SCRIPT)).await;
    agent.nes().unwrap().start(StartNesRequest::new()).await.unwrap()
}

fn spot(version: i64, line: u32) -> SuggestionPoint {
    SuggestionPoint {
        uri: URI.to_owned(),
        version,
        position: Position::new(line, 0u32),
        selection: None,
        trigger: NesTriggerKind::Automatic,
    }
}

fn insert(line: u32, character: u32, text: &str) -> TextDocumentContentChangeEvent {
    let at = Position::new(line, character);
    let mut change = TextDocumentContentChangeEvent::new(text);
    change.range = Some(Range::new(at.clone(), at));
    change
}

#[tokio::test]
async fn a_diagnostic_is_fixed() {
    // shows NES-03, NES-05, NES-06
    let project = Project::new();
    let nes = editor(&project, Client::new().nes(ClientNesCapabilities::new())).await;
    nes.did_open(URI, "rust", 1, "fn main() {\n    let x = 1\n}\n").await.unwrap();
    let range = Range::new(Position::new(1u32, 13u32), Position::new(1u32, 13u32));
    let diagnostic = NesDiagnostic::new(URI, range, NesDiagnosticSeverity::Error, "expected `;`");
    let mut context = NesSuggestContext::new();
    context.diagnostics = Some(vec![diagnostic]);
    let suggestions = nes.suggest(spot(1, 1), context).await.unwrap();
    let [NesSuggestion::Edit(edit)] = suggestions.as_slice() else { panic!("{suggestions:?}") };
    assert_eq!(edit.edits[0].new_text, ";");
    assert_eq!(edit.edits[0].range.start, Position::new(1u32, 13u32));
    assert_eq!(edit.cursor_position, Some(Position::new(1u32, 14u32)));
}

#[tokio::test]
async fn changes_are_followed_and_positions_are_in_the_editors_units() {
    // shows NES-04, NES-09, NES-10, NES-14
    let project = Project::new();
    for (encodings, column) in
        [(vec![], 3), (vec![PositionEncodingKind::Utf8], 5), (vec![PositionEncodingKind::Utf32], 2)]
    {
        let mut kinds = ClientNesCapabilities::new();
        kinds.jump = Some(NesJumpCapabilities::new());
        let client = Client::new().nes(kinds).position_encodings(encodings);
        let nes = editor(&project, client).await;
        nes.did_open(URI, "rust", 1, "fn first() {}\n😀 old()\nfn last() {}\n").await.unwrap();
        nes.did_change(URI, 2, vec![insert(0, 0, "pub ")], String::new).await.unwrap();
        let suggestions = nes.suggest(spot(2, 0), NesSuggestContext::new()).await.unwrap();
        // The rename is left out: this client did not ask for any.
        let [NesSuggestion::Edit(edit), NesSuggestion::Jump(jump)] = suggestions.as_slice() else {
            panic!("{suggestions:?}")
        };
        assert_eq!((edit.edits[0].range.start.line, edit.edits[0].range.start.character), (1, column));
        assert_eq!(edit.edits[0].new_text, "new");
        assert_eq!(jump.position, Position::new(2u32, 0u32));
        assert_ne!(edit.id, jump.id);
    }
}

#[tokio::test]
async fn rejected_suggestions_do_not_return() {
    let project = Project::new();
    let nes = editor(&project, Client::new().nes(ClientNesCapabilities::new())).await;
    nes.did_open(URI, "rust", 1, "one\n😀 old()\n").await.unwrap();
    nes.did_change(URI, 2, vec![insert(0, 3, "!")], String::new).await.unwrap();
    let first = nes.suggest(spot(2, 0), NesSuggestContext::new()).await.unwrap();
    let [NesSuggestion::Edit(edit)] = first.as_slice() else { panic!("{first:?}") };
    nes.reject(edit.id.clone(), NesRejectReason::Rejected).await.unwrap();
    assert_eq!(nes.suggest(spot(2, 0), NesSuggestContext::new()).await.unwrap(), []);
}

#[tokio::test]
async fn old_versions_and_unfit_wishes_give_nothing() {
    // shows NES-20
    let project = Project::new();
    let nes = editor(&project, Client::new().nes(ClientNesCapabilities::new())).await;
    nes.did_open(URI, "rust", 5, "same\n").await.unwrap();
    assert_eq!(nes.suggest(spot(4, 0), NesSuggestContext::new()).await.unwrap(), []);
    assert_eq!(nes.suggest(spot(6, 0), NesSuggestContext::new()).await.unwrap(), []);
    assert_eq!(nes.suggest(spot(5, 0), NesSuggestContext::new()).await.unwrap(), []);
    nes.did_close(URI).await.unwrap();
    assert_eq!(nes.suggest(spot(5, 0), NesSuggestContext::new()).await.unwrap(), []);
    nes.close().await.unwrap();
}
