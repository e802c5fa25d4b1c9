//! The tables in CSV. Rows are written after each recording, so that an interrupted run leaves them.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use serde::Serialize;
use warptrace_workloads::ProgramInfo;

use super::counts::{Counts, union};
use super::findings::{Findings, Recording};
use crate::machine::Machine;
use crate::{date, files};

/// A row of `fidelity.csv`: a track of a recording.
#[derive(Clone, Debug, Serialize)]
struct FidelityRow<'a> {
    date: String,
    commit: &'a str,
    machine: &'a str,
    driver: &'a str,
    program: &'a str,
    input: &'a str,
    recording: &'a str,
    track: usize,
    launches: usize,
    events_untraced: u64,
    events_traced: u64,
    events_decoded: u64,
    lanes_untraced: u64,
    lanes_traced: u64,
    lanes_decoded: u64,
    lost: u64,
    /// Sum over locations of |untraced - decoded| events, divided by the untraced events.
    difference: f64,
    /// The largest such difference between two untraced runs; empty if there is only one.
    spread: Option<f64>,
    decoded_is_traced: bool,
    /// Number of locations whose events are an upper bound and are not compared.
    bounds_untraced: usize,
    bounds_traced: usize,
    problems: String,
}

/// A row of `fidelity-locations.csv`: a trace point in a track of a recording.
#[derive(Clone, Debug, Serialize)]
struct LocationRow<'a> {
    program: &'a str,
    input: &'a str,
    recording: &'a str,
    track: usize,
    kernel: &'a str,
    location: u16,
    name: &'a str,
    events_untraced: u64,
    events_traced: u64,
    events_decoded: u64,
    lanes_untraced: u64,
    lanes_traced: u64,
    lanes_decoded: u64,
}

pub(super) struct Rows {
    recordings: csv::Writer<File>,
    locations: csv::Writer<File>,
    machine: Machine,
    commit: String,
}

impl Rows {
    pub(super) fn create(folder: &Path, machine: &Machine, commit: &str) -> anyhow::Result<Self> {
        let create = |name: &str| -> anyhow::Result<csv::Writer<File>> {
            Ok(csv::Writer::from_writer(files::create(&folder.join(name))?))
        };
        Ok(Self {
            recordings: create("fidelity.csv")?,
            locations: create("fidelity-locations.csv")?,
            machine: machine.clone(),
            commit: commit.to_owned(),
        })
    }

    pub(super) fn add(
        &mut self,
        findings: &Findings,
        recording: &Recording,
        program: &ProgramInfo,
    ) -> anyhow::Result<()> {
        let problems = findings.problems(recording).join("; ");
        for (track, decoded) in recording.decoded.iter().enumerate() {
            let (untraced, traced, total) =
                (findings.reference().total(), recording.traced.total(), decoded.total());
            self.recordings.serialize(FidelityRow {
                date: date::today(),
                commit: &self.commit,
                machine: &self.machine.name,
                driver: &self.machine.driver,
                program: findings.program,
                input: &findings.input,
                recording: &recording.mode.name,
                track,
                launches: recording.launches,
                events_untraced: untraced.events,
                events_traced: traced.events,
                events_decoded: total.events,
                lanes_untraced: untraced.lanes,
                lanes_traced: traced.lanes,
                lanes_decoded: total.lanes,
                lost: recording.lost,
                difference: findings.distance(decoded),
                spread: findings.spread(),
                decoded_is_traced: Findings::is_its_kernel(recording, decoded),
                bounds_untraced: findings.reference().bounds().len(),
                bounds_traced: recording.traced.bounds().len(),
                problems: problems.clone(),
            })?;
            self.add_locations(findings, recording, track, decoded, program)?;
        }
        self.recordings.flush()?;
        self.locations.flush()?;
        Ok(())
    }

    fn add_locations(
        &mut self,
        findings: &Findings,
        recording: &Recording,
        track: usize,
        decoded: &Counts,
        program: &ProgramInfo,
    ) -> anyhow::Result<()> {
        let names = names(program);
        for point in union([findings.reference(), &recording.traced, decoded]) {
            let (untraced, traced, found) =
                (findings.reference().at(&point), recording.traced.at(&point), decoded.at(&point));
            self.locations.serialize(LocationRow {
                program: findings.program,
                input: &findings.input,
                recording: &recording.mode.name,
                track,
                kernel: &point.kernel,
                location: point.location,
                name: names.get(&point.location).copied().unwrap_or_default(),
                events_untraced: untraced.events,
                events_traced: traced.events,
                events_decoded: found.events,
                lanes_untraced: untraced.lanes,
                lanes_traced: traced.lanes,
                lanes_decoded: found.lanes,
            })?;
        }
        Ok(())
    }
}

pub(super) fn names(program: &ProgramInfo) -> HashMap<u16, &'static str> {
    program.locations().map(|location| (location.id, location.name)).collect()
}
