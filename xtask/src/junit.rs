//! Times of steps and tests: reads the report of nextest, writes a JUnit file, and prints the slowest tests.

use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Context;

use crate::steps::{Outcome, Steps};
use crate::workspace;

/// Maximum number of slowest tests that are printed.
const SHOWN: usize = 30;
/// Time limit of a test in seconds. Tests in a module `full` have no limit.
const LIMIT: f64 = 5.0;
/// A machine counts as idle if other processes use at most this share of its processor time.
const IDLE: f64 = 0.1;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Test {
    /// Test binary and name, in nextest's form.
    name: String,
    seconds: f64,
    has_failed: bool,
    /// True if other processes used more than [`IDLE`] of the processor time, or an unknown share.
    is_on_busy_machine: bool,
}

impl Test {
    /// Returns true if a part of the test's name is `full`, as in a module `full`.
    fn is_full(&self) -> bool {
        self.name.split([' ', ':']).any(|part| part == "full")
    }
}

/// Reads the report of nextest's last run with `profile`. `of_others` is the share of processor time that
/// other processes used, from 0 to 1. The times are unreliable if it is unknown or more than [`IDLE`].
pub(crate) fn read(profile: &str, of_others: Option<f64>) -> anyhow::Result<Vec<Test>> {
    let path = workspace::target()?.join("nextest").join(profile).join("junit.xml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text, of_others.is_none_or(|share| share > IDLE))
}

fn parse(text: &str, is_on_busy_machine: bool) -> anyhow::Result<Vec<Test>> {
    let document = roxmltree::Document::parse(text)?;
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    let test = |case: roxmltree::Node<'_, '_>| {
        let attribute = |name| case.attribute(name).with_context(|| format!("a test without {name}"));
        let name = format!("{} {}", attribute("classname")?, attribute("name")?);
        let has_failed =
            case.children().any(|child| child.has_tag_name("failure") || child.has_tag_name("error"));
        Ok(Test { name, seconds: attribute("time")?.parse()?, has_failed, is_on_busy_machine })
    };
    cases.map(test).collect()
}

pub(crate) fn print_slowest(tests: &[Test]) {
    if tests.is_empty() {
        return;
    }
    let total: f64 = tests.iter().map(|test| test.seconds).sum();
    println!("\n== slowest of {} tests, which took {total:.0} s in all", tests.len());
    for test in by_time(tests).iter().take(SHOWN) {
        println!("{:>7.1} s  {}", test.seconds, test.name);
    }
}

fn by_time(tests: &[Test]) -> Vec<&Test> {
    let mut sorted: Vec<&Test> = tests.iter().collect();
    sorted.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    sorted
}

/// Returns the tests outside of modules `full` that exceed the time limit, slowest first.
fn slow(tests: &[Test]) -> Vec<&Test> {
    by_time(tests).into_iter().filter(|test| test.seconds > LIMIT && !test.is_full()).collect()
}

/// Returns a nextest filter for the tests outside of modules `full` that exceed the time limit, if any.
pub(crate) fn slow_filter(tests: &[Test]) -> Option<String> {
    let slow = slow(tests);
    let names = slow.iter().filter_map(|test| test.name.split_once(' '));
    let each: Vec<String> =
        names.map(|(binary, test)| format!("(binary_id(={binary}) & test(={test}))")).collect();
    (!each.is_empty()).then(|| each.join(" | "))
}

pub(crate) fn replace(tests: &mut [Test], again: &[Test]) {
    for test in tests {
        if let Some(found) = again.iter().find(|found| found.name == test.name) {
            test.clone_from(found);
        }
    }
}

/// Fails if a test outside of modules `full` exceeded the time limit and its time is reliable. If only
/// unreliable times exceeded it, the step counts as skipped. Checks all packages, so it requires `--all`.
pub(crate) fn check_slow(tests: &[Test]) -> Outcome {
    let slow = slow(tests);
    let list: String = slow.iter().fold(String::new(), |mut list, test| {
        // Writing to a string cannot fail.
        let _ = write!(list, "\n  {:.1} s  {}", test.seconds, test.name);
        list
    });
    if slow.iter().any(|test| !test.is_on_busy_machine) {
        return Outcome::Failed(format!(
            "{} tests take more than {LIMIT} s: make them faster, or move them into a module `full`:{list}",
            slow.len()
        ));
    }
    if slow.is_empty() {
        return Outcome::Passed(format!("no test outside of `full` takes more than {LIMIT} s"));
    }
    Outcome::Skipped(format!("{} tests took more than {LIMIT} s, on a busy machine:{list}", slow.len()))
}

/// Writes steps and tests into a JUnit file in the target folder.
pub(crate) fn write(steps: &Steps, tests: &[Test]) -> anyhow::Result<()> {
    let folder: PathBuf = workspace::target()?.join("test");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("junit.xml");
    std::fs::write(&path, text(steps, tests)).with_context(|| format!("cannot write {}", path.display()))?;
    println!("times of steps and tests: {}", workspace::shown(&path));
    Ok(())
}

fn text(steps: &Steps, tests: &[Test]) -> String {
    let mut text =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"steps\">\n".to_owned();
    for (name, outcome, time) in steps.done() {
        let inner = match outcome {
            Outcome::Passed(_) => String::new(),
            Outcome::Skipped(why) => format!("<skipped message=\"{}\"/>", escaped(why)),
            Outcome::Failed(what) => format!("<failure message=\"{}\"/>", escaped(what)),
        };
        text += &format!(
            "    <testcase classname=\"steps\" name=\"{}\" time=\"{:.3}\">{inner}</testcase>\n",
            escaped(name),
            time.as_secs_f64()
        );
    }
    text += "  </testsuite>\n  <testsuite name=\"tests\">\n";
    for test in tests {
        let (binary, name) = test.name.split_once(' ').unwrap_or(("", &test.name));
        let inner = if test.has_failed { "<failure/>" } else { "" };
        text += &format!(
            "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\">{inner}</testcase>\n",
            escaped(binary),
            escaped(name),
            test.seconds
        );
    }
    text + "  </testsuite>\n</testsuites>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXTEST: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="2" time="9.0">
    <testsuite name="warptrace-decoder::it" tests="2">
        <testcase name="verify::a_sum" classname="warptrace-decoder::it" time="7.250"></testcase>
        <testcase name="verify::full::all" classname="warptrace-decoder::it" time="61.000"><failure/></testcase>
    </testsuite>
</testsuites>"#;

    #[test]
    fn times_of_nextest_are_read_and_written() {
        let tests = parse(NEXTEST, false).expect("it is XML");
        assert_eq!(tests.len(), 2);
        assert_eq!(tests[0].name, "warptrace-decoder::it verify::a_sum");
        let mut steps = Steps::default();
        steps.step("a < b", || Outcome::Failed("\"c\" & d".to_owned()));
        let written = text(&steps, &tests);
        assert_eq!(parse(&written, false).expect("it is XML")[1..], tests);
    }

    #[test]
    fn a_slow_test_fails_unless_it_is_marked_or_the_machine_is_busy() {
        let Outcome::Failed(said) = check_slow(&parse(NEXTEST, false).expect("it is XML")) else {
            panic!("7 s are too long");
        };
        assert!(said.contains("a_sum") && !said.contains("full::all"), "{said}");
        let busy = parse(NEXTEST, true).expect("it is XML");
        assert!(matches!(check_slow(&busy), Outcome::Skipped(_)));
        assert!(matches!(check_slow(&busy[1..]), Outcome::Passed(_)));
        assert_eq!(slow_filter(&busy[1..]), None);
        let filter = slow_filter(&busy).expect("one is slow");
        assert_eq!(filter, "(binary_id(=warptrace-decoder::it) & test(=verify::a_sum))");
        let mut tests = busy.clone();
        replace(&mut tests, &[Test { seconds: 4.0, ..busy[0].clone() }]);
        assert_eq!((tests[0].seconds, &tests[1]), (4.0, &busy[1]));
        assert!(matches!(check_slow(&tests), Outcome::Passed(_)));
    }
}
