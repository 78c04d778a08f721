#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex as StdMutex};

use attache_conn::process::Command;

use super::*;
use crate::trace::Trace;

/// A file that is looked at while it is written.
#[derive(Clone, Default)]
struct Paper(Arc<StdMutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Paper {
    fn trace(&self) -> Trace {
        Trace::read(&self.0.lock().unwrap()[..]).unwrap()
    }
}

fn recorder(paper: &Paper, mask: Option<Mask>) -> Recorder {
    Recorder::new(paper.clone(), &Header::default(), mask).unwrap()
}

fn lines(trace: &Trace, whose: Role) -> Vec<(Vec<u8>, LineEnd)> {
    let of = |entry: &Entry| match &entry.kind {
        EntryKind::Line { from, text, end } if *from == whose => Some((text.clone(), *end)),
        _ => None,
    };
    trace.entries.iter().filter_map(of).collect()
}

/// Sends `input` through a program and gives what came out.
async fn through(script: &str, input: &[u8], recorder: &Recorder) -> (Vec<u8>, ExitStatus) {
    let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
    let mut output = Vec::new();
    let status = relay(child, input, &mut output, recorder).await;
    (output, status)
}

#[tokio::test]
async fn every_byte_is_forwarded_unchanged() {
    let input = b"{\"a\":1}\nwindows\r\n\xff\xfe no text\n\nhalf a li";
    let paper = Paper::default();
    let (output, status) = through("cat; exit 3", input, &recorder(&paper, None)).await;
    assert_eq!(output, input);
    assert_eq!(status.code(), Some(3));
    let expected: Vec<(Vec<u8>, LineEnd)> = vec![
        (b"{\"a\":1}".to_vec(), LineEnd::Lf),
        (b"windows".to_vec(), LineEnd::CrLf),
        (b"\xff\xfe no text".to_vec(), LineEnd::Lf),
        (Vec::new(), LineEnd::Lf),
        (b"half a li".to_vec(), LineEnd::Open),
    ];
    let trace = paper.trace();
    assert_eq!(lines(&trace, Role::Client), expected);
    assert_eq!(lines(&trace, Role::Agent), expected);
    assert_eq!(trace.entries.last().unwrap().kind, EntryKind::Exit { code: Some(3), signal: None });
}

#[tokio::test]
async fn a_long_line_is_kept_in_pieces_and_read_as_one() {
    let mut input = "é".repeat(3 * PIECE / 2).into_bytes();
    input.push(b'\n');
    let paper = Paper::default();
    let (output, _) = through("cat", &input, &recorder(&paper, None)).await;
    assert_eq!(output, input);
    let longest = paper.0.lock().unwrap().split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap();
    assert!(longest < PIECE + 1000, "{longest}");
    assert_eq!(lines(&paper.trace(), Role::Agent), [(input[..input.len() - 1].to_vec(), LineEnd::Lf)]);
}

#[tokio::test]
async fn half_a_line_is_passed_on_before_its_end() {
    let child = Command::new("sh").args(["-c", "printf half; read x; echo"]).spawn().unwrap();
    let paper = Paper::default();
    let recorder = recorder(&paper, None);
    let (mut client, ours) = tokio::io::duplex(1000);
    let (input, output) = tokio::io::split(ours);
    let relayed = relay(child, input, output, &recorder);
    let talk = async {
        let mut seen = [0; 4];
        client.read_exact(&mut seen).await.unwrap();
        client.write_all(b"go\n").await.unwrap();
        client.shutdown().await.unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        (seen, rest)
    };
    let (_, (seen, rest)) = tokio::join!(relayed, talk);
    assert_eq!((&seen[..], &rest[..]), (&b"half"[..], &b"\n"[..]));
}

#[tokio::test]
async fn secrets_are_taken_out_of_the_recording_only() {
    let paper = Paper::default();
    let mask: Mask = Box::new(|text| Cow::Owned(text.replace("s3cret", "***")));
    let (output, _) = through("cat", b"key s3cret\n\xff s3cret\n", &recorder(&paper, Some(mask))).await;
    assert_eq!(output, b"key s3cret\n\xff s3cret\n");
    let written = String::from_utf8_lossy(&paper.0.lock().unwrap()).into_owned();
    assert!(written.contains("key ***") && !written.contains("s3cret"), "{written}");
}

#[tokio::test]
async fn a_full_disk_does_not_end_the_conversation() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let recorder = Recorder::new(Full(2), &Header::default(), None).unwrap();
    let (output, status) = through("cat", b"one\ntwo\nthree\n", &recorder).await;
    assert_eq!(output, b"one\ntwo\nthree\n");
    assert!(status.success());
    assert!(recorder.failure().is_some());
}

#[tokio::test]
async fn a_client_that_is_gone_ends_the_agent() {
    let child = Command::new("sh").args(["-c", "while echo x; do :; done"]).spawn().unwrap();
    let (client, ours) = tokio::io::duplex(100);
    let (input, output) = tokio::io::split(ours);
    drop(client);
    let paper = Paper::default();
    relay(child, input, output, &recorder(&paper, None)).await;
    assert!(matches!(paper.trace().entries.last().unwrap().kind, EntryKind::Exit { .. }));
}
