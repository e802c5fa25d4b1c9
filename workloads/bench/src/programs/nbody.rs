//! N-body.

use std::borrow::Cow;

use clap::Args;
use warptrace_decoder::lanes::LaneDigest;
use warptrace_host::Launcher;
use warptrace_workloads::ProgramInfo;
use warptrace_workloads::nbody::{self, Bodies, EventCounts, Float4, NbodyOptions};

use super::SEED;
use crate::subject::{Case, LaneReference, RunResult, Subject, SubjectRun};
use crate::table::count;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) bodies: u32,
    /// Number of bodies that attract; `None`: all.
    pub(crate) sources: Option<u32>,
    pub(crate) steps: u32,
}

impl Size {
    /// All bodies attract. The number of steps follows from the sizes of the thesis's traces.
    const fn all_on_all(bodies: u32) -> Self {
        Self { bodies, sources: None, steps: 2 }
    }

    const fn few_on_all(bodies: u32, sources: u32) -> Self {
        Self { bodies, sources: Some(sources), steps: 1 }
    }

    fn options(self) -> NbodyOptions {
        NbodyOptions { sources: self.sources, ..NbodyOptions::new(self.steps) }
    }

    fn name(self) -> String {
        let Self { bodies, sources, steps } = self;
        let sources =
            sources.map_or_else(String::new, |sources| format!(" x {} sources", count(sources.into())));
        let plural = if steps == 1 { "" } else { "s" };
        format!("{} bodies{sources}, {steps} step{plural}", count(bodies.into()))
    }
}

pub(super) fn cases(quick: bool) -> Vec<Case> {
    let [few, many, sources] = sizes(quick).map(case);
    if quick {
        return vec![few, many, sources];
    }
    vec![few.like("N-body, 50,000 bodies"), many.like("N-body, 60,000 bodies"), sources]
}

/// Returns the sizes of the cases. The thesis's use less than half of a large GPU. The third size has enough
/// whole blocks for all of it, and about as many interactions.
pub(crate) fn sizes(quick: bool) -> [Size; 3] {
    if quick {
        [Size::all_on_all(500), Size::all_on_all(800), Size::few_on_all(1_024, 200)]
    } else {
        [Size::all_on_all(50_000), Size::all_on_all(60_000), Size::few_on_all(270_336, 16_384)]
    }
}

/// Returns a case that takes a GPU a third of a second.
pub(super) fn long(quick: bool) -> Case {
    let (bodies, steps) = if quick { (300, 5) } else { (50_000, 100) };
    case(Size { steps, ..Size::all_on_all(bodies) })
}

pub(super) fn twin(quick: bool) -> Case {
    case(Size::all_on_all(if quick { 300 } else { 3_000 }))
}

/// Returns a case with enough bodies to pass all locations in two steps.
pub(super) fn fidelity() -> Case {
    case(Size::all_on_all(10_000))
}

pub(crate) fn case(size: Size) -> Case {
    Case::new(&nbody::PROGRAM, size.name(), move || Ok(Nbody::new(size, SEED)))
}

/// Options of `record nbody`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Bodies, in a Plummer sphere
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=nbody::MAX_BODIES as i64))]
    bodies: u32,

    /// Only this many bodies attract, the first ones; all of them if not given
    #[arg(long, value_name = "BODIES", value_parser = clap::value_parser!(u32).range(1..))]
    sources: Option<u32>,

    /// Steps of time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    steps: u32,

    /// Seed of the bodies' places
    #[arg(long, default_value_t = SEED)]
    seed: u64,
}

impl Options {
    pub(crate) fn case(&self) -> Case {
        let Self { bodies, sources, steps, seed } = *self;
        let size = Size { bodies, sources, steps };
        let case = Case::new(&nbody::PROGRAM, size.name(), move || {
            if let Some(sources) = sources.filter(|sources| *sources > bodies) {
                anyhow::bail!("--sources is {sources}: there are {bodies} bodies, and no more can attract");
            }
            Ok(Nbody::new(size, seed))
        });
        let case = case.with(&[("bodies", &bodies), ("steps", &steps), ("seed", &seed)]);
        match &sources {
            Some(sources) => case.with(&[("sources", sources)]),
            None => case,
        }
    }
}

struct Nbody {
    bodies: Bodies,
    options: NbodyOptions,
    counts: EventCounts,
    lanes: Lanes,
}

/// Digests of all lanes: all with a body take the same path, and so do all without one.
#[derive(Clone, Copy, Debug)]
struct Lanes {
    bodies: u64,
    /// `nbody_force` with a body, in the first and in later steps.
    force: [LaneDigest; 2],
    integrate: LaneDigest,
    /// Both kernels without a body.
    without: [LaneDigest; 2],
}

impl Nbody {
    fn new(size: Size, seed: u64) -> Self {
        let options = size.options();
        let counts = EventCounts::new(size.bodies, &options);
        let without = u64::from(size.bodies);
        let lanes = Lanes {
            bodies: without,
            force: [0, 1].map(|step| LaneDigest::new(counts.force_lane(step, 0))),
            integrate: LaneDigest::new(counts.integrate_lane(0)),
            without: [
                LaneDigest::new(counts.force_lane(0, without)),
                LaneDigest::new(counts.integrate_lane(without)),
            ],
        };
        Self { bodies: nbody::plummer(size.bodies as usize, seed), options, counts, lanes }
    }
}

impl Subject for Nbody {
    fn program(&self) -> &'static ProgramInfo {
        &nbody::PROGRAM
    }

    fn run(&self, launcher: &mut dyn Launcher) -> anyhow::Result<SubjectRun<'_>> {
        let outcome = nbody::run(launcher, &self.bodies, &self.options)?;
        let result = Moved { subject: self, bodies: outcome.bodies, accelerations: outcome.accelerations };
        Ok(SubjectRun { kernel: outcome.kernel, launches: outcome.launches, result: Box::new(result) })
    }

    fn lanes(&self) -> Option<&dyn LaneReference> {
        Some(&self.lanes)
    }
}

impl LaneReference for Lanes {
    fn lane(&self, launch: u32, thread: u64) -> LaneDigest {
        let (step, kernel) = (launch / 2, launch % 2);
        match (thread < self.bodies, kernel) {
            (true, 0) => self.force[usize::from(step > 0)],
            (true, _) => self.integrate,
            (false, _) => self.without[kernel as usize],
        }
    }
}

struct Moved<'s> {
    subject: &'s Nbody,
    bodies: Bodies,
    accelerations: Vec<Float4>,
}

impl RunResult for Moved<'_> {
    fn bytes(&self) -> Cow<'_, [u8]> {
        let parts = [&self.bodies.positions, &self.bodies.velocities, &self.accelerations];
        Cow::Owned(parts.iter().flat_map(|part| bytemuck::cast_slice::<Float4, u8>(part)).copied().collect())
    }

    fn check(&self) -> Result<String, String> {
        nbody::check(&self.subject.bodies, &self.subject.options, &self.bodies, &self.accelerations)
    }

    fn expected_events(&self) -> Option<u64> {
        Some(self.subject.counts.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_programs_lanes() {
        for size in [Size::all_on_all(70), Size::few_on_all(70, 9)] {
            let subject = Nbody::new(size, SEED);
            for thread in [0, 1, 69, 70, 127] {
                for launch in [0, 2, 4] {
                    let force = LaneDigest::new(subject.counts.force_lane(launch / 2, thread));
                    assert_eq!(subject.lanes.lane(launch, thread), force, "{size:?}, thread {thread}");
                    let integrate = LaneDigest::new(subject.counts.integrate_lane(thread));
                    assert_eq!(
                        subject.lanes.lane(launch + 1, thread),
                        integrate,
                        "{size:?}, thread {thread}"
                    );
                }
            }
        }
    }

    #[test]
    fn sizes_have_names() {
        let names = sizes(false).map(Size::name);
        assert_eq!(names[0], "50,000 bodies, 2 steps");
        assert_eq!(names[2], "270,336 bodies x 16,384 sources, 1 step");
    }
}
