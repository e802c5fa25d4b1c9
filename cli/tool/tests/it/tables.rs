//! Tables: colors and width.

use crate::support::{Folder, run, text};

const VIEWS: [&str; 7] = ["top", "causes", "lines", "loops", "warps", "edges", "stats"];

#[test]
fn colours_are_for_terminals_unless_they_are_asked_for() {
    let folder = Folder::new();
    let path = folder.traced("fractal", "a.wtrc", &["--width", "64", "--depth", "400"]);
    for view in VIEWS {
        let plain = run(&[view, text(&path)]).1;
        assert!(!plain.contains('\u{1b}'), "{view}: {plain}");
        let coloured = run(&[view, text(&path), "--color", "always"]).1;
        assert!(coloured.contains("\u{1b}[1m"), "{view} has a bold head: {coloured}");
        let mut bare = String::new();
        for (number, piece) in coloured.split("\u{1b}[").enumerate() {
            bare += if number == 0 { piece } else { piece.split_once('m').unwrap().1 };
        }
        assert_eq!(bare, plain, "{view}");
        let never = run(&[view, text(&path), "--color", "never"]).1;
        assert_eq!(never, plain, "{view}");
    }
    let lines = run(&["lines", text(&path), "--color", "always"]).1;
    assert!(lines.contains("\u{1b}[31m"), "a share of the idle slots is large: {lines}");
}

#[cfg(all(unix, feature = "tui"))]
mod full {
    use super::*;

    #[test]
    fn tables_are_no_wider_than_the_terminal() {
        use crate::support::tool;
        use crate::tui::Terminal;

        let folder = Folder::new();
        let path = folder.traced("mis", "a.wtrc", &["--graph", "road:256"]);
        let program = tool().get_program().to_owned();
        let program = program.to_str().unwrap();
        for view in VIEWS {
            for columns in [100, 160] {
                let mut terminal = Terminal::sized(program, &[view, text(&path)], [columns, 90], &[]);
                assert_eq!(terminal.end(), 0);
                terminal.settled();
                // Sentences may wrap, tables must not. Heads of tables are bold.
                terminal.look(|screen| {
                    let rows = screen.size().0.get();
                    let mut in_table = false;
                    let mut tables = 0;
                    for row in 0..rows {
                        let is_empty = (0..columns).all(|column| {
                            screen.cell(row, column).is_none_or(|cell| cell.contents().trim().is_empty())
                        });
                        let is_head = screen.cell(row, 0).is_some_and(|cell| cell.bold())
                            || screen.cell(row, 3).is_some_and(|cell| cell.bold());
                        in_table = is_head || in_table && !is_empty;
                        tables += usize::from(is_head);
                        assert!(!in_table || !screen.row_wrapped(row), "{view}: {}", screen.contents());
                    }
                    assert!(tables > 0, "{view}: {}", screen.contents());
                });
            }
        }
        let mut terminal = Terminal::sized(program, &["lines", text(&path)], [160, 90], &[("NO_COLOR", "1")]);
        assert_eq!(terminal.end(), 0);
        terminal.settled();
        terminal.look(|screen| {
            let bold = |row| (0..160).any(|column| screen.cell(row, column).is_some_and(|cell| cell.bold()));
            assert!(!(0..screen.size().0.get()).any(bold) && screen.contents().contains("visits"));
        });
    }
}
