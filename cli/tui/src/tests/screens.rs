//! Snapshots of screens. `INSTA_UPDATE=always cargo test -p warptrace-tui` updates them.

use super::Screen;
use super::traces::{fractal, mis, recorded, written};

fn check(name: &str, screen: &str) {
    let mut settings = insta::Settings::clone_current();
    // Outside `src`, which is packaged.
    settings.set_snapshot_path("../../tests/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, screen));
}

#[test]
fn the_views_of_a_fractal() {
    let mut screen = Screen::new(fractal(), 100, 30);
    check("fractal_source", &screen.draw());
    check("fractal_loops", &screen.press("2"));
    check("fractal_warps", &screen.press("3jj"));
    check("fractal_strip", &screen.press("\nlll"));
    check("help", &screen.press("?"));
}

#[test]
fn of_a_trace_with_times_cycles_are_the_heat() {
    let mut screen = Screen::new(recorded("fractal-runs"), 100, 30);
    let source = screen.draw();
    assert!(source.contains("\nheat      cycles idle slots visits line\n"), "{source}");
    let hottest = source.lines().find(|line| line.contains("trace_loop!(\"ITERATE\")")).unwrap();
    assert!(hottest.starts_with("████████   93.9k "), "{source}");
    let said = "\n93,900 cycles of warps, 99.4% of all, 1.0 a visit; 29.9 of 32.0 lanes active in them\n";
    assert!(source.contains(said), "{source}");
    let warps = screen.press("3");
    let mut lines = warps.lines().skip_while(|line| !line.ends_with(" last event cycles"));
    assert!(lines.nth(1).unwrap().ends_with(" 302"), "{warps}");
}

#[test]
fn blocks_stand_by_multiprocessor_along_the_time_that_all_share() {
    let mut screen = Screen::new(recorded("fractal-all"), 100, 30);
    check("placed_warps", &screen.press("3"));
    check("placed_strip", &screen.press("\n"));
    check("placed_blocks", &screen.press("6j"));
    // The strip of the first warp of the last block on this SM.
    let strip = screen.press("\n");
    assert!(strip.contains("\nlaunch 0 block ") && strip.contains("; on SM 1 from "), "{strip}");
    let mut screen = Screen::new(recorded("mis-blocks"), 40, 24);
    check("narrow_blocks", &screen.press("6"));
    let other = screen.press("l");
    assert!(other.contains("(2 of 2 launches"), "{other}");
    // A view or column without data is hidden.
    let mut screen = Screen::new(recorded("fractal-runs"), 100, 30);
    let drawn = screen.press("63");
    assert!(!drawn.contains("6 blocks") && !drawn.contains("ran for"), "{drawn}");
}

#[test]
fn forty_columns_are_enough() {
    let mut screen = Screen::new(mis(), 40, 24);
    check("narrow_source", &screen.draw());
    check("narrow_loops", &screen.press("2"));
    check("narrow_warps", &screen.press("3"));
    check("narrow_strip", &screen.press("4"));
    check("narrow_help", &screen.press("?"));
    // The smallest terminal still shows rows.
    check("smallest", &Screen::new(mis(), 40, 12).draw());
}

#[test]
fn losses_are_said_first() {
    let events: [(u16, u32); 3] = [(1, u32::MAX), (2, 0xff), (3, 0xff)];
    let mut screen = Screen::new(written(&[(&events, 5, true), (&events, 0, true)], None), 80, 20);
    check("lossy", &screen.draw());
}

#[test]
fn a_trace_without_locations_or_events_says_so() {
    check("no_events", &Screen::new(written(&[(&[], 0, true)], None), 60, 14).draw());
    // Locations that the table does not contain are rows too.
    check("unknown_locations", &Screen::new(written(&[(&[(7, 3), (1, 1)], 0, true)], None), 60, 18).draw());
}
