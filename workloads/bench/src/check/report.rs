//! Results of the checks.

use std::time::Instant;

use crate::date;
use crate::machine::Machine;
use crate::subject::Case;
use crate::table::MarkdownTable;

/// Results so far. Prints each result when it is added.
pub(super) struct Report {
    table: MarkdownTable,
    passed: u32,
    failures: Vec<String>,
    deadline: Option<Instant>,
}

impl Report {
    pub(super) fn new(deadline: Option<Instant>) -> Self {
        Self {
            table: MarkdownTable::new(5, ["program", "input", "check", "result", "what was found"]),
            passed: 0,
            failures: Vec::new(),
            deadline,
        }
    }

    /// Returns true if the deadline has passed, so that the check must be left out. Reports it as failed.
    pub(super) fn leaves_out(&mut self, case: &Case, check: &str) -> bool {
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if late {
            self.add(case, check, Err("left out, the time limit is reached".to_owned()));
        }
        late
    }

    pub(super) fn add(&mut self, case: &Case, check: &str, found: Result<String, String>) {
        let (result, words) = match found {
            Ok(words) => {
                self.passed += 1;
                ("ok", words)
            }
            Err(words) => {
                self.failures.push(check.to_owned());
                ("FAIL", words)
            }
        };
        println!("{result:<4} {}: {check}: {words}", case.name());
        self.table.row([case.program, &case.input, check, result, &words]);
    }

    pub(super) fn all_passed(&self) -> bool {
        self.failures.is_empty() && self.passed > 0
    }

    #[cfg(test)]
    pub(super) fn failures(&self) -> &[String] {
        &self.failures
    }

    pub(super) fn summary(&self) -> String {
        format!("{} checks passed, {} failed", self.passed, self.failures.len())
    }

    pub(super) fn markdown(&self, machine: &Machine) -> String {
        format!(
            "# Checks on {}\n\n{}, driver {}. {}.\n\nMade by `warptrace-bench check`.\n\n{}",
            machine.name,
            date::today(),
            machine.driver,
            self.summary(),
            self.table.markdown()
        )
    }
}
