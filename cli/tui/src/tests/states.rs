//! Effects of keys and answers, and comparison of figures with the analysis.

use ratatui::buffer::Cell;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use warptrace_analysis::words::{count, hottest, many};
use warptrace_analysis::{Selection, Watch, analyse};
use warptrace_decoder::TraceFile;
use warptrace_format::file::EarlyEnd;

use super::Screen;
use super::traces::{fractal, mis, recorded, recorded_bytes, written};
use crate::app::{Reading, View};
use crate::draw::{draw, remove_colours};
use crate::text::short;
use crate::work::Request;

#[test]
fn the_source_is_there_before_the_figures() {
    let mut screen = Screen::unread(fractal(), 100, 30);
    let drawn = screen.draw();
    assert!(drawn.starts_with("reading run.wtrc: 0 of "), "{drawn}");
    assert!(drawn.contains("loop {") || drawn.contains("fn "), "{drawn}");
    // Intermediate figures come from the watch.
    let [Request::Analyse { watch, .. }] = &screen.app.requests[..] else { panic!("one request") };
    let total = watch.total().visits;
    assert_eq!(total, 0);
    screen.answer();
    let drawn = screen.draw();
    assert!(!drawn.contains("reading") && drawn.contains("█"), "{drawn}");
}

#[test]
fn n_goes_to_the_next_hottest_line_and_round() {
    let trace = mis();
    let analysis = analyse(&trace, &Selection::default()).unwrap();
    let order: Vec<u32> =
        hottest(&analysis).iter().filter(|line| line.counts.idle > 0).map(|line| line.line).collect();
    assert!(order.len() > 3, "{order:?}");
    let mut screen = Screen::new(trace, 100, 30);
    let here = |screen: &Screen| screen.app.source.line(screen.app.line.at).unwrap().number;
    assert_eq!(here(&screen), order[0]);
    for line in order[1..].iter().chain(&order[..2]) {
        screen.press("n");
        assert_eq!(here(&screen), *line);
    }
    screen.press("pp");
    assert_eq!(here(&screen), order[order.len() - 1]);
    // From another view, `n` selects the hottest line.
    screen.press("3n");
    assert_eq!((screen.app.view, here(&screen)), (View::Source, order[0]));
}

#[test]
fn the_chosen_lines_figures_are_those_of_the_analysis() {
    let trace = mis();
    let analysis = analyse(&trace, &Selection::default()).unwrap();
    let mut screen = Screen::new(trace, 120, 40);
    for line in hottest(&analysis).iter().filter(|line| line.counts.idle > 0) {
        let drawn = screen.draw();
        assert!(drawn.contains(&format!("{} idle slots", count(line.counts.idle))), "{}\n{drawn}", line.line);
        assert!(
            drawn.contains(&format!("{} by ", many(line.counts.visits, "visit"))),
            "{}\n{drawn}",
            line.line
        );
        // The row of the line shows them in short form.
        let [idle, visits] = [line.counts.idle, line.counts.visits].map(short);
        let row = format!("{idle:>10} {visits:>6} {:>4} ", line.line);
        assert!(drawn.contains(&row), "{row}\n{drawn}");
        screen.press("n");
    }
}

#[test]
fn keys_change_views() {
    let mut screen = Screen::new(fractal(), 100, 30);
    let views = [View::Loops, View::Warps, View::Strip, View::Source];
    for view in views {
        screen.press("\t");
        assert_eq!(screen.app.view, view);
    }
    screen.code(KeyCode::BackTab);
    assert_eq!(screen.app.view, View::Strip);
    for (key, view) in [("1", View::Source), ("4", View::Strip), ("2", View::Loops), ("3", View::Warps)] {
        screen.press(key);
        assert_eq!(screen.app.view, view);
    }
    // No view has this key.
    screen.press("5");
    assert_eq!(screen.app.view, View::Warps);
    let first = screen.draw();
    screen.press("j");
    assert_eq!(screen.app.warp.at, 1);
    screen.code(KeyCode::Up);
    assert_eq!((screen.app.warp.at, screen.draw()), (0, first));
    screen.press("G");
    assert_eq!(screen.app.warp.at, screen.app.figures().unwrap().warps.len() - 1);
    screen.press("g");
    assert_eq!(screen.app.warp.at, 0);
    screen.code(KeyCode::PageDown);
    assert!(screen.app.warp.at > 5);
    let head = screen.app.loop_head(0).unwrap().point.line;
    screen.press("2\n");
    assert_eq!(screen.app.view, View::Source);
    assert_eq!(screen.app.source.line(screen.app.line.at).unwrap().number, head);
    assert!(!screen.app.quits);
    screen.press("?q");
    assert!(screen.app.quits, "also from the help");
}

#[test]
fn control_c_quits_and_other_controls_do_nothing() {
    let mut screen = Screen::new(fractal(), 100, 30);
    screen.app.key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::CONTROL));
    assert!(!screen.app.quits);
    screen.app.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
    assert!(screen.app.quits);
}

#[test]
fn a_strip_shows_the_runs_of_the_warp() {
    let events: [(u16, u32); 6] = [(1, u32::MAX), (2, 0xff), (2, 0xff), (2, 0xff), (2, 1), (3, 0xffff_0000)];
    let mut screen = Screen::new(written(&[(&events, 0, true)], None), 80, 40);
    let drawn = screen.press("4");
    assert!(drawn.contains("launch 0 block 0 warp 0: 6 events"), "{drawn}");
    assert!(drawn.contains("run 1 of 4: "), "{drawn}");
    // WAIT has the most events, so its letter is a.
    assert!(drawn.contains("run    baac\n"), "{drawn}");
    assert!(drawn.contains("     0 ██▀\n") && drawn.contains("    16 █  █\n"), "{drawn}");
    let drawn = screen.press("l");
    assert!(drawn.contains("run 2 of 4: a WAIT (k.rs:12), events 1 to 3, 8 lanes 0x000000ff"), "{drawn}");
    let drawn = screen.press("lll");
    assert!(drawn.contains("run 4 of 4: c LEAVE (k.rs), event 5, 16 lanes 0xffff0000"), "{drawn}");
    screen.press("h\n");
    assert_eq!(screen.app.source.line(screen.app.line.at).unwrap().number, 12);
}

#[test]
fn f_counts_one_kernel_alone() {
    let trace = mis();
    let of = |kernel: Option<&str>| {
        let selection = Selection { kernel: kernel.map(str::to_owned), ..Selection::default() };
        analyse(&trace, &selection).unwrap().counts.visits
    };
    let visits = [None, Some("mis_init"), Some("mis_find"), None].map(of);
    assert!(visits[1] > 0 && visits[1] + visits[2] == visits[0]);
    let mut screen = Screen::new(mis(), 100, 30);
    for (number, visits) in visits.into_iter().enumerate() {
        let drawn = screen.draw();
        assert!(drawn.contains(&format!("whole trace: {} events by ", count(visits))), "{number}\n{drawn}");
        screen.press("f");
    }
}

#[test]
fn figures_of_another_kernel_stop_those_before() {
    let mut screen = Screen::unread(mis(), 100, 30);
    screen.app.key(KeyEvent::new(KeyCode::Char('f'), KeyModifiers::NONE));
    let [Request::Analyse { watch: before, .. }, Request::Analyse { watch, .. }] = &screen.app.requests[..]
    else {
        panic!("two requests")
    };
    assert!(before.is_stopped() && !watch.is_stopped());
    // The result of the first request is not shown.
    let request = screen.app.requests.remove(0);
    assert!(crate::work::answer(&screen.app.trace, request).is_none());
    screen.answer();
    assert_eq!(screen.app.figures().unwrap().analysis.launches, 1);
}

#[test]
fn losses_are_known_before_the_events_are_read() {
    let events = [(1, 3)];
    let screen = &mut Screen::unread(written(&[(&events, 4, true)], None), 80, 20);
    let Reading::Going { watch, .. } = &screen.app.reading else { panic!("nothing is read yet") };
    assert!(watch.losses().is_none());
    let watch = Watch::default();
    warptrace_analysis::analyse_watched(&screen.app.trace, &Selection::default(), &watch).unwrap().unwrap();
    screen.app.reading = Reading::Going { watch: watch.into(), total: Some(100) };
    let drawn = screen.draw();
    assert!(
        drawn.starts_with("INCOMPLETE trace: 4 events of 1 warp lost\nreading run.wtrc: 1 of 100 events"),
        "{drawn}"
    );
}

#[test]
fn a_trace_of_a_kernel_that_failed_says_so_at_once() {
    let events = [(1, 3)];
    let trace = written(&[(&events, 0, false)], Some(EarlyEnd::failed("illegal address")));
    let mut screen = Screen::unread(trace, 80, 20);
    assert_eq!(screen.app.view, View::Source);
    let failed = "launch 0 of kernel `spin` failed: illegal address";
    let drawn = screen.draw();
    assert!(drawn.contains(failed), "{drawn}");
    screen.answer();
    let drawn = screen.draw();
    assert!(drawn.starts_with("INCOMPLETE trace: 1 warp not finished\n"), "{drawn}");
    assert!(drawn.contains(failed), "{drawn}");
}

#[test]
fn a_trace_that_was_cut_off_says_so_first() {
    let bytes = recorded_bytes("fractal");
    let trace = TraceFile::from_bytes(bytes[..bytes.len() * 2 / 3].to_vec()).unwrap();
    let drawn = Screen::new(trace, 100, 30).draw();
    assert!(drawn.starts_with("INCOMPLETE trace: "), "{drawn}");
}

#[test]
fn a_damaged_trace_says_why_on_the_first_line() {
    let mut bytes = recorded_bytes("fractal");
    // Inside the first frame.
    let at = bytes.windows(4).position(|tag| tag == b"FRAM").unwrap() + 60;
    bytes[at] ^= 0xff;
    let mut screen = Screen::new(TraceFile::from_bytes(bytes).unwrap(), 100, 30);
    for view in ["1", "2", "3", "4"] {
        let drawn = screen.press(view);
        assert!(drawn.starts_with("cannot analyse run.wtrc: "), "{drawn}");
    }
}

#[test]
fn what_is_chosen_is_marked_without_colours() {
    let mut screen = Screen::new(mis(), 80, 24);
    for view in ["1", "2", "3", "4"] {
        screen.press(view);
        let app = &mut screen.app;
        let drawn = screen.terminal.draw(|frame| {
            draw(frame, app);
            remove_colours(frame);
        });
        let cells = &drawn.unwrap().buffer.content;
        assert!(cells.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
        // The rows from the fourth on, which include the selected row.
        let is_marked = |cell: &Cell| cell.modifier.contains(Modifier::REVERSED);
        assert!(cells[80 * 3..].iter().any(is_marked), "view {view}");
    }
}

#[test]
fn every_size_can_be_drawn() {
    for (columns, rows) in [(1, 1), (2, 3), (10, 5), (20, 12), (39, 9), (400, 200)] {
        let mut screen = Screen::new(recorded("mis-all"), columns, rows);
        for keys in ["1jjG", "2jG", "3jG\n", "lG", "6jGl\n", "?", "x5n"] {
            screen.press(keys);
        }
    }
}
