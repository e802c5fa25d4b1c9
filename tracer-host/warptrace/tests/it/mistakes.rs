//! Common mistakes in first kernels, with their messages. The table in the documentation equals the one here.
//!
//! `mistakes/*.stderr` has messages of the compiler, `mistakes/build` messages of builds. `cargo xtask
//! package` runs these builds with cargo like a user.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::process::Command;

use warptrace::{Buffer, Codec, Device, LaunchConfig, Pod};

/// A mistake, and the characteristic part of its message.
struct Mistake {
    what: &'static str,
    when: When,
    message: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Checked,
    /// During `cargo build`. The page marks messages that `cargo check` also shows.
    Built,
    Run,
}
use When::{Built, Checked, Run};

const fn mistake(when: When, what: &'static str, message: &'static str) -> Mistake {
    Mistake { what, when, message }
}

const MISTAKES: [Mistake; 46] = [
    mistake(
        Checked,
        "`#[kernel]` in a module without `#[warptrace::kernels]`",
        "cannot find attribute `kernel` in this scope",
    ),
    mistake(
        Checked,
        "`#[kernel]`, imported from `warptrace`, in such a module",
        "`#[kernel]` makes a kernel in a module with `#[warptrace::kernels]`: write that before the module",
    ),
    mistake(Checked, "a kernel returns its result", "a kernel returns nothing: write results into an array"),
    mistake(
        Checked,
        "`&mut [T]` for what is written",
        "a kernel's arguments are numbers, `&[T]` to read, `DisjointSlice<T>` to write, `AtomicSlice<T>`, and `Global<T>`",
    ),
    mistake(
        Checked,
        "type parameters",
        "a kernel has no type parameters: its entry in the compiled code has one name",
    ),
    mistake(
        Checked,
        "a method, or a function of an inner module, as kernel",
        "a kernel is a function of the module that has #[warptrace::kernels]: no method, and in no module of that module",
    ),
    mistake(
        Checked,
        "`trace!` in a closure",
        "trace points cannot stand in a closure, which is not looked into: trace the function that calls it, or write a loop",
    ),
    mistake(Checked, "`usize` or `bool` as argument", "`usize` cannot be a kernel's argument"),
    mistake(
        Checked,
        "a structure in an array that is not `Pod`",
        "the trait bound `Edge: Pod` is not satisfied",
    ),
    mistake(
        Checked,
        "a `Vec` in the call, in place of a `Buffer`",
        "`Vec<f32>` is no array of `f32` in a device's memory",
    ),
    mistake(
        Checked,
        "a buffer of another element type",
        "`warptrace::Buffer<f64>` is no array of `f32` in a device's memory",
    ),
    mistake(
        Checked,
        "writing another thread's element",
        "cannot index into a value of type `DisjointSlice<'_, u32>`",
    ),
    mistake(
        Checked,
        "writing what all threads read",
        "cannot assign to `values[_]`, which is behind a `&` reference",
    ),
    mistake(Checked, "an element owned twice", "use of moved value: `out`"),
    mistake(
        Checked,
        "a barrier without saying that all threads come",
        "call to unsafe function `sync_threads` is unsafe and requires unsafe",
    ),
    mistake(Checked, "a call that is not launched", "unused `SafeCall` that must be used"),
    mistake(Checked, "a trace that is not started", "unused `TraceBuilder` that must be used"),
    mistake(Checked, "a trace that nothing is launched in", "unused `Trace` that must be used"),
    mistake(
        Checked,
        "two kernels of one name in a package",
        "a kernel named `step` is in src/kernels.rs, line 9, too, and all kernels of a package are one program on the GPU: rename one",
    ),
    mistake(
        Checked,
        "no `build.rs`",
        "its package has no build.rs; write one, `fn main() { warptrace_build::compile(\"src/kernels.rs\"); }`",
    ),
    mistake(
        Checked,
        "a `build.rs` that compiles no kernels",
        "build.rs does not compile it; write `warptrace_build::compile(\"src/kernels.rs\");` there",
    ),
    mistake(
        Checked,
        "a second file that `build.rs` does not name",
        "build.rs compiles \"src/kernels.rs\" only; name this file, too: `warptrace_build::compile_all([\"src/kernels.rs\", \"src/second.rs\"])`",
    ),
    mistake(
        Checked,
        "`build.rs` names `src/main.rs`",
        "src/main.rs is the program, which has `std`: move the module with #[warptrace::kernels] to a file of its own",
    ),
    mistake(
        Checked,
        "`build.rs` names a file that is not there",
        "src/kernel.rs is no file: name the one with the kernels, relative to the package",
    ),
    mistake(Checked, "no device compiler", "building without GPU code: no device compiler"),
    mistake(Built, "`println!`", "`println!` may be one of `std` or `alloc`, which kernels do not have"),
    mistake(Built, "`vec!`", "`vec!` may be one of `std` or `alloc`, which kernels do not have"),
    mistake(Built, "`x.sin()`", "see `warptrace::device::math`, as in `math::sin(x)`"),
    mistake(
        Built,
        "a helper of the package, by `crate::`",
        "cannot find function `helper` in the crate root",
    ),
    mistake(Run, "an index past the end", "panicked: index out of bounds: the len is 4 but the index is 4"),
    mistake(Run, "a division by zero", "panicked: attempt to divide by zero"),
    mistake(
        Run,
        "fewer threads than elements",
        "has 64 elements, one a thread, and the launch 32 threads: no thread writes the others",
    ),
    mistake(
        Run,
        "more than 1,024 threads a block",
        "block [2048, 1, 1] has 2048 threads, at most 1024 are possible",
    ),
    mistake(
        Run,
        "no blocks",
        "grid [0, 1, 1] has a dimension of 0; use 1 for a dimension that is not needed",
    ),
    mistake(
        Run,
        "one buffer for what is read and what is written",
        "argument 1 of kernel `next`, which it writes, overlaps argument 0: give it a buffer of its own",
    ),
    mistake(
        Run,
        "a buffer of another device",
        "argument 0 of kernel `next` is no memory of this device: launch on the device that made the buffer",
    ),
    mistake(Run, "a barrier in a branch", "the warp diverged at a barrier, which is undefined on a GPU"),
    mistake(
        Run,
        "half of a warp at a barrier, the other half in the next iteration",
        "lanes 0-15 wait at sync_threads",
    ),
    mistake(
        Run,
        "a barrier behind an early `return`",
        "lanes 16-31 had left the kernel when the others came to the barrier",
    ),
    mistake(Run, "shared memory past its end", "index 64 is outside a shared array of 64 elements"),
    mistake(Run, "a loop without end", "more than 10000 steps"),
    mistake(Run, "recursion without end", "the lane's stack is almost full"),
    mistake(Run, "a file that cannot be written", "cannot write the trace"),
    mistake(Run, "too little memory for the trace", "recording anything takes at least"),
    mistake(Run, "a kernel of a module that is not traced", "is not one of the session's"),
    mistake(Run, "no `finish`", "was dropped without `finish`"),
];

#[warptrace::kernels]
#[allow(unconditional_recursion)]
mod wrong {
    use warptrace::device::{DisjointSlice, shared_arrays, simt, thread};

    shared_arrays! {
        fn words() -> [u32; 64];
    }

    /// Reads the next number of each element, which does not exist for the last one.
    #[kernel]
    pub fn next(values: &[u32], out: DisjointSlice<u32>) {
        let Some((index, out)) = out.own(thread::index()) else { return };
        *out = values[index + 1];
    }

    #[kernel]
    pub fn divide(out: DisjointSlice<u32>, by: u32) {
        let Some((_, out)) = out.own(thread::index()) else { return };
        *out = 12 / by;
    }

    #[kernel]
    pub fn in_a_branch() {
        if simt::lane() < 16 {
            // SAFETY: violated on purpose.
            unsafe { simt::sync_threads() };
        }
        // SAFETY: as above.
        unsafe { simt::sync_threads() };
    }

    #[kernel]
    pub fn apart() {
        for turn in 0..2 {
            if (simt::lane() < 16) == (turn == 0) {
                // SAFETY: violated on purpose.
                unsafe { simt::sync_threads() };
            }
        }
    }

    #[kernel]
    pub fn behind_a_return() {
        if simt::lane() >= 16 {
            return;
        }
        // SAFETY: violated on purpose.
        unsafe { simt::sync_threads() };
    }

    #[kernel]
    pub fn past_the_end() {
        // SAFETY: violated on purpose.
        unsafe { words().set(simt::linear_thread() + 33, 1) };
    }

    #[kernel]
    pub fn endless(out: DisjointSlice<u32>) {
        let Some((_, out)) = out.own(thread::index()) else { return };
        while *out != 1 {
            if *out % 2 == 0 {
                *out /= 2;
            }
        }
    }

    #[kernel]
    pub fn recursive(depth: u32) {
        descend(depth);
    }

    fn descend(depth: u32) -> u32 {
        if depth == u32::MAX { 0 } else { descend(depth.wrapping_mul(2)) + 1 }
    }
}

#[warptrace::kernels]
mod other {
    #[kernel]
    pub fn nothing() {}
}

struct Bench {
    device: Device,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { device: Device::simulator(), folder: tempfile::tempdir().unwrap() }
    }

    fn upload<T: Pod>(&self, values: &[T]) -> Buffer<T> {
        self.device.upload(values).unwrap()
    }

    /// Returns the error of a launch of 32 threads.
    fn refused(&self, call: &warptrace::device::SafeCall<'_>) -> String {
        self.refused_as(call, &LaunchConfig::for_elements_in_blocks(32, 32))
    }

    fn refused_as(&self, call: &warptrace::device::SafeCall<'_>, config: &LaunchConfig) -> String {
        let builder = self.device.trace(self.folder.path().join("refused.wtrc")).memory(64 << 20);
        let mut trace = builder.step_limit(10_000).start(&wrong::MODULE).unwrap();
        trace.launch(call, config).unwrap_err().to_string()
    }
}

/// Asserts that each message contains the text of a mistake in the table.
#[track_caller]
fn is_told(messages: &[String]) {
    for message in messages {
        let of_runs = MISTAKES.iter().filter(|mistake| mistake.when == Run);
        assert!(
            of_runs.clone().any(|mistake| message.contains(mistake.message)),
            "not in the table: {message}"
        );
    }
}

#[test]
fn wrong_accesses_and_launches_end_with_their_cause() {
    let bench = Bench::new();
    let (values, out, zero) = (bench.upload(&[1u32; 4]), bench.upload(&[0u32; 4]), bench.upload(&[0u32; 4]));
    let elsewhere = Device::simulator().upload(&[1u32; 4]).unwrap();
    let grid = |blocks, threads| LaunchConfig::grid([blocks, 1, 1], [threads, 1, 1]);
    let messages = [
        bench.refused(&wrong::next(&values, &out)),
        bench.refused(&wrong::divide(&out, 0)),
        bench.refused_as(&wrong::next(&values, &out), &grid(1, 2048)),
        bench.refused_as(&wrong::next(&values, &out), &grid(0, 32)),
        bench.refused(&wrong::next(&out, &out)),
        bench.refused(&wrong::next(&elsewhere, &out)),
        bench.refused(&wrong::in_a_branch()),
        bench.refused(&wrong::apart()),
        bench.refused(&wrong::past_the_end()),
        bench.refused(&wrong::endless(&zero)),
        bench.refused(&wrong::recursive(1)),
    ];
    is_told(&messages);
    for (message, line) in messages.iter().zip([Some("*out = values[index + 1]"), Some("12 / by")]) {
        // The message names the line of the mistake.
        let text = include_str!("mistakes.rs");
        let number = text.lines().position(|found| found.contains(line.unwrap())).unwrap() + 1;
        assert!(message.contains(&format!("mistakes.rs:{number}:")), "{message}");
    }
    drop(values);
}

#[test]
fn a_trace_that_cannot_be_says_why() {
    let bench = Bench::new();
    let path = bench.folder.path().join("a.wtrc");
    let trace = |path: &Path| bench.device.trace(path).codec(Codec::Predict);
    let unwritten =
        trace(&bench.folder.path().join("no/such/folder.wtrc")).start(&wrong::MODULE).unwrap_err();
    let small = trace(&path).memory(1 << 10).start(&wrong::MODULE).unwrap_err();
    assert!(!path.exists(), "nothing is left of it");
    let mut started = trace(&path).memory(64 << 20).start(&wrong::MODULE).unwrap();
    let other = started.launch(&other::nothing(), &LaunchConfig::for_elements(1)).unwrap_err();
    let messages = [unwritten, small, other].map(|error| error.to_string());
    assert!(messages[0].starts_with("cannot write the trace "), "{}", messages[0]);
    let (kernel, known) = ("kernel `it::mistakes::other::nothing` is not one", "(next, divide,");
    assert!(messages[2].contains(kernel) && messages[2].contains(known), "{}", messages[2]);
    is_told(&messages);
}

/// Runs a test again, with a variable that makes it commit its mistake. Returns its standard error.
fn said_by(test: &str) -> String {
    let mut again = Command::new(std::env::current_exe().unwrap());
    let output = again.args(["--exact", test, "--nocapture"]).env(CHILD, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stderr).unwrap()
}

const CHILD: &str = "WARPTRACE_TEST_MAKES_MISTAKES";

#[test]
fn what_is_seldom_meant_is_said_once() {
    if std::env::var_os(CHILD).is_none() {
        let said = said_by("mistakes::what_is_seldom_meant_is_said_once");
        let lines: Vec<String> =
            said.lines().filter(|line| line.starts_with("note: ")).map(str::to_owned).collect();
        is_told(&lines);
        assert_eq!(lines.len(), 3, "{said}");
        return;
    }
    let bench = Bench::new();
    let path = bench.folder.path().join("dropped.wtrc");
    let (out, config) = (bench.upload(&[1u32; 64]), LaunchConfig::for_elements_in_blocks(32, 32));
    let mut trace = bench.device.trace(&path).memory(64 << 20).start(&wrong::MODULE).unwrap();
    for _ in 0..2 {
        trace.launch(&wrong::endless(&out), &config).unwrap();
        trace.launch(&wrong::behind_a_return(), &config).unwrap();
    }
    drop(trace);
    let file = warptrace_decoder::TraceFile::open(&path).unwrap();
    assert!(file.verify().is_ok() && file.launches().count() == 4, "{}", file.verify());
}

mod full {
    /// Compiles the dependencies of `warptrace` again, for `cargo check`.
    #[test]
    fn what_the_compiler_says_points_at_the_mistake() {
        let cases = trybuild::TestCases::new();
        cases.compile_fail("tests/mistakes/*.rs");
        // Tests of the attribute alone.
        cases.compile_fail("tests/refused/*.rs");
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Returns the expected output of the compiler and the builds.
fn held() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let files = [folder.clone(), folder.join("build")].map(|folder| fs::read_dir(folder).unwrap());
    let paths = files.into_iter().flatten().map(|entry| entry.unwrap().path());
    let is_held = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|extension| extension == "stderr" || extension == "txt")
    };
    paths.filter(is_held).map(|path| fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn the_page_has_the_messages_that_are_held() {
    let held = held();
    let mut table = String::from("| mistake | seen by | message |\n| --- | --- | --- |\n");
    for Mistake { what, when, message } in &MISTAKES {
        assert!(*when == Run || held.contains(message), "no test holds this message: {message}");
        let when = match when {
            Checked => "`cargo check`",
            Built => "`cargo build`",
            Run => "running it",
        };
        table += &format!("| {what} | {when} | {} |\n", message.replace('|', "\\|"));
    }
    let path = root().join("docs/users/mistakes.md");
    let page = fs::read_to_string(&path).unwrap();
    let start = page.find("| mistake |").unwrap();
    let end = start + page[start..].find("\n\n").map_or(page.len() - start, |end| end + 1);
    if std::env::var_os("WARPTRACE_OVERWRITE_PAGE").is_some() {
        fs::write(&path, format!("{}{table}{}", &page[..start], &page[end..])).unwrap();
    } else {
        assert_eq!(page[start..end], table, "WARPTRACE_OVERWRITE_PAGE=1 writes the page again");
    }
}
