//! Screens of real traces, and the effects of keys.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

mod screens;
#[path = "../../../decoder/decode/tests/it/support/sections.rs"]
mod sections;
mod states;
mod traces;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use warptrace_analysis::Selection;
use warptrace_decoder::TraceFile;

use crate::app::App;
use crate::draw::draw;
use crate::work::answer;

struct Screen {
    app: App,
    terminal: Terminal<TestBackend>,
}

impl Screen {
    /// Shows a trace before its figures are computed. Sources come from this repository.
    fn unread(trace: TraceFile, columns: u16, rows: u16) -> Self {
        let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let app = App::new(Arc::new(trace), "run.wtrc".to_owned(), Selection::default(), &[folder]);
        Self { app, terminal: Terminal::new(TestBackend::new(columns, rows)).unwrap() }
    }

    fn new(trace: TraceFile, columns: u16, rows: u16) -> Self {
        let mut screen = Self::unread(trace, columns, rows);
        screen.answer();
        screen
    }

    fn answer(&mut self) {
        // The page size is known only after drawing.
        self.draw();
        while !self.app.requests.is_empty() {
            for request in std::mem::take(&mut self.app.requests) {
                if let Some(found) = answer(&self.app.trace, request) {
                    self.app.take(found);
                }
            }
        }
    }

    fn draw(&mut self) -> String {
        self.terminal.draw(|frame| draw(frame, &mut self.app)).unwrap();
        let lines = self.terminal.backend().to_string();
        let lines = lines.lines().map(|line| line.trim_matches('"').trim_end().to_owned() + "\n");
        lines.collect()
    }

    fn press(&mut self, keys: &str) -> String {
        for key in keys.chars() {
            self.code(match key {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                key => KeyCode::Char(key),
            });
        }
        self.draw()
    }

    fn code(&mut self, code: KeyCode) {
        self.app.key(KeyEvent::new(code, KeyModifiers::NONE));
        self.answer();
    }
}
