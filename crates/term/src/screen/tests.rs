#![allow(clippy::unwrap_used)]

use super::*;
use crate::render::style::Style;

const LOOK: Look = Look { colours: true, unicode: true };

/// A screen whose bytes go to a VT100.
struct Rig {
    screen: Screen<Vec<u8>>,
    parser: vt100::Parser,
}

impl Rig {
    fn new(rows: u16, columns: u16) -> Rig {
        let screen = Screen::new(Vec::new(), LOOK);
        Rig { screen, parser: vt100::Parser::new(rows, columns, 100) }
    }

    fn draw(&mut self, up: &[&str], live: &[&str], cursor: Option<(usize, usize)>) -> String {
        let lines = |texts: &[&str]| texts.iter().map(|text| Line::from(*text)).collect();
        self.screen
            .draw(Frame { clear: false, scrolled: lines(up), live: lines(live), cursor, ..Frame::default() })
            .unwrap();
        self.show()
    }

    fn show(&mut self) -> String {
        self.parser.process(&std::mem::take(&mut self.screen.out));
        self.parser.screen().contents()
    }
}

#[test]
fn what_is_finished_scrolls_up_and_the_rest_is_drawn_over() {
    let mut rig = Rig::new(5, 20);
    assert_eq!(rig.draw(&["one"], &["status", "> "], Some((1, 2))), "one\nstatus\n> ");
    assert_eq!(rig.parser.screen().cursor_position(), (2, 2));
    assert_eq!(rig.draw(&[], &["working", "status", "> x"], Some((2, 3))), "one\nworking\nstatus\n> x");
    assert_eq!(rig.draw(&["two", "three"], &["status", "> x"], Some((1, 3))), "one\ntwo\nthree\nstatus\n> x");
    assert_eq!(rig.draw(&["four"], &["s", "> "], Some((0, 1))), "two\nthree\nfour\ns\n> ");
    assert_eq!(rig.parser.screen().cursor_position(), (3, 1));
    assert_eq!(rig.draw(&[], &["only"], None), "two\nthree\nfour\nonly");
    assert!(rig.parser.screen().hide_cursor());
    rig.screen.leave().unwrap();
    assert_eq!(rig.show(), "two\nthree\nfour");
    assert!(!rig.parser.screen().hide_cursor());
}

#[test]
fn lines_that_stay_the_same_are_not_written() {
    let mut rig = Rig::new(5, 20);
    rig.draw(&[], &["same", "old"], None);
    let lines = vec![Line::from("same"), Line::styled("new", Style::BOLD)];
    rig.screen.draw(Frame { live: lines, ..Frame::default() }).unwrap();
    let written = String::from_utf8(rig.screen.out.clone()).unwrap();
    assert!(!written.contains("same") && written.contains("new"), "{written:?}");
    assert_eq!(rig.show(), "same\nnew");
}

#[test]
fn a_new_frame_takes_the_whole_screen() {
    let mut rig = Rig::new(6, 20);
    rig.draw(&["one", "two", "a line that is rather"], &["> "], Some((0, 2)));
    rig.parser.screen_mut().set_size(4, 10);
    let lines = |texts: &[&str]| texts.iter().map(|text| Line::from(*text)).collect();
    let up = lines(&["a line", "that is"]);
    rig.screen
        .draw(Frame {
            clear: true,
            scrolled: up,
            live: lines(&["> "]),
            cursor: Some((0, 2)),
            ..Frame::default()
        })
        .unwrap();
    assert_eq!(rig.show(), "a line\nthat is\n> ");
    assert_eq!(rig.draw(&[], &["> x"], Some((0, 3))), "a line\nthat is\n> x");
}

#[test]
fn titles_and_calls_are_sequences_without_foreign_ones() {
    let mut rig = Rig::new(3, 20);
    let evil = "a\x07b\x1b]0;c;d";
    let alert = |desktop| Some(Alert { text: evil.to_owned(), bell: true, desktop: Some(desktop) });
    let frame = |alert| Frame { title: Some(evil.to_owned()), alert, ..Frame::default() };
    rig.screen.draw(frame(alert(Desktop::Osc9))).unwrap();
    let written = String::from_utf8(std::mem::take(&mut rig.screen.out)).unwrap();
    let expected = "\x1b[22;2t\x1b]2;ab]0;c;d\x07\x1b]9;ab]0;c;d\x07\x07";
    assert!(written.starts_with(expected), "{written:?}");
    // A title that has not changed is not written again.
    rig.screen.draw(frame(alert(Desktop::Osc777))).unwrap();
    let written = String::from_utf8(std::mem::take(&mut rig.screen.out)).unwrap();
    assert!(written.starts_with("\x1b]777;notify;Attaché;ab]0,c,d\x07\x07"), "{written:?}");
    rig.screen.leave().unwrap();
    assert!(String::from_utf8(std::mem::take(&mut rig.screen.out)).unwrap().ends_with("\x1b[23;2t"));
}

#[test]
fn clearing_copies_nothing_to_the_scrollback() {
    let mut rig = Rig::new(3, 20);
    rig.draw(&["one", "two"], &["> "], Some((0, 2)));
    let lines = vec![Line::from("> ")];
    rig.screen.draw(Frame { clear: true, live: lines, cursor: Some((0, 2)), ..Frame::default() }).unwrap();
    assert!(!String::from_utf8_lossy(&rig.screen.out).contains("\x1b[2J"));
    assert_eq!(rig.show(), "> ");
}
