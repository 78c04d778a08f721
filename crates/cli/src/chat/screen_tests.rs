#![allow(clippy::unwrap_used)]

use super::super::render::style::Style;
use super::*;

const LOOK: Look = Look { colours: true, unicode: true };

/// A screen whose bytes go to a VT100.
struct Rig {
    screen: Screen<Vec<u8>>,
    parser: vt100::Parser,
}

impl Rig {
    fn new(rows: u16, columns: u16) -> Rig {
        let screen = Screen::new(Vec::new(), usize::from(columns) - 1, rows.into(), LOOK);
        Rig { screen, parser: vt100::Parser::new(rows, columns, 100) }
    }

    fn draw(&mut self, up: &[&str], live: &[&str], cursor: Option<(usize, usize)>) -> String {
        let lines = |texts: &[&str]| texts.iter().map(|text| Line::from(*text)).collect();
        self.screen.draw(Frame { up: lines(up), live: lines(live), cursor }).unwrap();
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
    rig.screen.draw(Frame { up: Vec::new(), live: lines, cursor: None }).unwrap();
    let written = String::from_utf8(rig.screen.out.clone()).unwrap();
    assert!(!written.contains("same") && written.contains("new"), "{written:?}");
    assert_eq!(rig.show(), "same\nnew");
}

#[test]
fn another_size_fills_the_screen_again() {
    let mut rig = Rig::new(6, 20);
    rig.draw(&["one", "two", "a line that is rather", "four"], &["> "], Some((0, 2)));
    rig.parser.screen_mut().set_size(4, 10);
    rig.screen.resize(9, 4);
    assert_eq!(rig.draw(&[], &["> "], Some((0, 2))), "two\na line t…\nfour\n> ");
    // As many lines as before, whatever they looked like.
    rig.parser.screen_mut().set_size(6, 30);
    rig.screen.resize(29, 6);
    assert_eq!(rig.draw(&[], &["> "], Some((0, 2))), "one\ntwo\na line that is rather\nfour\n> ");
}
