//! Ranges that the program has opened, by which it names its launches.
//!
//! A range is known by one text: its message, with `@` and the name of its domain if it has one. A thread's
//! ranges are on a stack; those that begin and end anywhere are the process's. While the program opens none,
//! a launch reads one flag.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use warptrace_host::LaunchName;
use warptrace_spec::Window;

use crate::python;
use crate::state::lock;

/// Ranges of a thread, and of the process, that are kept; deeper ones are only counted.
const MAX_OPEN: usize = 1024;
/// Texts that a program may register, and domains.
const MAX_KNOWN: usize = 1 << 16;
/// Ranges that are named where none is recorded.
const MAX_SEEN: usize = 8;

/// Whether a range was ever opened.
static IS_USED: AtomicBool = AtomicBool::new(false);
/// Domains by their number, less one, and registered texts.
static DOMAINS: Names = Names(RwLock::new(None));
static STRINGS: Names = Names(RwLock::new(None));
/// Ranges of the process, by their number, in the order in which they began.
static STARTED: Mutex<Vec<(u64, Arc<str>)>> = Mutex::new(Vec::new());
static STARTED_COUNT: AtomicUsize = AtomicUsize::new(0);
static LAST_STARTED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OPEN: RefCell<Stack> = const { RefCell::new(Stack { ranges: Vec::new(), deeper: 0 }) };
}

/// The ranges that a thread is in.
struct Stack {
    /// The number of each one's domain, 0 if it has none, and its text.
    ranges: Vec<(usize, Arc<str>)>,
    /// How many are deeper.
    deeper: usize,
}

/// Texts with numbers from 1 on; `None` before the first.
struct Names(RwLock<Option<Known>>);

/// The numbers of texts, and the texts in order.
type Known = (HashMap<Arc<str>, usize>, Vec<Arc<str>>);

impl Names {
    /// Returns the number of a text; of too many that of the last one.
    fn number(&self, text: &str) -> usize {
        let mut names = self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (numbers, texts) = names.get_or_insert_default();
        if let Some(number) = numbers.get(text) {
            return *number;
        }
        if texts.len() < MAX_KNOWN {
            let text: Arc<str> = if texts.len() + 1 < MAX_KNOWN { text } else { "(too many names)" }.into();
            texts.push(Arc::clone(&text));
            numbers.insert(text, texts.len());
        }
        texts.len()
    }

    fn text(&self, number: usize) -> Option<Arc<str>> {
        let names = self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        names.as_ref()?.1.get(number.checked_sub(1)?).cloned()
    }
}

/// What a range is called.
pub(crate) enum Message {
    Text(String),
    /// The number of a registered text, which has its domain.
    Registered(usize),
    Missing,
}

/// Returns the number of a domain.
pub(crate) fn domain(name: &str) -> usize {
    DOMAINS.number(name)
}

/// Returns the number of a text that a domain registers.
pub(crate) fn register(domain: usize, text: &str) -> usize {
    STRINGS.number(&named(domain, text))
}

/// A range's text.
fn named(domain: usize, message: &str) -> Arc<str> {
    match DOMAINS.text(domain) {
        Some(domain) => format!("{message}@{domain}").into(),
        None => message.into(),
    }
}

fn text_of(domain: usize, message: Message) -> Arc<str> {
    match message {
        Message::Text(text) => named(domain, &text),
        Message::Registered(number) => {
            STRINGS.text(number).unwrap_or_else(|| named(domain, "(unknown text)"))
        }
        Message::Missing => named(domain, "(no message)"),
    }
}

/// Opens a range of the thread; returns how many of the domain it is in.
pub(crate) fn push(domain: usize, message: Message) -> usize {
    IS_USED.store(true, Ordering::Relaxed);
    let text = text_of(domain, message);
    let push = |open: &RefCell<Stack>| {
        let Stack { ranges, deeper } = &mut *open.borrow_mut();
        let depth = ranges.iter().filter(|(other, _)| *other == domain).count() + *deeper;
        if ranges.len() < MAX_OPEN {
            ranges.push((domain, text));
        } else {
            *deeper += 1;
        }
        depth
    };
    OPEN.try_with(push).unwrap_or_default()
}

/// Closes the thread's innermost range of a domain; returns how many of the domain it was in, `None` if there
/// is none.
pub(crate) fn pop(domain: usize) -> Option<usize> {
    let pop = |open: &RefCell<Stack>| {
        let Stack { ranges, deeper } = &mut *open.borrow_mut();
        let depth = ranges.iter().filter(|(other, _)| *other == domain).count() + *deeper;
        if *deeper > 0 {
            *deeper -= 1;
        } else {
            ranges.remove(ranges.iter().rposition(|(other, _)| *other == domain)?);
        }
        Some(depth - 1)
    };
    OPEN.try_with(pop).ok().flatten()
}

/// Begins a range of the process; returns its number.
pub(crate) fn start(domain: usize, message: Message) -> u64 {
    IS_USED.store(true, Ordering::Relaxed);
    let text = text_of(domain, message);
    let number = LAST_STARTED.fetch_add(1, Ordering::Relaxed) + 1;
    let mut started = lock(&STARTED);
    if started.len() < MAX_OPEN {
        started.push((number, text));
    }
    STARTED_COUNT.store(started.len(), Ordering::Relaxed);
    number
}

/// Ends it.
pub(crate) fn end(number: u64) {
    let mut started = lock(&STARTED);
    started.retain(|(other, _)| *other != number);
    STARTED_COUNT.store(started.len(), Ordering::Relaxed);
}

/// Returns label and Python stack of a launch that this thread makes now.
pub(crate) fn name() -> LaunchName {
    LaunchName { label: label(), stack: python::stack() }
}

/// Returns what a launch of this thread is called: the thread's innermost range, or else the last one of the
/// process.
fn label() -> Option<Arc<str>> {
    if !IS_USED.load(Ordering::Relaxed) {
        return None;
    }
    let of_thread = |open: &RefCell<Stack>| open.borrow().ranges.last().map(|(_, text)| Arc::clone(text));
    OPEN.try_with(of_thread).ok().flatten().or_else(|| all_started().pop())
}

fn all_started() -> Vec<Arc<str>> {
    if STARTED_COUNT.load(Ordering::Relaxed) == 0 {
        return Vec::new();
    }
    lock(&STARTED).iter().map(|(_, text)| Arc::clone(text)).collect()
}

/// Launches within the ranges that are recorded, and others.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The ranges, as they were asked for.
    names: String,
    within: AtomicU64,
    outside: AtomicU64,
    /// Some that launches outside were in.
    seen: Mutex<Vec<Arc<str>>>,
}

impl Asked {
    /// `None` if ranges do not matter.
    pub(crate) fn new(window: &Window) -> Option<Self> {
        (!window.nvtx.is_empty()).then(|| Self { names: window.nvtx.join(" "), ..Self::default() })
    }

    /// Tells whether a launch of this thread is recorded as far as ranges decide, and counts it.
    pub(crate) fn has_launch(&self, window: &Window) -> bool {
        let of_thread = |open: &RefCell<Stack>| -> Vec<Arc<str>> {
            open.borrow().ranges.iter().map(|(_, text)| Arc::clone(text)).collect()
        };
        let ranges = [OPEN.try_with(of_thread).unwrap_or_default(), all_started()].concat();
        if window.is_within(ranges.iter().map(|text| &**text)) {
            self.within.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        if self.outside.fetch_add(1, Ordering::Relaxed) == 0 || !ranges.is_empty() {
            let mut seen = lock(&self.seen);
            for range in ranges {
                if seen.len() < MAX_SEEN && !seen.contains(&range) {
                    seen.push(range);
                }
            }
        }
        false
    }

    /// Says what was not recorded.
    pub(crate) fn line(&self) -> Option<String> {
        let Self { names, within, outside, seen } = self;
        let outside = match outside.load(Ordering::Relaxed) {
            0 => return None,
            1 => "1 launch".to_owned(),
            outside => format!("{outside} launches"),
        };
        if within.load(Ordering::Relaxed) > 0 {
            return Some(format!("not traced: {outside} in no range that --nvtx names ({names})"));
        }
        let seen = lock(seen);
        let others = match (seen.is_empty(), IS_USED.load(Ordering::Relaxed)) {
            (true, false) => "the program opened no range".to_owned(),
            (true, true) => "launches were in no range".to_owned(),
            _ => format!("they were in {}", seen.join(", ")),
        };
        Some(format!("nothing was traced: {outside} in no range that --nvtx names ({names}); {others}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: &str) -> Message {
        Message::Text(message.to_owned())
    }

    #[test]
    fn a_launch_has_its_threads_innermost_range() {
        // Other tests open none; a thread of its own has a stack of its own.
        let label = || label().map(|label| label.to_string());
        assert_eq!(label(), None);
        let own = domain("own");
        assert_eq!((push(0, text("step")), push(own, text("forward")), push(0, text("mm"))), (0, 0, 1));
        assert_eq!(label().as_deref(), Some("mm"));
        std::thread::spawn(move || assert_eq!(super::label(), None)).join().expect("no label there");
        // A domain has its own order.
        assert_eq!(pop(own), Some(0));
        assert_eq!((label().as_deref(), pop(own)), (Some("mm"), None));
        assert_eq!((pop(0), label().as_deref()), (Some(1), Some("step")));
        let registered = register(own, "kept");
        assert_eq!((registered, register(own, "other")), (register(own, "kept"), registered + 1));
        push(own, Message::Registered(registered));
        assert_eq!(label().as_deref(), Some("kept@own"));
        let window = |name: &str| Window { nvtx: vec![name.to_owned()], ..Window::default() };
        let asked = Asked::new(&window("st*")).expect("a range is asked for");
        assert!(asked.has_launch(&window("st*")) && !asked.has_launch(&window("kept")));
        assert_eq!(asked.line().as_deref(), Some("not traced: 1 launch in no range that --nvtx names (st*)"));
        assert_eq!((pop(own), pop(0), pop(0)), (Some(0), Some(0), None));
        let [first, second] = [start(0, text("one")), start(own, text("two"))];
        assert_eq!(label().as_deref(), Some("two@own"));
        end(second);
        assert_eq!(label().as_deref(), Some("one"));
        let asked = Asked::new(&window("x")).expect("a range is asked for");
        assert!(!asked.has_launch(&window("x")) && asked.line().expect("one").ends_with("they were in one"));
        end(first);
        assert_eq!(label(), None);
        for _ in 0..MAX_OPEN + 5 {
            push(0, text("deep"));
        }
        assert_eq!((0..MAX_OPEN + 9).map_while(|_| pop(0)).count(), MAX_OPEN + 5);
        assert_eq!((label(), push(0, Message::Registered(usize::MAX))), (None, 0));
        assert_eq!((label().as_deref(), pop(0)), (Some("(unknown text)"), Some(0)));
    }
}
