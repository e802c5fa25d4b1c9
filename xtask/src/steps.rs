//! Named, timed steps with a summary at the end.

use std::io::Write;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) enum Outcome {
    /// The step passed, with an optional remark.
    Passed(String),
    /// The step cannot run here, with the reason.
    Skipped(String),
    /// The step failed, with a description.
    Failed(String),
}

impl From<anyhow::Result<Outcome>> for Outcome {
    fn from(result: anyhow::Result<Outcome>) -> Self {
        result.unwrap_or_else(|error| Self::Failed(format!("{error:#}")))
    }
}

impl From<anyhow::Result<()>> for Outcome {
    fn from(result: anyhow::Result<()>) -> Self {
        result.map(|()| Self::Passed(String::new())).into()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Steps {
    done: Vec<(&'static str, Outcome, Duration)>,
}

impl Steps {
    /// Runs a step. Later steps also run after a failure.
    pub(crate) fn step<O: Into<Outcome>>(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> O,
    ) -> &Outcome {
        println!("\n== {name}");
        flush();
        let started = Instant::now();
        let outcome = work().into();
        match &outcome {
            Outcome::Failed(what) => eprintln!("{name}: FAILED: {what}"),
            Outcome::Skipped(why) => println!("{name}: skipped: {why}"),
            Outcome::Passed(_) => {}
        }
        self.done.push((name, outcome, started.elapsed()));
        &self.done[self.done.len() - 1].1
    }

    pub(crate) fn done(&self) -> &[(&'static str, Outcome, Duration)] {
        &self.done
    }

    /// Prints the outcome of each step. Returns true if none failed.
    pub(crate) fn summary(&self) -> bool {
        let width = self.done.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        println!("\n== summary");
        for (name, outcome, time) in &self.done {
            let (word, more) = match outcome {
                Outcome::Passed(more) => ("ok", more),
                Outcome::Skipped(why) => ("skipped", why),
                Outcome::Failed(what) => ("FAILED", what),
            };
            let line =
                format!("{name:<width$}  {word:<7}  {:>7.1} s  {}", time.as_secs_f64(), first_line(more));
            println!("{}", line.trim_end());
        }
        let total: Duration = self.done.iter().map(|(.., time)| *time).sum();
        let failed = self.done.iter().filter(|(_, outcome, _)| matches!(outcome, Outcome::Failed(_))).count();
        let verdict = if failed == 0 { "all passed".to_owned() } else { format!("{failed} FAILED") };
        println!("{verdict} in {:.0} s", total.as_secs_f64());
        flush();
        failed == 0
    }
}

/// Flushes standard output. Child processes write to the same output, so earlier text must come first.
fn flush() {
    // A closed output does not stop the tests.
    let _ = std::io::stdout().flush();
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_fails_the_whole_and_stops_nothing() {
        let mut steps = Steps::default();
        steps.step("a", || Outcome::Skipped("not here".to_owned()));
        assert!(steps.summary());
        steps.step("b", || -> anyhow::Result<()> { anyhow::bail!("broken") });
        steps.step("c", || Outcome::Passed(String::new()));
        assert_eq!(steps.done.len(), 3);
        assert!(!steps.summary());
    }
}
