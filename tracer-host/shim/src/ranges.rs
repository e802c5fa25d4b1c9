//! NVTX ranges of the program, which label its launches.
//!
//! A range is known by its text: the message, followed by `@` and the domain's name if it has a domain. Each
//! thread has a stack of ranges. Ranges that may begin and end in different threads belong to the process. If
//! the program opens no range, a launch only reads a flag.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use warptrace_host::LaunchName;
use warptrace_spec::Window;

use crate::python;
use crate::state::lock;

/// Limit on the open ranges of a thread, and of the process. Deeper ranges of a thread are only counted.
const MAX_OPEN: usize = 1024;
/// Limit on registered strings, and on domains.
const MAX_KNOWN: usize = 1 << 16;
/// Limit on the ranges that the summary names if launches are not recorded.
const MAX_SEEN: usize = 8;

static IS_USED: AtomicBool = AtomicBool::new(false);
/// Domains and registered strings. Numbers begin at 1.
static DOMAINS: Names = Names(RwLock::new(None));
static STRINGS: Names = Names(RwLock::new(None));
/// Ranges of the process with their numbers, in order of their start.
static STARTED: Mutex<Vec<(u64, Arc<str>)>> = Mutex::new(Vec::new());
static STARTED_COUNT: AtomicUsize = AtomicUsize::new(0);
static LAST_STARTED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OPEN: RefCell<Stack> = const { RefCell::new(Stack { ranges: Vec::new(), deeper: 0 }) };
}

struct Stack {
    /// Number of each range's domain, 0 without one, and its text.
    ranges: Vec<(usize, Arc<str>)>,
    deeper: usize,
}

/// Texts with numbers from 1; `None` before the first.
struct Names(RwLock<Option<Known>>);

/// The numbers of texts, and the texts in order.
type Known = (HashMap<Arc<str>, usize>, Vec<Arc<str>>);

impl Names {
    /// Returns the number of a text. If there are too many texts, returns the number of the last one.
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

pub(crate) enum Message {
    Text(String),
    /// Number of a registered string, which includes the domain.
    Registered(usize),
    Missing,
}

pub(crate) fn domain(name: &str) -> usize {
    DOMAINS.number(name)
}

pub(crate) fn register(domain: usize, text: &str) -> usize {
    STRINGS.number(&named(domain, text))
}

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

/// Opens a range of the thread. Returns how many of its ranges of this domain were open.
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

/// Closes the thread's innermost range of a domain. Returns how many remain open; `None` if none was open.
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

/// Starts a range of the process. Returns its number.
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

pub(crate) fn end(number: u64) {
    let mut started = lock(&STARTED);
    started.retain(|(other, _)| *other != number);
    STARTED_COUNT.store(started.len(), Ordering::Relaxed);
}

/// Returns the label and the Python stack of this thread's launch.
pub(crate) fn name() -> LaunchName {
    LaunchName { label: label(), stack: python::stack() }
}

/// Returns the label of a launch by this thread: the thread's innermost range, or the process's latest range.
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

/// Counts of launches within and outside the recorded ranges.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The patterns of the option, separated by spaces.
    names: String,
    within: AtomicU64,
    outside: AtomicU64,
    /// Some ranges of launches that were not recorded.
    seen: Mutex<Vec<Arc<str>>>,
}

impl Asked {
    /// Returns `None` if ranges do not limit recording.
    pub(crate) fn new(window: &Window) -> Option<Self> {
        (!window.nvtx.is_empty()).then(|| Self { names: window.nvtx.join(" "), ..Self::default() })
    }

    /// Returns true if ranges allow recording a launch of this thread. Counts the launch.
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

    /// Returns a line about the launches that were not recorded.
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
        let label = || label().map(|label| label.to_string());
        assert_eq!(label(), None);
        let own = domain("own");
        assert_eq!((push(0, text("step")), push(own, text("forward")), push(0, text("mm"))), (0, 0, 1));
        assert_eq!(label().as_deref(), Some("mm"));
        std::thread::spawn(move || assert_eq!(super::label(), None)).join().expect("no label there");
        // Each domain has its own order.
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
