//! Key bindings.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::app::{App, View};

pub(crate) const HELP: [(&str, &str); 11] = [
    ("1 2 3 4", "source, loops, warps, one warp's strip"),
    ("6", "with times: blocks by SM"),
    ("Tab", "next view; Shift-Tab: back"),
    ("j k ↓ ↑", "next and previous row; in a strip: warp"),
    ("h l ← →", "strip: a run on; blocks: launch"),
    ("Space b", "a screen on and back; also PgDn PgUp"),
    ("g G", "first and last; also Home End"),
    ("n p", "next hottest line of the source, and back"),
    ("Enter", "a warp's strip; a loop's or run's source"),
    ("f", "only launches of the next kernel"),
    ("q", "quit; also Ctrl-C"),
];

impl App {
    pub(crate) fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            self.quits |= key.code == KeyCode::Char('c');
            return;
        }
        if self.shows_help {
            self.shows_help = false;
            self.quits |= key.code == KeyCode::Char('q');
            return;
        }
        match key.code {
            KeyCode::Char('q') => self.quits = true,
            KeyCode::Char('?') => self.shows_help = true,
            KeyCode::Char('f') => self.next_kernel(),
            KeyCode::Char('1') => self.show(View::Source),
            KeyCode::Char('2') => self.show(View::Loops),
            KeyCode::Char('3') => self.show(View::Warps),
            KeyCode::Char('4') => self.show(View::Strip),
            KeyCode::Char('6') if self.has_blocks() => self.show(View::Blocks),
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(-1),
            KeyCode::Char(letter @ ('n' | 'p')) => {
                if self.view == View::Source {
                    self.go_to_next_hottest(letter == 'n');
                } else {
                    self.show(View::Source);
                    self.go_to_hottest();
                }
            }
            KeyCode::Enter => self.open(),
            code => self.step(code),
        }
    }

    pub(crate) fn views(&self) -> Vec<View> {
        let mut views = vec![View::Source, View::Loops, View::Warps, View::Strip];
        if self.has_blocks() {
            views.push(View::Blocks);
        }
        views
    }

    fn has_blocks(&self) -> bool {
        !self.scheduled().is_empty()
    }

    fn turn(&mut self, by: isize) {
        let views = self.views();
        let here = views.iter().position(|view| *view == self.view).unwrap_or(0);
        let next = (here + views.len()).saturating_add_signed(by) % views.len();
        self.show(views[next]);
    }

    fn show(&mut self, view: View) {
        self.has_moved = true;
        self.view = view;
        if view == View::Strip && self.strip.is_none() {
            self.open_strip();
        }
        if view == View::Blocks && self.placed.is_none() {
            self.show_blocks(0);
        }
    }

    fn step(&mut self, code: KeyCode) {
        let page = isize::try_from(self.page.saturating_sub(1).max(1)).unwrap_or(1);
        let by = match code {
            KeyCode::Char('j') | KeyCode::Down => 1,
            KeyCode::Char('k') | KeyCode::Up => -1,
            KeyCode::Char(' ') | KeyCode::PageDown => page,
            KeyCode::Char('b') | KeyCode::PageUp => -page,
            KeyCode::Char('g') | KeyCode::Home => isize::MIN,
            KeyCode::Char('G') | KeyCode::End => isize::MAX,
            KeyCode::Char('h') | KeyCode::Left if self.view == View::Strip => return self.step_run(-1),
            KeyCode::Char('l') | KeyCode::Right if self.view == View::Strip => return self.step_run(1),
            KeyCode::Char('h') | KeyCode::Left if self.view == View::Blocks => return self.step_launch(-1),
            KeyCode::Char('l') | KeyCode::Right if self.view == View::Blocks => return self.step_launch(1),
            _ => return,
        };
        self.has_moved = true;
        let figures = self.figures();
        let lens = figures.map_or([0; 2], |figures| [figures.loops.len(), figures.warps.len()]);
        match self.view {
            View::Source => self.line.step(by, self.source.rows.len()),
            View::Loops => self.head.step(by, lens[0]),
            View::Warps => self.warp.step(by, lens[1]),
            View::Blocks => {
                let sms = self.placed.as_ref().map_or(0, |placed| placed.sms().len());
                self.sm.step(by, sms);
            }
            // Long steps move along the warp.
            View::Strip if by.unsigned_abs() > 1 => self.step_run(by),
            View::Strip => {
                self.warp.step(by, lens[1]);
                self.open_strip();
            }
        }
    }

    fn step_run(&mut self, by: isize) {
        if let Some(strip) = &mut self.strip {
            let runs = strip.read().map_or(0, |runs| runs.first.len());
            strip.at = strip.at.saturating_add_signed(by).min(runs.saturating_sub(1));
        }
    }

    fn step_launch(&mut self, by: isize) {
        let here = self.placed.as_ref().map_or(0, |placed| placed.at);
        let next = here.saturating_add_signed(by).min(self.scheduled().len().saturating_sub(1));
        if next != here {
            self.show_blocks(next);
        }
    }

    fn open(&mut self) {
        self.has_moved = true;
        match self.view {
            View::Source => {}
            View::Loops => {
                let location = self.loop_head(self.head.at).map(|head| head.point.location);
                self.go_to_source(location);
            }
            View::Warps => self.open_strip(),
            View::Blocks => {
                let last = self.placed.as_ref().and_then(|placed| {
                    let block =
                        placed.sms().get(self.sm.at)?.iter().max_by_key(|ran| ran.end_nanoseconds())?;
                    let per_block = self.trace.launch(placed.launch)?.warps_per_block();
                    Some((placed.launch, block.block.checked_mul(per_block)?))
                });
                if let Some((launch, warp)) = last {
                    self.show_warp(launch, warp);
                }
            }
            View::Strip => {
                let run = self.strip.as_ref().and_then(|strip| strip.read()?.first.get(strip.at));
                let location = run.map(|run| run.location);
                self.go_to_source(location);
            }
        }
    }

    fn go_to_source(&mut self, location: Option<u16>) {
        if let Some(row) = location.and_then(|location| self.source.row_of(location)) {
            self.view = View::Source;
            self.line.jump(row, self.page);
        }
    }
}
