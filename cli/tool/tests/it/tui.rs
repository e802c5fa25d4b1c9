//! `tui` in a real terminal.
#![cfg(all(unix, feature = "tui"))]

use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::bad_traces::{Lack, bad_traces};
use crate::pages::{BEFORE, overwrites};
use crate::support::{Folder, recorded, run, text};

/// A program in its own terminal, and the screen of that terminal.
pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    screen: Arc<Mutex<vt100::Parser>>,
    /// True while the output is read.
    is_read: Arc<AtomicBool>,
}

const fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn some(number: u16) -> NonZero<u16> {
    NonZero::new(number).unwrap()
}

impl Terminal {
    fn start(program: &str, arguments: &[&str]) -> Self {
        Self::sized(program, arguments, [100, 30], &[])
    }

    /// Starts a program in a terminal of this size, with these environment variables.
    pub(crate) fn sized(
        program: &str,
        arguments: &[&str],
        [columns, rows]: [u16; 2],
        environment: &[(&str, &str)],
    ) -> Self {
        let pair = native_pty_system().openpty(size(columns, rows)).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(arguments);
        command.env_remove("NO_COLOR");
        command.env("TERM", "xterm-256color");
        environment.iter().for_each(|(name, value)| command.env(name, value));
        command.cwd(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        let child = pair.slave.spawn_command(command).unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(some(rows), some(columns), 0)));
        let (mut output, shown) = (pair.master.try_clone_reader().unwrap(), Arc::clone(&screen));
        let is_read = Arc::new(AtomicBool::new(true));
        let reads = Arc::clone(&is_read);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let (Ok(count @ 1..), true) = (output.read(&mut bytes), reads.load(Ordering::Relaxed)) {
                shown.lock().unwrap().process(&bytes[..count]);
            }
        });
        let keys = pair.master.take_writer().unwrap();
        Self { child, master: pair.master, keys, screen, is_read }
    }

    fn new(trace: &Path) -> Self {
        let tool = assert_cmd::cargo::cargo_bin("warptrace");
        Self::start(text(&tool), &["tui", text(trace)])
    }

    pub(crate) fn look<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.screen.lock().unwrap().screen())
    }

    fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    fn is_full_screen(&self) -> bool {
        self.screen.lock().unwrap().screen().alternate_screen()
    }

    fn wait_for(&self, words: &[&str]) {
        let started = Instant::now();
        while !words.iter().all(|words| self.text().contains(words)) {
            assert!(started.elapsed() < Duration::from_secs(60), "no {words:?} in\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the text once it has not changed for a while: a screen arrives in several parts.
    pub(crate) fn settled(&self) -> String {
        let mut before = self.text();
        loop {
            std::thread::sleep(Duration::from_millis(500));
            let now = self.text();
            if now == before {
                return now;
            }
            before = now;
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    pub(crate) fn end(&mut self) -> u32 {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.exit_code();
            }
            assert!(started.elapsed() < Duration::from_secs(60), "it does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn wait_for_restored(&self) {
        let started = Instant::now();
        while self.is_full_screen() || self.screen.lock().unwrap().screen().hide_cursor() {
            assert!(started.elapsed() < Duration::from_secs(60), "not restored:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn keys_go_through_a_trace() {
    let (_folder, trace) = recorded(&[]);
    let (_, top, _) = run(&["top", text(&trace)]);
    let finding: String = top.lines().next().unwrap().chars().take(60).collect();
    let mut terminal = Terminal::new(&trace);
    terminal.wait_for(&[&finding, "whole trace: ", "idle slots, "]);
    assert!(terminal.is_full_screen());
    terminal.press("2");
    terminal.wait_for(&["imbalance", "fractal.rs"]);
    terminal.press("3");
    terminal.wait_for(&["x median", "last event"]);
    terminal.press("\r");
    terminal.wait_for(&["run 1 of ", "launch 0 block "]);
    terminal.screen.lock().unwrap().screen_mut().set_size(some(20), some(40));
    terminal.master.resize(size(40, 20)).unwrap();
    terminal.press("3");
    terminal.wait_for(&["launch block warp", "q quit"]);
    assert!(!terminal.settled().contains("x median"), "{}", terminal.text());
    terminal.press("q");
    assert_eq!(terminal.end(), 0);
    terminal.wait_for_restored();
}

/// With `WARPTRACE_OVERWRITE_PAGE=1`, the screens of `docs/users/tui.md` are written.
#[test]
fn the_pages_screens_are_those_of_a_terminal() {
    let folder = Folder::new();
    let trace = folder.traced("mis", "before.wtrc", &BEFORE);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/users/tui.md");
    let old = std::fs::read_to_string(&page).unwrap();
    let mut parts = old.split("```text\n");
    let (mut new, mut screens) = (parts.next().unwrap().to_owned(), 0);
    for part in parts {
        let (block, rest) = part.split_once("```").unwrap();
        let command = block.lines().next().unwrap();
        let mut terminal = Terminal::new(&trace);
        terminal.wait_for(&["slots idle", "COMPARE: "]);
        if let Some((_, keys)) = command.split_once(" # ") {
            terminal.press(keys);
            terminal.wait_for(&["run 1 of "]);
        }
        let screen = terminal.settled();
        let lines = screen.lines().map(|line| format!("{}\n", line.trim_end()));
        new += &format!("```text\n{command}\n{}```{rest}", lines.collect::<String>());
        terminal.press("q");
        assert_eq!(terminal.end(), 0);
        screens += 1;
    }
    assert_eq!(screens, 2);
    if overwrites() {
        std::fs::write(&page, new).unwrap();
    } else {
        assert_eq!(old, new, "{}; CONTRIBUTING.md says how to write the page anew", page.display());
    }
}

#[test]
fn control_c_leaves_the_terminal_as_it_was() {
    let (_folder, trace) = recorded(&[]);
    let tool = assert_cmd::cargo::cargo_bin("warptrace");
    let script = "before=$(stty -g); \"$0\" tui \"$1\"; echo code $?; [ \"$before\" = \"$(stty -g)\" ] && echo same modes";
    let mut terminal = Terminal::start("sh", &["-c", script, text(&tool), text(&trace)]);
    terminal.wait_for(&["1 source"]);
    assert!(terminal.is_full_screen());
    terminal.press("\x03");
    terminal.wait_for(&["code 0", "same modes"]);
    terminal.wait_for_restored();
    terminal.end();
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    let (_folder, trace) = recorded(&[]);
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let mut terminal = Terminal::new(&trace);
        terminal.wait_for(&["1 source"]);
        let id = terminal.child.process_id().unwrap();
        let kill = format!("kill -{signal} {id}");
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(terminal.end(), code, "{signal}");
        terminal.wait_for_restored();
    }
}

#[test]
fn a_terminal_that_is_closed_ends_the_tool() {
    let (_folder, trace) = recorded(&[]);
    let mut terminal = Terminal::new(&trace);
    terminal.wait_for(&["1 source"]);
    // The reading thread also holds the terminal until it receives output.
    terminal.is_read.store(false, Ordering::Relaxed);
    terminal.press("2");
    let Terminal { mut child, master, keys, .. } = terminal;
    drop((master, keys));
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < Duration::from_secs(60), "it runs on without a terminal");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_cannot_be_shown_is_said_in_a_sentence() {
    let (folder, trace) = recorded(&[]);
    let (code, output, errors) = run(&["tui", text(&trace)]);
    assert_eq!((code, output.as_str()), (1, ""));
    assert!(errors.starts_with("error: ") && errors.contains("terminal"), "{errors}");
    assert!(errors.contains("`warptrace top FILE`"), "{errors}");
    let tool = assert_cmd::cargo::cargo_bin("warptrace");
    let none = folder.at("none.wtrc");
    for (arguments, words) in [
        (vec!["tui", text(&none)], "cannot open"),
        (vec!["tui", text(&trace), "--kernel", "nope"], "no kernel `nope`"),
        (vec!["tui", text(&trace), "--source", "/nowhere"], "is no folder"),
    ] {
        let mut terminal = Terminal::start(text(&tool), &arguments);
        assert_eq!(terminal.end(), 1);
        terminal.wait_for(&["error: ", words]);
        assert!(!terminal.is_full_screen());
    }
}

#[test]
fn each_kind_of_bad_file_is_told_on_the_screen() {
    let folder = Folder::new();
    for (lack, path) in bad_traces(&folder) {
        let mut terminal = Terminal::new(&path);
        if matches!(lack, Lack::File | Lack::Trace) {
            assert_eq!(terminal.end(), 1);
            terminal.wait_for(&["error: cannot open"]);
            continue;
        }
        let words = match lack {
            Lack::Sound => "`warptrace",
            Lack::AnyEvent => "no events",
            Lack::Locations => "locations that the trace's table does not have",
            _ => lack.incomplete().unwrap(),
        };
        terminal.wait_for(&["1 source", words]);
        let screen = terminal.settled();
        let first = screen.lines().next().unwrap();
        match lack {
            Lack::Sound => assert!(first.starts_with("cannot analyse damaged.wtrc: "), "{screen}"),
            Lack::AnyEvent | Lack::Locations => assert!(!screen.contains("INCOMPLETE"), "{screen}"),
            _ => assert!(first.starts_with("INCOMPLETE trace: "), "{lack:?}: {screen}"),
        }
        terminal.press("q");
        assert_eq!(terminal.end(), 0, "{lack:?}");
    }
}
