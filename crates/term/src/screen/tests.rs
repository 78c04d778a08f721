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
        self.screen.draw(Frame { clear: false, scrolled: lines(up), live: lines(live), cursor }).unwrap();
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
    rig.screen.draw(Frame { clear: true, scrolled: up, live: lines(&["> "]), cursor: Some((0, 2)) }).unwrap();
    assert_eq!(rig.show(), "a line\nthat is\n> ");
    assert_eq!(rig.draw(&[], &["> x"], Some((0, 3))), "a line\nthat is\n> x");
}
